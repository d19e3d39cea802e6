"""The routes as FastAPI knows them: each behind the door, whatever app they are included in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from holdfast.app import Holdfast
from holdfast.core.api_key import Scope, check_scopes
from holdfast.http import watching
from holdfast.http.call import Api
from holdfast.http.door import Door
from holdfast.http.http_limits import HttpLimits
from holdfast.http.known_queues import KnownQueues
from holdfast.http.route_table import Spec
from holdfast.http.routes import batches, dead, flow, insight, jobs, placing, queues, submitting
from holdfast.http.sites import check_origins
from holdfast.http.streams import Streams
from holdfast.http.waits import Waits

_MODULES = (submitting, jobs, batches, dead, queues, placing, flow, insight, watching)
SPECS: tuple[Spec, ...] = tuple(spec for module in _MODULES for spec in module.routes.specs)
ROOT_SPECS: tuple[Spec, ...] = tuple(watching.root_routes.specs)


class Server:
    """What one API in one process has: its routes, and how it ends."""

    def __init__(
        self,
        hf: Holdfast,
        *,
        limits: HttpLimits | None = None,
        origins: Collection[str] = (),
        unknown_tasks: bool = False,
        anyone: Collection[Scope | str] = (),
    ) -> None:
        self._hf = hf
        limits = limits or HttpLimits()
        self.streams = Streams(hf, most=limits.streams)
        self.waits = Waits(most=limits.waits)
        api = Api(hf, limits, self.streams, self.waits, KnownQueues(hf), unknown_tasks)
        allowed = check_scopes(anyone) if anyone else frozenset()
        self.door = Door(api, origins=check_origins(origins), anyone=allowed)

    def router(self) -> APIRouter:
        """The routes of the API, without a prefix."""
        return self._router(SPECS)

    def watching_router(self) -> APIRouter:
        """Those for machines that watch, which are at the root."""
        made = self._router(ROOT_SPECS)
        made.include_router(watching.open_routes(self._hf))
        return made

    def _router(self, specs: Iterable[Spec]) -> APIRouter:
        made = APIRouter()
        for spec in specs:
            made.add_api_route(
                spec.route,
                spec.endpoint,
                methods=[spec.method],
                status_code=spec.status,
                tags=[spec.tag],
                responses=spec.documented(),
                openapi_extra={"parameters": [each.documented() for each in spec.headers]} if spec.headers else None,
                name=spec.endpoint.__name__,
                operation_id=spec.endpoint.__name__,
                description=f"{spec.endpoint.__doc__}\n\nScope: `{spec.scope}`.",
                route_class_override=_behind(self.door, spec),
            )
        return made

    def stop_streams(self) -> None:
        """Tell everybody who follows a job to come again: the server is about to stop."""
        self.streams.stop()

    def stop_waits(self) -> None:
        """Tell everybody who waits for an ending that the job is stored: the server does not wait any longer."""
        self.waits.stop()

    async def close(self) -> None:
        """Write down what is left to be written down."""
        self.stop_streams()
        self.stop_waits()
        await self.door.keyring.close()


def _behind(door: Door, spec: Spec) -> type[APIRoute]:
    class DoorRoute(APIRoute):
        """A route that is reached through the door only."""

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def pass_door(request: Request) -> Response:
                return await door(request, spec, handle)

            return pass_door

    return DoorRoute
