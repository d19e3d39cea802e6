"""The dead letters: list, show, edit and replay, purge; one, several, or all that match."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

from fastapi import Query
from pydantic import Field

from holdfast.client.acts import count_words, filter_words, id_words
from holdfast.core.api_key import Scope
from holdfast.core.errors import InvalidOptions, JobStateError, NotUnique
from holdfast.core.job import JobInfo
from holdfast.core.state import State
from holdfast.http.bodies import DeadChoice, DeadQuery, EditBody, JobIdPath
from holdfast.http.call import Call, Called
from holdfast.http.caller import Reach
from holdfast.http.problems import INVALID_ARGUMENTS, JOB_NOT_FOUND, JOB_STATE, NOT_UNIQUE
from holdfast.http.route_table import Routes, Takes
from holdfast.http.routes.jobs import filters_of, list_narrowed, page_view
from holdfast.http.routes.submitting import check_own
from holdfast.http.views import JobPageView, JobView, View, job_view
from holdfast.stores.dead import Replayed

_Answer = TypeVar("_Answer", bound=int)
_MOST_NAMED: Final = 100

routes = Routes("dead letters")


class CountView(View):
    """How many dead letters."""

    count: int
    dry_run: bool = Field(description="Whether they were counted only.")


class ReplayedView(CountView):
    """How many dead letters, and who stays dead because another job has what has to be unique."""

    kept_back: int = Field(default=0, description="How many stay dead because another job is in their way.")
    in_the_way: dict[UUID, UUID | None] = Field(
        default_factory=dict,
        description="Of the first hundred of these, the job that is in the way; null where it is not yours to see.",
    )


@routes.get("/dead", reach=Reach.JOBS)
async def list_dead(call: Called, query: Annotated[DeadQuery, Query()]) -> JobPageView:
    """Dead jobs that match all filters, newest first, page by page."""
    filters = filters_of(call, query)
    return page_view(call, await list_narrowed(call, call.hf.dead.list, filters, query.limit, query.before))


@routes.get("/dead/{job_id}", reach=Reach.JOBS, problems=(JOB_NOT_FOUND, JOB_STATE))
async def get_dead(call: Called, job_id: JobIdPath) -> JobView:
    """One dead job, with every attempt."""
    return job_view(await _dead(call, job_id), payloads=call.caller.reads_payloads)


@routes.post(
    "/dead/{job_id}/replay",
    reach=Reach.JOBS,
    status=202,
    takes=Takes.PERHAPS,
    problems=(JOB_NOT_FOUND, JOB_STATE, NOT_UNIQUE, INVALID_ARGUMENTS),
)
async def replay_one(call: Called, job_id: JobIdPath, body: EditBody | None = None) -> JobView:
    """Run a dead job again; with other arguments, where they are given, checked against its task."""
    job = await _dead(call, job_id)
    edited = None if body is None else _edited(job, body)
    if edited is not None:
        call.hf.dead.check_edit(job, *edited)  # what is refused is not on record
    await call.record("replay", str(job.id), edited=edited is not None or None)
    if edited is not None:
        args, kwargs = edited
        await call.hf.dead.edit(job.id, *args, **kwargs)
    try:  # one that has to be unique stays dead while another is there, with its new arguments all the same
        replayed = await call.hf.dead.replay(job.id)
    except NotUnique as error:
        await check_own(call, str(error.job_id), by_key=False)
        raise
    if not replayed:
        raise JobStateError(f"job {job.id} is no longer dead: somebody else was quicker")
    return job_view(await call.job(str(job.id)), payloads=call.caller.reads_payloads)


@routes.add(
    "DELETE",
    "/dead/{job_id}",
    scope=Scope.OPERATE,
    reach=Reach.JOBS,
    problems=(JOB_NOT_FOUND, JOB_STATE),
)
async def purge_one(call: Called, job_id: JobIdPath) -> CountView:
    """Drop a dead job for good."""
    job = await _dead(call, job_id)
    await call.record("purge", str(job.id))
    return CountView(count=await call.hf.dead.purge(job.id), dry_run=False)


@routes.post("/dead/replay", reach=Reach.JOBS, takes=Takes.ONE)
async def replay_many(call: Called, body: DeadChoice) -> ReplayedView:
    """Run dead jobs again: those of these ids, all that match, or everything. Says how many, and who stays dead."""
    parts = await _choose(call, body, "replay", call.hf.dead.replay)
    if parts is None:
        return ReplayedView(count=await _matching(call, body), dry_run=True)
    replayed = Replayed.of(parts)
    kept = dict(islice(replayed.in_the_way.items(), _MOST_NAMED))
    others = await call.hf.jobs.get_many(list(kept.values())) if kept else []
    seen = {job.id for job in others if job is not None and call.caller.sees(job)}
    in_the_way = {job_id: other if other in seen else None for job_id, other in kept.items()}
    return ReplayedView(count=replayed, dry_run=False, kept_back=replayed.kept_back, in_the_way=in_the_way)


@routes.post("/dead/purge", reach=Reach.JOBS, takes=Takes.ONE)
async def purge_many(call: Called, body: DeadChoice) -> CountView:
    """Drop dead jobs for good: those of these ids, all that match, or everything. Says how many."""
    parts = await _choose(call, body, "purge", call.hf.dead.purge)
    return CountView(count=await _matching(call, body) if parts is None else sum(parts), dry_run=parts is None)


def _edited(job: JobInfo, body: EditBody) -> tuple[Sequence[Any], dict[str, Any]] | None:
    """Its arguments anew; None: as they are."""
    if body.args is None and body.kwargs is None:
        return None
    return job.args if body.args is None else body.args, (job.kwargs if body.kwargs is None else body.kwargs) or {}


async def _dead(call: Call, job_id: UUID) -> JobInfo:
    job = await call.job(str(job_id))
    if job.state is not State.DEAD:
        raise JobStateError(f"job {job.id} is not dead but {job.state}")
    return job


async def _choose(
    call: Call, body: DeadChoice, verb: str, act: Callable[..., Awaitable[_Answer]]
) -> list[_Answer] | None:
    """What it says of each part; None where they are to be counted only."""
    filters = {} if body.filter is None else filters_of(call, body.filter)
    if (body.ids is not None) + bool(filters) + body.everything != 1:
        raise InvalidOptions(f"{verb}: say which: ids, or a filter, or everything; one of them")
    if body.dry_run:
        return None
    if body.ids is not None:
        own = await _own(call, body.ids)
        await call.record(verb, "dead letters", ids=id_words(own), count=len(own))
        return [await act(own)] if own else []
    narrowed = call.caller.narrowed(filters)
    count = count_words(sum([await call.hf.dead.count_for_record(**each) for each in narrowed]))
    said = {"filter": filter_words(filters) or None, "everything": body.everything or None}
    await call.record(verb, "dead letters", **said, count=count)
    return [await act(**each, everything=not each) for each in narrowed]


async def _matching(call: Call, body: DeadChoice) -> int:
    if body.ids is not None:
        return len(await _own(call, body.ids))
    filters = {} if body.filter is None else filters_of(call, body.filter)
    return sum([await call.hf.dead.count(**each) for each in call.caller.narrowed(filters)])


async def _own(call: Call, ids: list[UUID]) -> list[UUID]:
    """Each of them is looked at: somebody else's is passed over, as one that is not there."""
    found = await call.hf.jobs.get_many(list(dict.fromkeys(ids)))
    return [job.id for job in found if job is not None and job.state is State.DEAD and call.caller.sees(job)]
