"""One class of errors: which exceptions belong to it, and what is done when a task raises one. Values only."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from holdfast.core.errors import InvalidOptions
from holdfast.core.exception_names import NAME_HINT, ExceptionRef, can_be_name, name_of, refs_of

Then: TypeAlias = Literal["backoff", "retry_after", "fixed", "dead"]

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_THENS: Final = get_args(Then)
_A_DAY_S: Final = 86_400.0
_LONGEST_S: Final = 10 * 365 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorClass:
    """A row of the table of errors; an app's own rows (`Holdfast(errors=[…])`) are asked before the built-in ones.

    - `name`: shown with every error of the class, in small letters, as in `rate_limited`.
    - `exceptions`: types or names of types; subclasses belong, too, and what wraps one: a `URLError` with its `reason`,
      an error of SQLAlchemy. `statuses`: HTTP statuses, where the exception comes from an HTTP client. One of both is
      enough.
    - `when`: a function of the exception that has to agree as well; alone, it decides.
    - `then`: `"backoff"`: as the task's `RetryPolicy` says. `"retry_after"`: after the time that the other side asked
      for, else as `"backoff"`. `"fixed"`: after `delay` seconds, give or take half. `"dead"`: no further attempt.
    - `delay`: for `"fixed"`, seconds.
    - `max_attempts`: fewer attempts than the policy allows. Defaults to None: as many.
    - `longest`: for `"retry_after"`, seconds that are waited at most. Defaults to a day.
    - `charge`: for `"retry_after"`: False does not count a run as an attempt whose other side said when to come again;
      a job may then come back without end. Defaults to True.
    - `breaker`: whether such an error counts against the task's `Breaker`, where that names no exceptions by itself:
      the other side is down, and further runs would fail as well. Defaults to False.
    """

    name: str
    then: Then
    exceptions: type[BaseException] | Collection[ExceptionRef] = ()
    statuses: Collection[int] = ()
    when: Callable[[BaseException], object] | None = None
    delay: float | None = None
    max_attempts: int | None = None
    longest: float = _A_DAY_S
    charge: bool = True
    breaker: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidOptions(
                f"ErrorClass: name={self.name!r:.80} must be 1 to 40 small letters, digits and '_', beginning with a "
                "letter"
            )
        if self.then not in _THENS:
            raise self._wrong("then", self.then, f"must be one of {', '.join(_THENS)}")
        object.__setattr__(self, "exceptions", self._names())
        self._check_statuses()
        if self.when is not None and (not callable(self.when) or inspect.iscoroutinefunction(self.when)):
            raise self._wrong("when", self.when, "must be a function (def or lambda) of the exception")
        if not self.exceptions and not self.statuses and self.when is None:
            raise InvalidOptions(
                f"ErrorClass {self.name!r}: no exception belongs to it; give exceptions=, statuses= or when="
            )
        self._check_what_is_done()

    def _names(self) -> tuple[str, ...]:
        refs = refs_of(self.exceptions)
        if refs is None:
            raise self._wrong("exceptions", self.exceptions, "must be a list of exception types or names")
        names = []
        for ref in refs:
            name = name_of(ref)
            if name is None:
                raise self._wrong("exceptions", ref, "must be an exception type or the name of one")
            if not can_be_name(name):
                raise self._wrong("exceptions", ref, f"can be no exception's name; {NAME_HINT}")
            names.append(name)
        return tuple(names)

    def _check_statuses(self) -> None:
        if isinstance(self.statuses, (str, bytes)) or not isinstance(self.statuses, Collection):
            raise self._wrong("statuses", self.statuses, "must be a list of HTTP statuses")
        for status in self.statuses:
            if isinstance(status, bool) or not isinstance(status, int) or not 100 <= status <= 599:
                raise self._wrong("statuses", status, "must be a whole number from 100 to 599")
        object.__setattr__(self, "statuses", tuple(self.statuses))

    def _check_what_is_done(self) -> None:
        if self.then == "fixed" and self.delay is None:
            raise InvalidOptions(f"ErrorClass {self.name!r}: then='fixed' needs delay=, in seconds")
        if self.delay is not None:
            if self.then != "fixed":
                raise self._wrong("delay", self.delay, f"is for then='fixed', and this one has then={self.then!r}")
            self._check_seconds("delay", self.delay)
        self._check_seconds("longest", self.longest)
        if self.longest != _A_DAY_S and self.then != "retry_after":
            raise self._wrong(
                "longest", self.longest, f"is for then='retry_after', and this one has then={self.then!r}"
            )
        if self.max_attempts is not None:
            if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int) or self.max_attempts < 1:
                raise self._wrong("max_attempts", self.max_attempts, "must be a whole number from 1 on")
            if self.then == "dead":
                raise self._wrong("max_attempts", self.max_attempts, "has no meaning with then='dead'")
        if not isinstance(self.charge, bool):
            raise self._wrong("charge", self.charge, "must be True or False")
        if not isinstance(self.breaker, bool):
            raise self._wrong("breaker", self.breaker, "must be True or False")
        if not self.charge and self.then != "retry_after":
            raise self._wrong(
                "charge", self.charge, "is for then='retry_after': without a time from the other side, a job would "
                "come back without end"
            )  # fmt: skip

    def _check_seconds(self, field: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LONGEST_S:
            raise self._wrong(field, value, "must be from 0 seconds to ten years")

    def _wrong(self, field: str, value: object, why: str) -> InvalidOptions:
        return InvalidOptions(f"ErrorClass {self.name!r}: {field}={value!r:.80} {why}")
