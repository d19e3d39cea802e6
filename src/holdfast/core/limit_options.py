"""What a task says about how much of it runs: `Limit`, `Rate` and `Breaker`, checked in sentences. Values only.

How they become the gates of one job is `client.gating`; who may pass a gate is `core.gates`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Literal, TypeAlias, cast, get_args

from holdfast.core.breaker import MOST_FAILURES, SHORTEST_S, BreakerGate
from holdfast.core.durations import Seconds, seconds
from holdfast.core.errors import InvalidOptions
from holdfast.core.exception_names import NAME_HINT, ExceptionRef, can_be_name, name_of, refs_of
from holdfast.core.gates import MOST_AT_ONCE, WhenFull
from holdfast.core.names import check_limit_name, check_name
from holdfast.core.rate import Pace, parse_pace
from holdfast.core.shown import shown

KeyFunction: TypeAlias = Callable[..., object]
"""A plain function of a call's arguments, by name."""
FullPolicy: TypeAlias = Literal["wait", "skip", "replace"]

_MOST_GATES: Final = 10
_POLICIES: Final = get_args(FullPolicy)


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `size` jobs run at once, over all workers; the others wait without an attempt and without a worker.

    - `key`: a function of the call's arguments, as in `lambda account_id, **_: account_id`: a limit for each of its
      answers. Defaults to None: one for all.
    - `name`: what operators call it; tasks that give the same name share it. Defaults to `task:` and the task's name,
      or `queue:` and the queue's where it is among a queue's defaults.
    - `when_full`: `"wait"`; `"skip"`: a job that finds it full is cancelled; `"replace"`: those that run are asked to
      stop, and those that wait are cancelled. Defaults to `"wait"`.
    """

    size: int
    _: KW_ONLY
    key: KeyFunction | None = None
    name: str | None = None
    when_full: FullPolicy = "wait"

    def __post_init__(self) -> None:
        check_size("Limit: size", self.size)
        _check_key("Limit", self.key)
        if self.name is not None:
            check_limit_name(self.name)
        if self.when_full not in _POLICIES:
            raise InvalidOptions(f"Limit: when_full={shown(self.when_full)} must be one of {', '.join(_POLICIES)}")

    @property
    def policy(self) -> WhenFull:
        return WhenFull(self.when_full)


@dataclass(frozen=True, slots=True)
class Rate:
    """Runs begin at this pace at most, over all workers; the others wait without an attempt and without a worker.

    - `pace`: as in `"100/m"`: runs per s, m, h or d, or per several of them, as in `"10/30s"`.
    - `burst`: runs that may begin at once after a rest. Defaults to what one unit of time allows.
    - `key`, `name`: as for `Limit`.
    """

    pace: str
    _: KW_ONLY
    burst: int | None = None
    key: KeyFunction | None = None
    name: str | None = None
    parsed: Pace = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed", parse_pace(self.pace, burst=self.burst))
        _check_key("Rate", self.key)
        if self.name is not None:
            check_limit_name(self.name)


@dataclass(frozen=True, slots=True)
class Breaker:
    """After `failures` failed runs within `window` no job of this breaker is started for `open_for`: they wait.

    Then one run at a time is let through; its success closes the breaker, its failure opens it again.

    - `name`: tasks that give the same name share it, over all workers.
    - `failures`, `window`, `open_for`: a number, and seconds or timedeltas. Default to 5, 60 and 30.
    - `on`: the exceptions that count, types or names; subclasses count, too. Defaults to None: those whose row in the
      table of errors has `breaker=True`: downstream, transient (but for locks of databases), unavailable, and thereby
      time limits.
    """

    name: str
    failures: int = 5
    window: Seconds = 60.0
    open_for: Seconds = 30.0
    on: type[BaseException] | Collection[ExceptionRef] | None = None
    gate: BreakerGate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name("breaker", self.name)
        failures = self.failures
        if isinstance(failures, bool) or not isinstance(failures, int) or not 1 <= failures <= MOST_FAILURES:
            raise InvalidOptions(
                f"Breaker {self.name!r}: failures={shown(failures)} must be a whole number from 1 to {MOST_FAILURES:,}"
            )
        spans = {name: self._seconds(name) for name in ("window", "open_for")}
        if self.on is not None:
            object.__setattr__(self, "on", self._names())
        object.__setattr__(self, "gate", BreakerGate(self.name, failures, spans["window"], spans["open_for"]))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The exceptions that count, by name; None: the table of errors says it."""
        return cast("tuple[str, ...] | None", self.on)

    def _seconds(self, name: str) -> float:
        try:
            return seconds(name, getattr(self, name), at_least=SHORTEST_S)
        except InvalidOptions as error:
            raise InvalidOptions(f"Breaker {self.name!r}: {error}") from None

    def _names(self) -> tuple[str, ...]:
        refs = refs_of(self.on)
        names = None if refs is None else [name_of(ref) for ref in refs]
        if not names or None in names:
            raise InvalidOptions(
                f"Breaker {self.name!r}: on={shown(self.on)} must be a list of exception types or names, one at least"
            )
        for name in names:
            if not can_be_name(name):
                raise InvalidOptions(f"Breaker {self.name!r}: on={shown(name)} can be no exception's name; {NAME_HINT}")
        return tuple(name for name in names if name is not None)


Concurrency: TypeAlias = "Limit | int | Sequence[Limit | int] | None"
Rates: TypeAlias = "Rate | str | Sequence[Rate | str] | None"


def limits_of(value: object) -> tuple[Limit, ...]:
    """What was given as `concurrency=`; None is no limit."""
    found = [Limit(each) if isinstance(each, int) else each for each in _several("concurrency", value)]
    for each in found:
        if not isinstance(each, Limit):
            raise InvalidOptions(f"concurrency={shown(value)}: needs a Limit(…), a whole number, or a list of them")
    limits = tuple(cast("list[Limit]", found))
    _refuse_twins("concurrency", [each.name for each in limits])
    return limits


def rates_of(value: object) -> tuple[Rate, ...]:
    """What was given as `rate=`; None is no limit."""
    found = [Rate(each) if isinstance(each, str) else each for each in _several("rate", value)]
    for each in found:
        if not isinstance(each, Rate):
            raise InvalidOptions(f"rate={shown(value)}: needs a Rate(…), a text as '100/m', or a list of them")
    rates = tuple(cast("list[Rate]", found))
    _refuse_twins("rate", [each.name for each in rates])
    return rates


def breaker_of(value: object) -> Breaker | None:
    """What was given as `breaker=`; a text is a breaker of that name with everything else as it is by default."""
    if isinstance(value, str):
        return Breaker(value)
    if value is not None and not isinstance(value, Breaker):
        raise InvalidOptions(f"breaker={shown(value)}: needs a Breaker(…), or its name, not {type(value).__name__}")
    return value


def check_size(what: str, value: object) -> int:
    """How many may run at once."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_AT_ONCE:
        raise InvalidOptions(
            f"{what}={shown(value)} must be a whole number from 1 to {MOST_AT_ONCE:,}; to start none of a task, "
            "pause it"
        )
    return value


def _several(name: str, value: object) -> list[object]:
    if value is None:
        return []
    several = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not several:  # made up by code that found none, more likely than meant: it would let everything run
        raise InvalidOptions(f"{name}={shown(value)}: holds none; for no limit give None")
    if len(several) > _MOST_GATES:
        raise InvalidOptions(f"{name}: {len(several)} were given, at most {_MOST_GATES} can hold for one task")
    return several


def _refuse_twins(option: str, names: list[str | None]) -> None:
    twins = [name for place, name in enumerate(names) if name in names[:place]]
    if twins:
        what = "have no name" if twins[0] is None else f"are called {twins[0]!r}"
        raise InvalidOptions(f"{option}: two of them {what}; give each a name= of its own")


def _check_key(what: str, key: object) -> None:
    if key is not None and (not callable(key) or inspect.iscoroutinefunction(key)):
        raise InvalidOptions(
            f"{what}: key={shown(key)} must be a plain function of the call's arguments, as in "
            "`lambda account_id, **_: account_id`"
        )
