"""How far jobs have come that were submitted together."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Path, Query
from pydantic import Field

from holdfast.core.state import State
from holdfast.http.body import Body
from holdfast.http.call import Called
from holdfast.http.caller import Reach
from holdfast.http.http_limits import MOST_LISTED, MOST_SUBMITTED
from holdfast.http.problem import Problem
from holdfast.http.problems import BATCH_NOT_FOUND
from holdfast.http.route_table import Routes
from holdfast.http.routes.jobs import list_narrowed, page_view
from holdfast.http.routes.submitting import BATCH_TAG
from holdfast.http.views import JobPageView, View

routes = Routes("jobs")

BatchPath = Annotated[UUID, Path(description="The batch's id.")]


class BatchStatusView(View):
    """The jobs of a batch, counted; those that an earlier request had brought are not among them."""

    batch: UUID
    total: int
    by_state: dict[State, int]
    ended: bool = Field(description="Whether all of them have ended.")


class BatchQuery(Body):
    """Which page."""

    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    before: UUID | None = None


@routes.get("/batches/{batch}", reach=Reach.JOBS, problems=(BATCH_NOT_FOUND,))
async def batch_status(call: Called, batch: BatchPath) -> BatchStatusView:
    """How many of its jobs are in which state."""
    counts: dict[State, int] = {}
    for state in State:
        for filters in call.caller.narrowed({"tag": f"{BATCH_TAG}{batch}", "state": state}):
            counts[state] = counts.get(state, 0) + await call.hf.jobs.count(**filters, most=MOST_SUBMITTED)
    if not (total := sum(counts.values())):
        raise Problem(BATCH_NOT_FOUND, f"there is no batch {batch}")
    ended = all(state.ended for state, count in counts.items() if count)
    return BatchStatusView(batch=batch, total=total, by_state=counts, ended=ended)


@routes.get("/batches/{batch}/jobs", reach=Reach.JOBS)
async def batch_jobs(call: Called, batch: BatchPath, query: Annotated[BatchQuery, Query()]) -> JobPageView:
    """The jobs of a batch, newest first, page by page."""
    filters = {"tag": f"{BATCH_TAG}{batch}"}
    return page_view(call, await list_narrowed(call, call.hf.jobs.list, filters, query.limit, query.before))
