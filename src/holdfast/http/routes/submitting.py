"""Enqueue jobs: one, or many of which each is taken or refused by itself."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import re
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from fastapi import Response
from pydantic import Field

from holdfast.client.handle import JobHandle
from holdfast.client.task import Task
from holdfast.core.api_key import Scope
from holdfast.core.errors import HoldfastError, IdempotencyConflict, InvalidOptions, NotUnique, OutcomeUnknown
from holdfast.core.ids import new_job_id
from holdfast.core.job import JobId
from holdfast.http.bodies import BatchBody, BatchItem, CallBody, Submission
from holdfast.http.call import Call, Called
from holdfast.http.caller import Reach
from holdfast.http.header_spec import HeaderSpec
from holdfast.http.links import batch_links, job_links
from holdfast.http.mishaps import unexpected
from holdfast.http.overrides import check_by, check_replacing, overrides_of
from holdfast.http.problem import Problem
from holdfast.http.problems import (
    IDEMPOTENCY_CONFLICT,
    INVALID_ARGUMENTS,
    INVALID_REQUEST,
    NOT_ROUTED,
    NOT_UNIQUE,
    OUTCOME_UNKNOWN,
    QUEUE_FULL,
    UNKNOWN_TASK,
    problem_of,
)
from holdfast.http.route_table import Routes, Takes
from holdfast.http.views import JobView, View, job_view

routes = Routes("jobs")

BATCH_TAG: Final = "batch:"
_REFUSALS: Final = (
    *(UNKNOWN_TASK, INVALID_ARGUMENTS, NOT_ROUTED, IDEMPOTENCY_CONFLICT, NOT_UNIQUE, QUEUE_FULL, OUTCOME_UNKNOWN),
)
_WAIT: Final = re.compile(r"(?:^|,)\s*wait\s*=\s*(\d{1,6})\s*(?:,|;|$)")

_KEY: Final = HeaderSpec(
    "Idempotency-Key",
    "The same key and the same call: one job, whose id every repetition is answered with.",
    most=200,
    alone=True,
)
_PREFER: Final = HeaderSpec("Prefer", "`wait=10`: wait so many seconds for the ending.", most=200)


class SubmittedView(View):
    """A job that was taken."""

    id: UUID
    location: str
    replayed: bool = Field(description="An earlier request has brought it: the key, or what makes it unique, says so.")


class ItemView(View):
    """What became of one of many."""

    index: int
    status: int
    job: SubmittedView | None = None
    problem: dict[str, Any] | None = None


class BatchView(View):
    """What became of many, in order."""

    batch: UUID
    location: str = Field(description="Where its status is.")
    accepted: int
    refused: int
    items: list[ItemView]


@routes.post(
    "/jobs",
    scope=Scope.SUBMIT,
    reach=Reach.JOBS,
    status=202,
    takes=Takes.ONE,
    headers=(_KEY, _PREFER),
    problems=_REFUSALS,
    responses={
        200: {"model": JobView, "description": "It has ended within the time that `Prefer: wait` names"},
        202: {"model": SubmittedView, "description": "It is stored", "links": job_links("$response.body#/id")},
    },
)
async def submit(call: Called, body: Submission) -> Response:
    """Enqueue a job. It is stored when this answers."""
    handle = await _enqueue(call, body, _KEY.read(call.headers))
    taken = _taken(call, handle)
    headers = {"Location": taken.location} | ({"Idempotency-Replayed": "true"} if taken.replayed else {})
    wait_s = min(_wanted_s(_PREFER.read(call.headers)), call.api.limits.wait_s)
    if wait_s and Scope.READ in call.caller.scopes:
        headers["Preference-Applied"] = f"wait={wait_s:g}"
        if (ended := await _ended(call, handle, wait_s)) is not None:
            return Response(ended.model_dump_json(), 200, headers, "application/json")
    return Response(taken.model_dump_json(), 202, headers, "application/json")


@routes.post(
    "/jobs/batch",
    scope=Scope.SUBMIT,
    reach=Reach.JOBS,
    status=207,
    takes=Takes.MANY,
    headers=(_KEY,),
    problems=(OUTCOME_UNKNOWN,),
    responses={207: {"description": "What became of each", "links": batch_links("$response.body#/batch")}},
)
async def submit_many(call: Called, body: BatchBody, response: Response) -> BatchView:
    """Enqueue up to 1,000 jobs. Each is taken or refused by itself, with the status that it would have had alone."""
    key = _KEY.read(call.headers)
    batch = new_job_id() if key is None else uuid5(NAMESPACE_URL, f"{call.caller.tenant or ''}\n{key}")
    items = await asyncio.gather(
        *(
            _item(call, index, item, batch, item.key or (key and f"{key}/{index}"))
            for index, item in enumerate(body.items)
        )
    )
    accepted = sum(item.job is not None for item in items)
    location = f"{call.base}/batches/{batch}"
    response.headers["Location"] = location
    return BatchView(batch=batch, location=location, accepted=accepted, refused=len(items) - accepted, items=items)


async def _item(call: Call, index: int, item: BatchItem, batch: UUID, key: str | None) -> ItemView:
    try:
        handle = await _enqueue(call, item, key, tag=f"{BATCH_TAG}{batch}")
    except Exception as error:  # whatever becomes of one, the others are stored: it is told of by itself
        known = problem_of(error) if isinstance(error, HoldfastError) else None
        problem = error if isinstance(error, Problem) else known
        if problem is None:
            problem = unexpected(error, where=f"items[{index}] of a batch", request_id=call.id)
        if problem.field is not None:
            problem.field = f"items[{index}].{problem.field}"
        return ItemView(index=index, status=problem.kind.status, problem=problem.body())
    return ItemView(index=index, status=202, job=_taken(call, handle))


async def _enqueue(call: Call, body: Submission, key: str | None, *, tag: str | None = None) -> JobHandle[Any]:
    task = task_of(call, body).options(**options_of(call, body, key, tag))
    request = task.request(*body.args, **body.kwargs)
    check_replacing(call.caller, request)
    check_by(request, body)
    if body.queue is not None:
        await _check_known(call, body.queue)
    if call.caller.queues is not None:
        await call.hf.routes.look()
        queue = call.hf.placement(request).queue.value
        call.caller.check_queue(queue)
        task = task.options(queue=queue)  # what was allowed is what is done, whatever operators say meanwhile
    try:
        # Who stops to wait takes nothing back: it is asked again behind his back, for as long as the settings say.
        async with asyncio.timeout(call.api.limits.store_s + body.wait_s):
            handle = await task.enqueue(*body.args, **body.kwargs)
    except (IdempotencyConflict, NotUnique) as error:
        await check_own(call, str(error.job_id), by_key=isinstance(error, IdempotencyConflict))
        raise
    except TimeoutError:
        raise OutcomeUnknown(f"the store did not answer within {call.api.limits.store_s:g} s") from None
    if handle.existing:
        await check_own(call, handle.id, by_key=key is not None)
    return handle


async def _check_known(call: Call, queue: str) -> None:
    """Only who may operate makes a new queue by naming it; a key that is bound to it was made by somebody who may."""
    caller = call.caller
    if Scope.OPERATE in caller.scopes or caller.queues is not None or await call.api.queues.has(queue):
        return
    detail = f"there is no queue {queue!r}: no task, route or setting names it, and it has never had a job"
    raise Problem(INVALID_REQUEST, f"{detail}; a key with the scope operate may make it", field="queue")


async def check_own(call: Call, job_id: JobId | str, *, by_key: bool) -> None:
    """Keys, and what makes jobs unique, hold for all queues: they may lead to a job that is not his to hear of."""
    if call.caller.queues is not None:
        [job] = await call.hf.jobs.get_many([job_id])
        if job is not None and not call.caller.sees(job):
            kind, what = (IDEMPOTENCY_CONFLICT, "it") if by_key else (NOT_UNIQUE, "what has to be unique")
            raise Problem(kind, f"{what} belongs to a job in a queue that the key is not for") from None


def task_of(call: Call, body: CallBody) -> Task[..., Any]:
    """The task that a call names; a Problem where nobody here knows it."""
    task = call.hf.named(body.task)
    if task.signature is None and not call.api.unknown_tasks:
        raise unknown_task(call, body.task)
    return task


def unknown_task(call: Call, name: str) -> Problem:
    """With the nearest names that are known."""
    near = difflib.get_close_matches(name, [task.name for task in call.hf.tasks], n=3, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return Problem(UNKNOWN_TASK, f"no task is called {name!r} here{hint}", field="task", more={"known": near})


def options_of(call: Call, body: Submission, key: str | None, tag: str | None) -> dict[str, Any]:
    """A submission as the library takes it, on behalf of this caller."""
    if body.tenant is not None:
        call.caller.check_tenant(body.tenant)
    if any(each.startswith(BATCH_TAG) for each in body.tags):
        raise Problem(INVALID_REQUEST, f"tags that begin with {BATCH_TAG!r} are given by the server", field="tags")
    given: dict[str, Any] = {
        "queue": body.queue,
        "priority": body.priority,
        "tenant": body.tenant if body.tenant is not None else call.caller.tenant,
        "delay": body.delay_s,
        "run_at": body.run_at,
        "expires": body.expires_in_s if body.expires_at is None else body.expires_at,
        "tags": [*body.tags, *([] if tag is None else [tag])] or None,
        "metadata": body.metadata,
        "timeout": body.timeout_s,
        "soft_timeout": body.soft_timeout_s,
        "key": key,
        "key_window": body.key_window_s,
    }
    if body.expires_in_s is not None and body.expires_at is not None:
        raise InvalidOptions("expires_in_s and expires_at say two different times; give one of them")
    said = {name: value for name, value in given.items() if value is not None}
    return said | overrides_of(body) | {"wait": body.wait_s}


def _taken(call: Call, handle: JobHandle[Any]) -> SubmittedView:
    location = f"{call.base}/jobs/{handle.id}"
    return SubmittedView(id=handle.id, location=location, replayed=handle.existing)


def _wanted_s(prefer: str | None) -> float:
    """The seconds of `Prefer: wait=…` (RFC 7240); what cannot be read is not preferred."""
    found = _WAIT.search(prefer) if prefer else None
    return float(found[1]) if found else 0.0


async def _ended(call: Call, handle: JobHandle[Any], wait_s: float) -> JobView | None:
    """None: nobody can say that it has. It is stored: whatever fails here must not read as if it were not."""
    if await call.api.waits.until(handle.result(), call.gone(), within_s=wait_s):
        with contextlib.suppress(HoldfastError):
            job = await call.job(str(handle.id))
            if job.state.ended and await call.opens():
                return job_view(job, payloads=call.caller.reads_payloads)
    return None
