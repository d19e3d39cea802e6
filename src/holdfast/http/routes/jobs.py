"""Look at jobs, and change what becomes of them: get, list, cancel, retry, explain, follow, the result."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Header, Query, Response
from pydantic import Field

from holdfast.client.arguments import encode_json
from holdfast.core.api_key import Scope
from holdfast.core.errors import JobStateError
from holdfast.core.explanation import ReasonKind
from holdfast.core.job import JobInfo
from holdfast.core.state import State
from holdfast.http.bodies import CancelBody, JobFilters, JobIdPath, JobQuery
from holdfast.http.call import Call, Called
from holdfast.http.caller import Reach
from holdfast.http.event_stream import EVENT_SCHEMA, EventStream, revision_of
from holdfast.http.problem import Problem
from holdfast.http.problems import FORBIDDEN, JOB_NOT_FOUND, JOB_STATE, SHUTTING_DOWN, TOO_MANY_STREAMS, retry_after
from holdfast.http.route_table import Routes, Takes
from holdfast.http.views import JobPageView, JobView, View, job_view
from holdfast.stores.base import CancelAnswer, JobPage

routes = Routes("jobs")

_ANY_RESULT_BYTES = 1 << 40


class CancelView(View):
    """What a cancellation did."""

    id: UUID
    answer: CancelAnswer = Field(description="cancelled; requested, of one that runs; ended, of one that had ended.")


class ReasonView(View):
    """One thing that keeps a job from running, or that is worth knowing."""

    kind: ReasonKind
    sentence: str
    data: dict[str, Any] = Field(description="The names and numbers in the sentence.")


class ExplanationView(View):
    """Why a job is where it is."""

    id: UUID
    state: State
    explanation: str
    held_by: list[ReasonView] = Field(description="All that keeps it from running now.")
    notes: list[ReasonView] = Field(description="What else is worth knowing: its place in the lane, when it expires.")
    starts_at: datetime | None = Field(description="An estimate of its start; null where nothing tells one.")


@routes.get("/jobs", reach=Reach.JOBS)
async def list_jobs(call: Called, query: Annotated[JobQuery, Query()]) -> JobPageView:
    """Jobs that match all filters, newest first, page by page."""
    filters = filters_of(call, query) | ({} if query.state is None else {"state": query.state})
    return page_view(call, await list_narrowed(call, call.hf.jobs.list, filters, query.limit, query.before))


@routes.get("/jobs/{job_id}", reach=Reach.JOBS, problems=(JOB_NOT_FOUND,))
async def get_job(call: Called, job_id: JobIdPath) -> JobView:
    """One job. Arguments, result and the words of errors need the scope read-payload."""
    return job_view(await call.job(str(job_id)), payloads=call.caller.reads_payloads)


@routes.get(
    "/jobs/{job_id}/result",
    scope=Scope.READ_PAYLOAD,
    reach=Reach.JOBS,
    problems=(JOB_NOT_FOUND, JOB_STATE),
    responses={200: {"description": "What the task returned", "content": {"application/json": {"schema": {}}}}},
)
async def get_result(call: Called, job_id: JobIdPath) -> Response:
    """What the task returned, as JSON; 409 where it has not succeeded, with `Retry-After` where it may yet."""
    job = await call.job(str(job_id))
    if job.state is not State.SUCCEEDED:
        later = {} if job.state.ended else retry_after(1.0)
        raise Problem(JOB_STATE, f"job {job.id} is {job.state}: it has no result", headers=later)
    text = encode_json("the result", job.result, limit=_ANY_RESULT_BYTES)
    headers = {"Content-Disposition": f'attachment; filename="{job.id}.json"'}
    return Response(text, headers=headers, media_type="application/json")


@routes.get("/jobs/{job_id}/explain", reach=Reach.JOBS, problems=(JOB_NOT_FOUND,))
async def explain_job(call: Called, job_id: JobIdPath) -> ExplanationView:
    """Why the job is where it is: all that keeps it, its place, an estimate of its start."""
    job = await call.job(str(job_id))
    why = await call.hf.jobs.explain(job.id)
    return ExplanationView(
        id=why.job_id,
        state=why.state,
        explanation=str(why),
        held_by=[ReasonView(kind=each.kind, sentence=each.sentence, data=dict(each.data)) for each in why.held_by],
        notes=[ReasonView(kind=each.kind, sentence=each.sentence, data=dict(each.data)) for each in why.notes],
        starts_at=why.starts_at,
    )


@routes.get(
    "/jobs/{job_id}/events",
    reach=Reach.JOBS,
    problems=(JOB_NOT_FOUND, TOO_MANY_STREAMS),
    responses={
        200: {"description": "Server-sent events", "content": {"text/event-stream": {"schema": EVENT_SCHEMA}}},
        204: {"description": "The job has ended, and the client has seen it"},
    },
)
async def follow_job(
    call: Called,
    job_id: JobIdPath,
    seen: Annotated[str | None, Header(alias="Last-Event-ID", max_length=64, description="To go on after it.")] = None,
) -> Response:
    """Follow a job: `changed` whenever it has, `ended` at last; each event is the whole job. `reconnect`: come again.

    Its id tells the revision: whoever comes again with `Last-Event-ID` is told what differs from that.
    """
    job, streams = await call.job(str(job_id)), call.api.streams
    if job.state.ended and seen == revision_of(job):
        return Response(status_code=204)
    if streams.stopped:
        raise Problem(SHUTTING_DOWN, "this server is stopping", headers=retry_after(1.0))
    return EventStream(
        job,
        streams=streams,
        limits=call.api.limits,
        payloads=call.caller.reads_payloads,
        seen=seen,
        opens=call.opens,
        sees=call.caller.sees,
    )


@routes.post("/jobs/{job_id}/cancel", reach=Reach.JOBS, takes=Takes.PERHAPS, problems=(JOB_NOT_FOUND,))
async def cancel_job(call: Called, job_id: JobIdPath, body: CancelBody | None = None) -> CancelView:
    """End the job if it waits, ask it to stop if it runs."""
    job = await call.job(str(job_id))
    reason = (body and body.reason) or ""
    await call.record("cancel", str(job.id), reason=reason or None)
    answer = await call.hf.jobs.cancel(job.id, reason=reason, by=call.caller.name)
    return CancelView(id=job.id, answer=answer)


@routes.post("/jobs/{job_id}/retry", reach=Reach.JOBS, status=202, problems=(JOB_NOT_FOUND, JOB_STATE))
async def retry_job(call: Called, job_id: JobIdPath) -> JobView:
    """Run a dead job again, with the same id and its whole history."""
    job = await call.job(str(job_id))
    if job.state is not State.DEAD:
        raise JobStateError(f"job {job.id} is {job.state}; only a dead job can be run again")
    await call.record("retry", str(job.id))
    await call.hf.jobs.retry(job.id)
    return job_view(await call.job(str(job.id)), payloads=call.caller.reads_payloads)


# ---------------------------------------------------------------- lists, also those of dead letters and batches


def filters_of(call: Call, query: JobFilters) -> dict[str, Any]:
    """Those that were given; to search in errors' messages is to read them."""
    if query.text is not None and not call.caller.reads_payloads:
        raise Problem(FORBIDDEN, "to search for words of errors needs the scope read-payload", field="text")
    return query.given()


async def list_narrowed(
    call: Call, list_page: Any, filters: dict[str, Any], limit: int, before: UUID | None
) -> JobPage:
    """A page of what is the caller's, put together from those of each of his queues."""
    pages: list[JobPage] = [
        await list_page(**narrowed, limit=limit, before=before) for narrowed in call.caller.narrowed(filters)
    ]
    if len(pages) == 1:
        return pages[0]
    # Below the highest place at which one of them has stopped to look, others may be missing.
    floors = [page.next for page in pages if page.next is not None]
    floor = max(floors, default=None)
    found = sorted((job for page in pages for job in page), key=lambda job: job.id, reverse=True)
    kept: list[JobInfo] = [job for job in found if floor is None or job.id >= floor]
    if len(kept) > limit:
        return JobPage(kept[:limit], cursor=kept[limit - 1].id)
    return JobPage(kept, cursor=floor)


def page_view(call: Call, page: JobPage) -> JobPageView:
    """A page as the caller may see it."""
    jobs = [job_view(job, payloads=call.caller.reads_payloads) for job in page]
    return JobPageView.model_construct(jobs=jobs, next=page.next)
