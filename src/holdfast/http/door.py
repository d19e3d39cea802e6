"""What every request passes, whatever it asks for, and what every answer carries.

Duties, in this order:
1. Pages of other sites are refused.
2. Whoever has failed too often, or has no key that opens, is refused; nothing of the body has been read by then.
3. Whoever lacks the scope, or asks beyond what the key is bound to, is refused; and whoever asks too often.
4. The body is read and checked.
5. Whatever a route raises becomes a problem; an unexpected one is logged without its words, which may hold arguments.
6. Every answer carries the headers that keep browsers from doing harm with it.
"""

from __future__ import annotations

import functools
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast.client.acts import recorded_by_caller
from holdfast.core.api_key import Scope
from holdfast.core.errors import HoldfastError
from holdfast.core.rate import parse_pace
from holdfast.http.call import Api, Call
from holdfast.http.caller import Caller
from holdfast.http.json_body import read_json
from holdfast.http.keyring import Keyring
from holdfast.http.mishaps import unexpected
from holdfast.http.problem import Problem
from holdfast.http.problems import (
    FORBIDDEN,
    INVALID_REQUEST,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    TOO_MANY_REQUESTS,
    UNAUTHENTICATED,
    problem_of,
    retry_after,
)
from holdfast.http.rates import Buckets, place_of
from holdfast.http.route_table import Spec, Takes
from holdfast.http.sites import check_site

#: What pydantic puts before the sentence of a check that is not its own.
_PREFIX: Final = "Value error, "
_log = logging.getLogger("holdfast.http")

Handle = Callable[[Request], Awaitable[Response]]

SAFE_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


_SAFE_HEADERS: Final = tuple((name.lower().encode(), value.encode()) for name, value in SAFE_HEADERS.items())


class Door:
    """See the module's duties."""

    def __init__(self, api: Api, *, origins: frozenset[str], anyone: frozenset[Scope]) -> None:
        self._api = api
        self._origins = origins
        self._anyone = anyone
        self.keyring = Keyring(api.hf)
        self._rates = Buckets(parse_pace(api.limits.rate))
        self._failures = Buckets(parse_pace(api.limits.failed_rate))

    async def __call__(self, request: Request, spec: Spec, handle: Handle) -> Response:
        """The answer to a request for a route."""
        request_id = secrets.token_hex(8)
        try:
            response = await self._serve(request, spec, handle, request_id)
        except Exception as error:
            response = answer(error, request_id=request_id, where=f"{spec.method} {spec.path}")
        # At once, as every answer passes here: no route sets one of these itself.
        response.raw_headers += [*_SAFE_HEADERS, (b"x-request-id", request_id.encode())]
        return response

    async def _serve(self, request: Request, spec: Spec, handle: Handle, request_id: str) -> Response:
        check_site(request, self._origins)
        caller, text = await self._authenticate(request)
        caller.require(spec.scope, spec.reach, request.path_params)
        if (wait_s := self._rates.take(caller.name, time.monotonic())) is not None:
            raise Problem(TOO_MANY_REQUESTS, f"the key may ask {self._api.limits.rate}", headers=retry_after(wait_s))
        if spec.takes is not Takes.NOTHING:
            limits = self._api.limits
            most = limits.batch_body if spec.takes is Takes.MANY else limits.body
            request = await read_json(request, limits, most=most, optional=spec.takes is Takes.PERHAPS)
        opens = functools.partial(self._opens, text)
        request.state.holdfast = Call(self._api, caller, request, _base(request, spec), opens, request_id)
        with recorded_by_caller():
            return await handle(request)

    async def _opens(self, text: str | None) -> bool:
        return text is None or await self.keyring.find(text) is not None

    async def _authenticate(self, request: Request) -> tuple[Caller, str | None]:
        """Who it is, and the key that he came with. Of two headers, a proxy may have believed the other one."""
        sent = request.headers.getlist("authorization")
        scheme, _, text = sent[0].partition(" ") if sent else ("", "", "")
        if not sent and self._anyone:
            return Caller("anyone", self._anyone), None
        address = place_of(request.client.host) if request.client is not None else ""
        now = time.monotonic()
        text = text.strip()
        # Many may share an address, as that of a proxy: whoever was here before is not to suffer from the others.
        if (wait_s := self._failures.left(address, now)) is not None and not self.keyring.knows(text):
            raise Problem(
                TOO_MANY_REQUESTS, "too many failed authentications from this address", headers=retry_after(wait_s)
            )
        key = await self.keyring.find(text) if scheme.lower() == "bearer" and len(sent) == 1 else None
        if key is None:
            self._failures.take(address, now)
            said = "the key is unknown, expired or revoked" if scheme else "the request carries no key"
            said = said if len(sent) < 2 else "the request carries the header Authorization more than once"
            raise Problem(UNAUTHENTICATED, said, headers={"WWW-Authenticate": 'Bearer realm="holdfast"'})
        return Caller.with_key(key), text


def answer(error: Exception, *, request_id: str, where: str) -> Response:
    """What a client is told of an error."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)  # nobody reads it
    problem = _problem(error)
    if problem is None:
        problem = unexpected(error, where=where, request_id=request_id)
    elif isinstance(error, HoldfastError) and problem.kind.status >= 500:
        _log.warning("%s: %s: %s (request %s)", where, problem.kind.name, error, request_id)
    return problem.response()


def _problem(error: Exception) -> Problem | None:
    match error:
        case Problem():
            return error
        case HoldfastError():
            return problem_of(error)
        case RequestValidationError():
            return _invalid(error)
        case HTTPException(status_code=404):
            return Problem(NOT_FOUND, "there is nothing at this address")
        case HTTPException(status_code=405):
            headers = dict(error.headers or {})
            return Problem(METHOD_NOT_ALLOWED, "this address does not take this method", headers=headers)
        case HTTPException(status_code=status) if status < 500:
            return Problem(INVALID_REQUEST if status != 403 else FORBIDDEN, "the request cannot be read")
        case _:
            return None


def _invalid(error: RequestValidationError) -> Problem:
    """Names places and rules, never values: these may be secrets."""
    wrong = [(_field(each["loc"]), str(each["msg"]).removeprefix(_PREFIX)) for each in error.errors()]
    detail = "; ".join(f"{field}: {message}" for field, message in wrong[:10])
    more = {"errors": [{"field": field, "message": message} for field, message in wrong[:100]]}
    return Problem(INVALID_REQUEST, detail, field=wrong[0][0], more=more)


def _field(loc: tuple[int | str, ...]) -> str:
    """`("body", "items", 3, "task")` as `items[3].task`."""
    _, *steps = loc if len(loc) > 1 else ("", *loc)
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _base(request: Request, spec: Spec) -> str:
    """Where the API is, for the routes whose answers lead on: their paths are as they are written."""
    whole: str = request.scope["path"]
    return whole.removesuffix(spec.path)
