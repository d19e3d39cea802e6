"""The routes as a table: what each takes, who may use it, what it may answer. FastAPI is told of them in `router`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeVar

from holdfast.core.api_key import Scope
from holdfast.http.caller import Reach
from holdfast.http.problem import Kind, ProblemView
from holdfast.http.problems import (
    BODY_TOO_LARGE,
    BODY_TOO_SLOW,
    CROSS_SITE,
    FORBIDDEN,
    INVALID_JSON,
    INVALID_REQUEST,
    NOT_FOUND,
    SHUTTING_DOWN,
    STORE_BROKEN,
    STORE_UNAVAILABLE,
    TOO_MANY_REQUESTS,
    UNAUTHENTICATED,
    UNEXPECTED,
    UNSUPPORTED_MEDIA_TYPE,
    statuses,
)

E = TypeVar("E", bound=Callable[..., Any])

_ALWAYS: Final = (
    *(UNAUTHENTICATED, FORBIDDEN, CROSS_SITE, INVALID_REQUEST, TOO_MANY_REQUESTS),
    *(STORE_UNAVAILABLE, STORE_BROKEN, SHUTTING_DOWN, UNEXPECTED),
)
_WITH_BODY: Final = (BODY_TOO_LARGE, BODY_TOO_SLOW, UNSUPPORTED_MEDIA_TYPE, INVALID_JSON)


class Takes(Enum):
    """What is in the body."""

    NOTHING = auto()
    PERHAPS = auto()
    """JSON, or nothing."""
    ONE = auto()
    MANY = auto()
    """JSON that may be longer."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One route."""

    method: str
    path: str
    endpoint: Callable[..., Any]
    scope: Scope
    reach: Reach
    tag: str
    status: int = 200
    takes: Takes = Takes.NOTHING
    problems: tuple[Kind, ...] = ()
    """Those that are not every route's."""
    responses: Mapping[int | str, dict[str, Any]] | None = None
    """Further answers that are no problems."""

    @property
    def route(self) -> str:
        """The path as it is matched: what is no id is nobody's address, and does not hide `jobs/batch`."""
        return self.path.replace("{job_id}", "{job_id:uuid}").replace("{batch}", "{batch:uuid}")

    def documented(self) -> dict[int | str, dict[str, Any]]:
        """What the OpenAPI document says of its answers."""
        with_body = _WITH_BODY if self.takes is not Takes.NOTHING else ()
        elsewhere = (NOT_FOUND,) if "{" in self.path else ()
        kinds = (*_ALWAYS, *with_body, *elsewhere, *self.problems)
        found: dict[int | str, dict[str, Any]] = dict(self.responses or {})
        for status, these in sorted(statuses(dict.fromkeys(kinds)).items()):
            description = "; ".join(f"{kind.title} (`{kind.name}`)" for kind in these)
            found[status] = {"model": ProblemView, "description": description}
        return found


class Routes:
    """Collects the routes of one file, under one heading of the document."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self.specs: list[Spec] = []

    def add(self, method: str, path: str, *, scope: Scope, reach: Reach, **more: Any) -> Callable[[E], E]:
        """Scope and reach have no default: nobody comes here by accident."""

        def decorate(endpoint: E) -> E:
            self.specs.append(Spec(method, path, endpoint, scope, reach, self._tag, **more))
            return endpoint

        return decorate

    def get(self, path: str, *, scope: Scope = Scope.READ, reach: Reach, **more: Any) -> Callable[[E], E]:
        """A route that changes nothing."""
        return self.add("GET", path, scope=scope, reach=reach, **more)

    def post(self, path: str, *, scope: Scope = Scope.OPERATE, reach: Reach, **more: Any) -> Callable[[E], E]:
        """A route that does something."""
        return self.add("POST", path, scope=scope, reach=reach, **more)
