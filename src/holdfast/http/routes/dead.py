"""The dead letters: list, show, edit and replay, purge; one, several, or all that match."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import Field

from holdfast.core.api_key import Scope
from holdfast.core.errors import InvalidOptions, JobStateError
from holdfast.core.job import JobInfo
from holdfast.core.state import State
from holdfast.http.bodies import DeadChoice, DeadQuery, EditBody, JobIdPath
from holdfast.http.call import Call, Called
from holdfast.http.caller import Reach
from holdfast.http.problems import INVALID_ARGUMENTS, JOB_NOT_FOUND, JOB_STATE
from holdfast.http.route_table import Routes, Takes
from holdfast.http.routes.jobs import filters_of, list_narrowed, page_view
from holdfast.http.views import JobPageView, JobView, View, job_view

routes = Routes("dead letters")


class CountView(View):
    """How many dead letters."""

    count: int
    dry_run: bool = Field(description="Whether they were counted only.")


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
    problems=(JOB_NOT_FOUND, JOB_STATE, INVALID_ARGUMENTS),
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
    if not await call.hf.dead.replay(job.id):
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
async def replay_many(call: Called, body: DeadChoice) -> CountView:
    """Run dead jobs again: those of these ids, all that match, or everything. Says how many."""
    return await _choose(call, body, "replay", call.hf.dead.replay)


@routes.post("/dead/purge", reach=Reach.JOBS, takes=Takes.ONE)
async def purge_many(call: Called, body: DeadChoice) -> CountView:
    """Drop dead jobs for good: those of these ids, all that match, or everything. Says how many."""
    return await _choose(call, body, "purge", call.hf.dead.purge)


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


async def _choose(call: Call, body: DeadChoice, verb: str, act: Callable[..., Awaitable[int]]) -> CountView:
    filters = {} if body.filter is None else filters_of(call, body.filter)
    if (body.ids is not None) + bool(filters) + body.everything != 1:
        raise InvalidOptions(f"{verb}: say which: ids, or a filter, or everything; one of them")
    if body.ids is not None:
        return await _chosen(call, body.ids, verb, act, dry_run=body.dry_run)
    narrowed = call.caller.narrowed(filters)
    if body.dry_run:
        return CountView(count=sum([await call.hf.dead.count(**each) for each in narrowed]), dry_run=True)
    await call.record(verb, "dead letters", filter=_words(filters), everything=body.everything or None)
    count = sum([await act(**each, everything=not each) for each in narrowed])
    return CountView(count=count, dry_run=False)


async def _chosen(
    call: Call, ids: list[UUID], verb: str, act: Callable[..., Awaitable[int]], *, dry_run: bool
) -> CountView:
    """Each of them is looked at: somebody else's is passed over, as one that is not there."""
    unique = list(dict.fromkeys(ids))
    found = await call.hf.jobs.get_many(unique)
    own = [job.id for job in found if job is not None and job.state is State.DEAD and call.caller.sees(job)]
    if dry_run:
        return CountView(count=len(own), dry_run=True)
    await call.record(verb, "dead letters", ids=[str(each) for each in own])
    return CountView(count=await act(own) if own else 0, dry_run=False)


def _words(filters: dict[str, Any]) -> dict[str, str] | None:
    """For the record; what is searched for may be a payload's."""
    shown = {name: str(value) for name, value in filters.items() if name != "text"}
    return shown | ({"text": "…"} if "text" in filters else {}) or None
