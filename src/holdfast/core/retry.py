"""Whether and when a failed job runs again. Lost processes (`loss`) and `RetryLater` are not counted here.

Exception types are kept and compared by name: a policy given with a call is stored as data and read by a
worker that may not be able to import the caller's classes, and must not import what data names.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, Literal, TypeAlias, cast

from holdfast.core.errors import InvalidOptions
from holdfast.core.exception_names import ExceptionRef, lineage, listed, name_of, refs_of
from holdfast.core.shown import shown

Backoff: TypeAlias = Literal["exponential", "linear", "fixed"]
Jitter: TypeAlias = Literal["full", "none"]

_BACKOFFS: Final = ("exponential", "linear", "fixed")
_JITTERS: Final = ("full", "none")
_MOST_ATTEMPTS: Final = 1_000_000
_LONGEST_S: Final = 10 * 365 * 86_400.0
_DOUBLINGS: Final = 1_023  # 2.0 ** 1024 overflows; any cap is reached long before


class Ruling(Enum):
    """What a policy says of an exception by naming it, or by naming others only."""

    NONE = auto()
    """Nothing: whatever else knows the exception decides."""
    RETRY = auto()
    GIVE_UP = auto()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a failed attempt is followed by another.

    - `max_attempts`: runs in all, the first included. Defaults to 5.
    - `base`, `cap`: seconds; `cap` bounds the growing backoffs (exponential, linear). Default to 1 and 60.
    - `backoff`: `"exponential"` (base, 2·base, 4·base, …), `"linear"` (base, 2·base, 3·base, …), `"fixed"` (base), or
      a list of seconds of which the last repeats. Defaults to `"exponential"`.
    - `jitter`: `"full"` draws each delay evenly from zero to what the backoff says, so that jobs that failed together
      do not come back together; `"none"` takes it as it is. Defaults to `"full"`.
    - `retry_on`: only these exceptions and their subclasses are retried. Defaults to None: all.
    - `give_up_on`: these and their subclasses are not; stronger than `retry_on`. Defaults to none.
    - `delays`: seconds for certain exceptions, taken as they are instead of backoff and jitter; the most specific
      class wins. Defaults to none.

    Exceptions are given as types, or as text: a bare class name or `module.qualname`. They read back as text.
    """

    max_attempts: int = 5
    base: float = 1.0
    cap: float = 60.0
    backoff: Backoff | Sequence[float] = "exponential"
    jitter: Jitter = "full"
    retry_on: type[BaseException] | Collection[ExceptionRef] | None = None
    give_up_on: type[BaseException] | Collection[ExceptionRef] = ()
    delays: Mapping[ExceptionRef, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int):
            raise _wrong("max_attempts", self.max_attempts, "must be a whole number")
        if not 1 <= self.max_attempts <= _MOST_ATTEMPTS:
            raise _wrong("max_attempts", self.max_attempts, f"must be 1 (no retry) to {_MOST_ATTEMPTS:,}")
        self._set("base", _seconds("base", self.base))
        self._set("cap", _seconds("cap", self.cap))
        self._set("backoff", _backoff(self.backoff))
        if self.backoff in ("exponential", "linear") and self.base > self.cap:
            raise _wrong("base", self.base, f"is above cap={self.cap:g}; raise cap, or use backoff='fixed'")
        if self.jitter not in _JITTERS:
            raise _wrong("jitter", self.jitter, "must be 'full' or 'none'")
        if self.retry_on is not None:
            self._set("retry_on", _names("retry_on", self.retry_on))
        self._set("give_up_on", _names("give_up_on", self.give_up_on))
        if not isinstance(self.delays, Mapping):
            raise _wrong("delays", self.delays, "must map exception types to seconds")
        self._set(
            "delays",
            {
                _name("delays", ref): _seconds(f"delays[{_name('delays', ref)}]", seconds)
                for ref, seconds in self.delays.items()
            },
        )

    def decide(self, exc: BaseException, attempt: int, *, rng: Callable[[], float] = random.random) -> float | None:
        """Seconds from this attempt (counted from 1), failed with `exc`, to the next; None: give up."""
        if attempt >= self.max_attempts or self.ruling(exc) is Ruling.GIVE_UP:
            return None
        delay_s = self.delay_for(exc)
        return self.backoff_s(attempt, rng=rng) if delay_s is None else delay_s

    def ruling(self, exc: BaseException) -> Ruling:
        """What the policy itself says of an exception, whatever attempt it was."""
        names = list(lineage(type(exc)))
        if listed(names, self.give_up_on):
            return Ruling.GIVE_UP
        if self.retry_on is None:
            return Ruling.NONE
        return Ruling.RETRY if listed(names, self.retry_on) else Ruling.GIVE_UP

    def delay_for(self, exc: BaseException) -> float | None:
        """The seconds that `delays` gives for an exception; None where it does not name it."""
        return next((self.delays[name] for name in lineage(type(exc)) if name in self.delays), None)

    def backoff_s(self, attempt: int, *, rng: Callable[[], float] = random.random) -> float:
        """The seconds after this attempt, with jitter where that is wanted."""
        delay_s = self.longest_s(attempt)
        return rng() * delay_s if self.jitter == "full" else delay_s

    def to_data(self) -> dict[str, Any]:
        """The policy as JSON types."""
        return {
            "max_attempts": self.max_attempts,
            "base": self.base,
            "cap": self.cap,
            "backoff": self.backoff if isinstance(self.backoff, str) else list(self.backoff),
            "jitter": self.jitter,
            "retry_on": None if self.retry_on is None else list(cast(tuple[str, ...], self.retry_on)),
            "give_up_on": list(cast(tuple[str, ...], self.give_up_on)),
            "delays": dict(self.delays),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> RetryPolicy:
        """The policy that `to_data` described; what a newer version may have added to it is passed over."""
        if not isinstance(data, Mapping):
            raise InvalidOptions(f"a stored retry policy must be an object, not {type(data).__name__}")
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})

    def longest_s(self, attempt: int) -> float:
        """The seconds after this attempt, before jitter."""
        match self.backoff:
            case "exponential":
                return min(self.cap, self.base * 2.0 ** min(max(attempt - 1, 0), _DOUBLINGS))
            case "linear":
                return min(self.cap, self.base * attempt)
            case "fixed":
                return self.base
            case delays:
                return delays[min(max(attempt, 1), len(delays)) - 1]

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def _name(where: str, ref: object) -> str:
    name = name_of(ref)
    if name is None:
        raise _wrong(where, ref, "must be an exception type or the name of one")
    return name


def _names(where: str, value: object) -> tuple[str, ...]:
    refs = refs_of(value)
    if refs is None:
        raise _wrong(where, value, "must be a list of exception types or names")
    return tuple(_name(where, ref) for ref in refs)


def _backoff(value: object) -> Backoff | tuple[float, ...]:
    if isinstance(value, str):
        if value not in _BACKOFFS:
            close = difflib.get_close_matches(value, _BACKOFFS, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise _wrong("backoff", value, f"must be one of {', '.join(_BACKOFFS)} or a list of seconds{hint}")
        return cast(Backoff, value)
    if not isinstance(value, (list, tuple)):
        raise _wrong("backoff", value, f"must be one of {', '.join(_BACKOFFS)} or a list of seconds")
    if not value:
        raise _wrong("backoff", value, "is an empty list; give at least one delay in seconds")
    return tuple(_seconds(f"backoff[{index}]", seconds) for index, seconds in enumerate(value))


def _seconds(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(where, value, "must be a number of seconds")
    if not 0 <= value <= _LONGEST_S:
        raise _wrong(where, value, "must be from 0 seconds to ten years")
    return float(value)


def _wrong(where: str, value: object, why: str) -> InvalidOptions:
    return InvalidOptions(f"RetryPolicy: {where}={shown(value)} {why}")
