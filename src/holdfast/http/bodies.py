"""What clients send: the shapes of bodies and parameters. Every number and text has a largest size."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Path, Query
from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
)
from pydantic_core.core_schema import CoreSchema, no_info_wrap_validator_function

from holdfast.core.breaker import MOST_FAILURES
from holdfast.core.priority import HIGHEST, LOWEST, PRIORITY_NAMES, parse_priority
from holdfast.core.queue_options import NONE
from holdfast.core.state import State
from holdfast.http.body import TEN_YEARS_S, TEXT, Body, Count, Delay, Name, Span
from holdfast.http.call_bodies import DebounceBody, RetryBody, ThrottleBody, UniqueBody
from holdfast.http.http_limits import MOST_IDS, MOST_LISTED, MOST_SUBMITTED

_QUEUE: Final = r"^[A-Za-z0-9_.-]+$"
_TASK: Final = r"^[A-Za-z0-9_.<>:-]+$"
_PATTERN: Final = r"^[A-Za-z0-9_.<>:*-]+$"

QueueName = Annotated[str, Field(min_length=1, max_length=64, pattern=_QUEUE)]
TaskName = Annotated[str, Field(min_length=1, max_length=200, pattern=_TASK)]
Pattern = Annotated[str, Field(min_length=1, max_length=200, pattern=_PATTERN)]
Why = Annotated[str, Field(min_length=1, max_length=500, pattern=TEXT)]
Priority = Annotated[
    int,
    BeforeValidator(parse_priority),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": LOWEST, "maximum": HIGHEST}, {"enum": list(PRIORITY_NAMES)}]}
    ),
]


class _OrNone:
    """Beside its own values, the word `none`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def checked(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
            return NONE if isinstance(value, str) and value == NONE else check(value)

        return no_info_wrap_validator_function(checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        own = handler(schema)
        return {"anyOf": [*own.get("anyOf", [own]), {"enum": [NONE]}]}


Timeout = Annotated[float, Field(gt=0, le=TEN_YEARS_S, allow_inf_nan=False, strict=True)]
Weight = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False, strict=True)]


def _as_text(value: object) -> object:
    """Times are written out: a number would be read as seconds since 1970, which nobody meant."""
    if not isinstance(value, str) or not value[:4].isdecimal() or value[4:5] != "-":
        raise ValueError("needs a time as text, as in 2030-01-31T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_as_text)]
JobIdPath = Annotated[UUID, Path(description="The job's id.")]
QueuePath = Annotated[str, Path(min_length=1, max_length=64, pattern=_QUEUE, description="The queue's name.")]
TaskPath = Annotated[str, Path(min_length=1, max_length=200, pattern=_TASK, description="The task's name.")]
NamePath = Annotated[str, Path(min_length=1, max_length=200, pattern=TEXT, description="Its name.")]
PatternQuery = Annotated[
    str, Query(min_length=1, max_length=200, pattern=_PATTERN, description="The very pattern that was set.")
]
LimitQuery = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]


class CallBody(Body):
    """A call of a task."""

    task: TaskName = Field(description="The task's name.", examples=["mail.send"])
    args: list[Any] = Field(default_factory=list, description="Its arguments by place.")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="Its arguments by name.")


class Submission(CallBody):
    """A job to be enqueued."""

    queue: QueueName | None = Field(default=None, description="Another queue than the task's own.")
    priority: Priority | None = Field(default=None, description="0 to 9, or a name; 9 is the most urgent.")
    tenant: Name | None = Field(default=None, description="On whose behalf; that of the key, where it is bound.")
    delay_s: Delay | None = Field(default=None, description="Not before so many seconds from now.")
    run_at: Moment | None = Field(default=None, description="Not before this moment.")
    expires_in_s: Delay | None = Field(default=None, description="Not started after so many seconds: cancelled.")
    expires_at: Moment | None = Field(default=None, description="Not started by this moment: cancelled.")
    tags: list[Name] = Field(default_factory=list, max_length=19)
    metadata: dict[str, Any] | None = Field(default=None, description="Kept with the job.")
    timeout_s: Timeout | None = Field(default=None, description="The hard limit of a run, instead of the task's.")
    soft_timeout_s: Timeout | None = Field(default=None, description="The soft limit, instead of the task's.")
    retry: RetryBody | None = Field(default=None, description="Instead of the task's.")
    unique: UniqueBody | None = Field(default=None, description="Instead of the task's; null, where it is given: none.")
    debounce: DebounceBody | None = Field(default=None, description="Instead of the task's; null: none.")
    throttle: ThrottleBody | None = Field(default=None, description="Instead of the task's; null: none.")
    key_window_s: Annotated[float, Field(ge=1, le=TEN_YEARS_S, allow_inf_nan=False, strict=True)] | None = Field(
        default=None, description="For how long the idempotency key is remembered."
    )
    wait_s: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False, strict=True)] = Field(
        default=0.0, description="How long to wait while the queue is full."
    )


class BatchItem(Submission):
    """One of many."""

    key: Annotated[str, Field(min_length=1, max_length=200, pattern=TEXT)] | None = Field(
        default=None, description="Its own idempotency key; made from the header otherwise, where that is given."
    )


class BatchBody(Body):
    """Many jobs to be enqueued; each is taken or refused by itself."""

    items: list[BatchItem] = Field(min_length=1, max_length=MOST_SUBMITTED)


class CancelBody(Body):
    """Why a job is cancelled."""

    reason: Why | None = None


class JobFilters(Body):
    """Which jobs; what is left out means any."""

    queue: QueueName | None = None
    task: TaskName | None = None
    tenant: Name | None = None
    tag: Name | None = None
    error_type: Name | None = None
    fingerprint: Name | None = None
    text: Why | None = Field(default=None, description="Words in the error's message; needs the scope read-payload.")
    reason: Name | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None

    def given(self) -> dict[str, Any]:
        """Those that were given, as `hf.jobs.list` takes them."""
        return {name: value for name in JobFilters.model_fields if (value := getattr(self, name)) is not None}


class DeadQuery(JobFilters):
    """Which dead letters, and how many of them."""

    limit: int = Field(default=50, ge=1, le=MOST_LISTED, description="How many at most.")
    before: UUID | None = Field(default=None, description="`next` of the page before.")


class JobQuery(DeadQuery):
    """Which jobs, and how many of them."""

    state: State | None = None


class DeadChoice(Body):
    """Which dead letters: ids, or filters, or everything."""

    ids: list[UUID] | None = Field(default=None, min_length=1, max_length=MOST_IDS)
    filter: JobFilters | None = None
    everything: bool = Field(default=False, strict=True, description="All of them; of a bound key, all its own.")
    dry_run: bool = Field(default=False, strict=True, description="Count them, and leave them as they are.")


class EditBody(Body):
    """Other arguments for a dead job; what is left out, by place or by name, stays as it is."""

    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None


class PriorityWeights(Body):
    """Shares of priorities among themselves, by name; those that are not named stay as they are."""

    critical: Weight | None = None
    high: Weight | None = None
    normal: Weight | None = None
    low: Weight | None = None
    bulk: Weight | None = None

    def given(self) -> dict[str, float]:
        """Those that were given."""
        return {name: value for name in PRIORITY_NAMES if (value := getattr(self, name)) is not None}


class WeightsBody(Body):
    """Other shares; what is left out stays as it is."""

    weight: Weight | None = Field(default=None, description="Of the queue; 0: only when nothing else is ready.")
    priorities: PriorityWeights | None = None


class LimitBody(Body):
    """Another size or pace for a limit; what is left out stays as it is."""

    size: Count | None = Field(default=None, description="How many run at once.")
    rate: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        default=None, description="How many begin in a time, as `100/m`, `0.5/s` or `10/30s`.", examples=["100/m"]
    )
    burst: Count | None = Field(
        default=None, description="How many at once after a rest, with `rate`; left out, it stays as it is."
    )


class OptionsBody(Body):
    """Other options of a queue; what is left out stays, and null: as each process is configured."""

    concurrency: Annotated[int, Field(ge=1, le=10_000, strict=True), _OrNone()] | None = Field(
        default=None, description="Jobs of it that one worker process runs at once; `none`: as many as it has slots."
    )
    retry_budget: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False, strict=True), _OrNone()] | None = Field(
        default=None, description="Share of retries among its runs in one process; `none`: any."
    )
    bypass_priority: Annotated[Priority, _OrNone()] | None = Field(
        default=None, description="From this priority on jobs are accepted although it is full; `none`: no job is."
    )


class FiguresBody(Body):
    """How a breaker counts; what is left out stays, and null: as the code says."""

    failures: Annotated[int, Field(ge=1, le=MOST_FAILURES, strict=True)] | None = Field(
        default=None, description="So many failed runs open it."
    )
    window_s: Span | None = Field(default=None, description="Within so many seconds.")
    open_for_s: Span | None = Field(default=None, description="For so many seconds.")


class RouteBody(Body):
    """A pattern over names of tasks, and where their jobs go; what is left out stays as it is."""

    pattern: Pattern = Field(description="`*` stands for any characters.", examples=["reports.*"])
    queue: QueueName | None = Field(default=None, description="Another queue than settings and tasks say.")
    priority: Priority | None = Field(default=None, description="0 to 9, or a name; 9 is the most urgent.")


class WatermarksBody(Body):
    """Depths and ages at which a queue stops accepting, and accepts again."""

    high: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = None
    low: Annotated[int, Field(ge=0, le=1_000_000_000, strict=True)] | None = None
    high_age_s: Annotated[float, Field(gt=0, le=1_000_000_000, allow_inf_nan=False, strict=True)] | None = None
    low_age_s: Annotated[float, Field(ge=0, le=1_000_000_000, allow_inf_nan=False, strict=True)] | None = None
