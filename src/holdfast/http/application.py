"""The API as an application of its own: to be mounted in another one, or served."""

from __future__ import annotations

import contextlib
import importlib.util
import secrets
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, compile_path

from holdfast.app import Holdfast
from holdfast.core.api_key import Scope
from holdfast.http.door import SAFE_HEADERS, answer
from holdfast.http.http_limits import HttpLimits
from holdfast.http.problem import MEDIA_TYPE, ProblemView
from holdfast.http.router import ROOT_SPECS, SPECS, Server
from holdfast.http.sites import check_origins
from holdfast.observability import metrics_of

PREFIX: Final = "/api/v1"
_ABOUT: Final = (
    "Submit jobs, follow them, and operate the queues. A key goes with every request, as `Authorization: Bearer KEY`. "
    "Whatever is refused is told as problem details (RFC 9457): `type` says which, `remedy` what to do."
)
_ASKED_BY_PAGES: Final = ("Authorization", "Content-Type", "Idempotency-Key", "Prefer", "Last-Event-ID")
_TOLD_TO_PAGES: Final = ("Location", "Retry-After", "Idempotency-Replayed", "Preference-Applied", "X-Request-Id")


class Application(FastAPI):
    """What `asgi` makes: an ASGI application that also knows how to stop."""

    server: Server

    def setup(self) -> None:
        """FastAPI's own routes; the document goes out with the headers that every answer carries."""
        super().setup()
        [route] = [each for each in self.routes if isinstance(each, Route) and each.path == self.openapi_url]
        tell = route.endpoint

        async def told(request: Request) -> Response:
            response: Response = await tell(request)
            response.headers.update(SAFE_HEADERS)
            return response

        self.routes.remove(route)
        self.add_route(route.path, told, include_in_schema=False)

    def openapi(self) -> dict[str, Any]:
        """The document; what is refused is told under its own media type."""
        if self.openapi_schema is None:
            document = super().openapi()
            reference = f"#/components/schemas/{ProblemView.__name__}"
            for operations in document["paths"].values():
                for operation in operations.values():
                    for told in operation["responses"].values():
                        content = told.get("content", {})
                        if content.get("application/json", {}).get("schema", {}).get("$ref") == reference:
                            content[MEDIA_TYPE] = content.pop("application/json")
        assert self.openapi_schema is not None
        return self.openapi_schema


def asgi(
    hf: Holdfast,
    *,
    limits: HttpLimits | None = None,
    origins: Collection[str] = (),
    unknown_tasks: bool = False,
    anyone: Collection[Scope | str] = (),
    extra: Sequence[APIRouter] = (),
) -> Application:
    """The API of an app, as an ASGI application: `app.mount("/jobs", asgi(hf))`, or served by itself.

    - `limits`: an `HttpLimits`, for other sizes than the ones that are built in.
    - `origins`: pages of these sites may ask, as `https://shop.example`; without any, none but the server's own.
    - `unknown_tasks`: take jobs of tasks that this app does not know; some worker may know them.
    - `anyone`: scopes of whoever comes without a key; by default nobody is let in without one.
    - `extra`: further routers of yours, not behind the door.

    Where it is mounted, the app around it opens `hf` (`async with hf:`); served by itself, it opens `hf` as it starts.
    """
    server = Server(hf, limits=limits, origins=origins, unknown_tasks=unknown_tasks, anyone=anyone)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            if not hf.is_open:
                await stack.enter_async_context(hf)
            stack.push_async_callback(server.close)
            if importlib.util.find_spec("prometheus_client") is not None:
                metrics_of(hf).watch_loop()  # counts from the start, not from the first scrape
            yield

    app = Application(
        title="Holdfast",
        description=_ABOUT,
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # whoever followed would take the key where the header `Host` leads
    )
    app.server = server
    app.include_router(server.router(), prefix=PREFIX)
    app.include_router(server.watching_router())
    for router in extra:
        app.include_router(router)
    app.add_exception_handler(HTTPException, _missed)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(check_origins(origins)),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=_ASKED_BY_PAGES,
            expose_headers=_TOLD_TO_PAGES,
        )
    return app


def router(
    hf: Holdfast,
    *,
    limits: HttpLimits | None = None,
    origins: Collection[str] = (),
    unknown_tasks: bool = False,
    anyone: Collection[Scope | str] = (),
) -> APIRouter:
    """The same as a router, to be included in an app of yours: `app.include_router(router(hf))`; yours opens `hf`."""
    server = Server(hf, limits=limits, origins=origins, unknown_tasks=unknown_tasks, anyone=anyone)
    made = APIRouter()
    made.include_router(server.router(), prefix=PREFIX)
    return made


_METHODS: Final = (
    *((compile_path(PREFIX + spec.route)[0], spec.method) for spec in SPECS),
    *((compile_path(spec.route)[0], spec.method) for spec in ROOT_SPECS),
)


async def _missed(request: Request, error: Exception) -> Response:
    """What no route has taken. Each route knows its own method only; `Allow` tells those of all."""
    request_id = secrets.token_hex(8)
    if isinstance(error, HTTPException) and error.status_code == 405:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if methods := {method for regex, method in _METHODS if regex.match(path)}:
            error.headers = {"Allow": ", ".join(sorted(methods))}
    response = answer(error, request_id=request_id, where=f"{request.method} {request.url.path}")
    response.headers.update(SAFE_HEADERS | {"X-Request-Id": request_id})
    return response
