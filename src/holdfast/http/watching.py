"""What machines that watch ask for: whether the process lives and is ready, its metrics, the demand for workers.

Whether it lives, and is ready, is told to everybody, because what asks has no key; of why it is not ready, only which
check failed. The reasons are told with a key.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from holdfast.app import Holdfast
from holdfast.core.errors import HoldfastError
from holdfast.http.bodies import QueuePath
from holdfast.http.call import Called
from holdfast.http.caller import Reach
from holdfast.http.door import SAFE_HEADERS
from holdfast.http.route_table import Routes
from holdfast.http.views import View
from holdfast.observability import CONTENT_TYPE, autoscale, liveness, metrics_text, readiness

#: Under the prefix of the API.
routes = Routes("watching")
#: Beside it, at the root; behind the door all the same.
root_routes = Routes("watching")


class DemandView(View):
    """How much work a queue has, and who is there for it."""

    queue: str
    value: int = Field(description="Jobs that could run now: KEDA's `valueLocation`.")
    ready: int
    running: int
    oldest_ready_s: float
    workers: int
    slots: int
    paused: bool
    known: bool


class CheckView(View):
    """One thing that was looked at."""

    status: str
    reason: str


class HealthView(View):
    """Whether the process can do its work now, and why not."""

    ready: bool
    checks: dict[str, CheckView]
    queues: dict[str, CheckView] = Field(description="Whether there are workers, by queue.")


@routes.get("/autoscale/{queue}", reach=Reach.QUEUE)
async def get_demand(call: Called, queue: QueuePath) -> DemandView:
    """The demand for workers of a queue, as KEDA's metrics-api scaler reads it."""
    return DemandView(**(await autoscale(call.hf, queue)).to_data())


@routes.get("/health", reach=Reach.CLUSTER)
async def get_health(call: Called) -> HealthView:
    """Every check, with its reason; `/health/ready` says the same without reasons, to everybody."""
    return HealthView.model_validate((await readiness(call.hf)).to_data())


@root_routes.get(
    "/metrics",
    reach=Reach.CLUSTER,
    responses={200: {"description": "For Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def get_metrics(call: Called) -> Response:
    """The metrics of this process, and of the cluster, in Prometheus' text format."""
    return Response(await metrics_text(call.hf), media_type=CONTENT_TYPE)


def open_routes(hf: Holdfast) -> APIRouter:
    """Those that need no key; they are in no document, because no program but a watching one asks."""
    made = APIRouter(include_in_schema=False)

    @made.get("/health/live")
    async def live() -> Response:
        return JSONResponse(await liveness(), headers=SAFE_HEADERS)

    @made.get("/health/ready")
    async def ready() -> Response:
        try:
            found = await readiness(hf)
        except HoldfastError:  # it is not open, yet or any more
            return JSONResponse({"ready": False, "checks": {}}, 503, headers=SAFE_HEADERS)
        checks: dict[str, Any] = {name: str(check.status) for name, check in found.checks.items()}
        body = {"ready": found.ready, "checks": checks}
        return JSONResponse(body, 200 if found.ready else 503, headers=SAFE_HEADERS)

    return made
