"""What a submission says of its own call in place of what its task says: `unique`, `debounce`, `throttle`, `retry`.

The names and meanings are those of `task.options(…)`; durations end in `_s`, and a function cannot be sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from holdfast.core.once_options import Debounce, Once, Throttle, Unique
from holdfast.core.retry import Backoff, Jitter, RetryPolicy
from holdfast.core.state import State
from holdfast.http.body import TEN_YEARS_S, Body, Delay, Name, Span

_MOST: Final = 100

Names = Annotated[list[Name], Field(min_length=1, max_length=_MOST)]


class OnceBody(Body, ABC):
    """What makes two calls the same."""

    by: Names | None = Field(default=None, description="The names of the arguments that count; null: all of them.")

    @abstractmethod
    def option(self) -> Once:
        """As the library takes it."""


class UniqueBody(OnceBody):
    """One job at a time for the same arguments of a task and the same tenant."""

    for_s: Span | None = Field(default=None, description="Seconds from its enqueueing; null: while it is in `states`.")
    states: Annotated[list[State], Field(min_length=1, max_length=_MOST)] | None = Field(
        default=None,
        description="Those in which a job stands in the way: all in which it has not ended, or more.",
    )
    when_taken: Literal["reject", "existing", "replace"] = Field(
        default="reject", description="409; the job that is there, as `replayed`; or that one is cancelled for this."
    )

    def option(self) -> Unique:
        return Unique(for_=self.for_s, by=self.by, states=self.states, when_taken=self.when_taken)


class _BriefBody(OnceBody):
    """May be given as a number, which is its one necessary member."""

    brief: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, value: object) -> object:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return {cls.brief: value} if is_number else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        made = handler.resolve_ref_schema(handler(core_schema))
        number = {"type": "number", "minimum": 0.001, "maximum": TEN_YEARS_S, "description": f"`{cls.brief}` alone."}
        return {"title": cls.__name__, "anyOf": [number, made]}


class DebounceBody(_BriefBody):
    """The last call counts: each waits, and one that comes meanwhile for the same arguments goes instead of it."""

    brief = "wait_s"
    wait_s: Span = Field(description="Seconds from the last call to the run.")
    longest_s: Span | None = Field(default=None, description="Seconds from the first call to the run, at most.")

    def option(self) -> Debounce:
        return Debounce(self.wait_s, by=self.by, longest=self.longest_s)


class ThrottleBody(_BriefBody):
    """The first call counts: further ones for the same arguments are answered with its job, as `replayed`."""

    brief = "every_s"
    every_s: Span = Field(description="Seconds from the enqueueing of the job that is there.")

    def option(self) -> Throttle:
        return Throttle(self.every_s, by=self.by)


class RetryBody(Body):
    """When a failed attempt is followed by another; what is left out is as in `RetryPolicy()`, not as in the task."""

    max_attempts: Annotated[int, Field(ge=1, le=_MOST, strict=True)] = Field(
        default=5, description="Runs in all, the first included."
    )
    base: Delay = Field(default=1.0, description="Seconds.")
    cap: Delay = Field(default=60.0, description="Seconds; bounds a backoff that grows.")
    backoff: Backoff | Annotated[list[Delay], Field(min_length=1, max_length=_MOST)] = "exponential"
    jitter: Jitter = "full"
    retry_on: Annotated[list[Name], Field(max_length=_MOST)] | None = Field(
        default=None, description="Only these exceptions, by name; null: all."
    )
    give_up_on: Annotated[list[Name], Field(max_length=_MOST)] = Field(default_factory=list)
    delays: Annotated[dict[Name, Delay], Field(max_length=_MOST)] = Field(
        default_factory=dict, description="Seconds for certain exceptions, by name, instead of the backoff."
    )

    def option(self) -> RetryPolicy:
        """As the library takes it."""
        return RetryPolicy(**self.model_dump())


ONCE: Final[Mapping[str, type[OnceBody]]] = {"unique": UniqueBody, "debounce": DebounceBody, "throttle": ThrottleBody}
