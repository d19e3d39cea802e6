"""What a task, or a call of it, says about being one too many: `Unique`, `Debounce` and `Throttle`. Values only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from holdfast.core.durations import Seconds, seconds
from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown
from holdfast.core.state import ENDINGS, LIVE, State
from holdfast.core.unique import EVER, WAITING_FOR_A_TIME, UniqueClaim, WhenTaken
from holdfast.core.unset import UNSET, Unset

By: TypeAlias = "str | Sequence[str] | Callable[..., object] | None"
"""What makes two calls the same: the names of arguments, or a function of all of them; None: all arguments."""
TakenPolicy: TypeAlias = Literal["reject", "existing", "replace"]

_POLICIES: Final = get_args(TakenPolicy)
_SHORTEST_S: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """One job at a time for the same arguments of a task and the same tenant.

    - `for_`: seconds or a timedelta, counted from the enqueueing of the job that is there. Defaults to None: for as
      long as that is in one of `states`.
    - `by`: the names of the arguments that count, or a function of all of them. Defaults to None: all.
    - `states`: those in which a job stands in the way of others: all in which it has not ended, and of the others
      (`succeeded`, `dead`, `cancelled`) those that are named. Defaults to the former; with `for_`, also `succeeded`.
    - `when_taken`: `"reject"`: the call raises `NotUnique`; `"existing"`: it gives a handle of the job that is there;
      `"replace"`: that one is cancelled, or asked to stop if it runs. Defaults to `"reject"`.
    """

    for_: Seconds | None = None
    by: By = None
    states: Collection[State | str] | None = None
    when_taken: TakenPolicy = "reject"
    claim: UniqueClaim = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for_s = None if self.for_ is None else _seconds("Unique", "for_", self.for_)
        check_by("Unique", self.by)
        if self.when_taken not in _POLICIES:
            raise InvalidOptions(f"Unique: when_taken={shown(self.when_taken)} must be one of {', '.join(_POLICIES)}")
        if self.states is not None:
            states = _states(self.states)
        else:
            states = LIVE if for_s is None else LIVE | {State.SUCCEEDED}
        object.__setattr__(self, "claim", UniqueClaim("", states, for_s, WhenTaken(self.when_taken)))


@dataclass(frozen=True, slots=True)
class Debounce:
    """The last call counts: each waits, and one that comes meanwhile for the same arguments goes instead of it.

    - `wait`: seconds or a timedelta from the last call to the run.
    - `by`: as for `Unique`.
    - `longest`: from the first call to the run at most, however many follow. Defaults to None: any time.
    """

    wait: Seconds
    _: KW_ONLY
    by: By = None
    longest: Seconds | None = None
    wait_s: float = field(init=False, repr=False, compare=False)
    claim: UniqueClaim = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wait_s = _seconds("Debounce", "wait", self.wait)
        longest_s = None if self.longest is None else _seconds("Debounce", "longest", self.longest)
        check_by("Debounce", self.by)
        if longest_s is not None and longest_s < wait_s:
            raise InvalidOptions(
                f"Debounce: longest={longest_s:g} is below wait={wait_s:g}: no call would ever wait that long"
            )
        object.__setattr__(self, "wait_s", wait_s)
        claim = UniqueClaim("", WAITING_FOR_A_TIME, None, WhenTaken.REPLACE, longest_s)
        object.__setattr__(self, "claim", claim)


@dataclass(frozen=True, slots=True)
class Throttle:
    """The first call counts: further ones for the same arguments within `every` give a handle of its job.

    - `every`: seconds or a timedelta, from the enqueueing of the job that is there.
    - `by`: as for `Unique`.
    """

    every: Seconds
    _: KW_ONLY
    by: By = None
    claim: UniqueClaim = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        every_s = _seconds("Throttle", "every", self.every)
        check_by("Throttle", self.by)
        object.__setattr__(self, "claim", UniqueClaim("", EVER, every_s, WhenTaken.EXISTING))


Once: TypeAlias = Unique | Debounce | Throttle


def once_of(
    unique: Unique | Unset | None = UNSET,
    debounce: Debounce | Seconds | Unset | None = UNSET,
    throttle: Throttle | Seconds | Unset | None = UNSET,
) -> Once | Unset | None:
    """What one level says of the three, which exclude each other; UNSET where it says nothing, None where none."""
    found = [once for once in (_unique(unique), _debounce(debounce), _throttle(throttle)) if once is not UNSET]
    said: list[Once] = [once for once in found if once is not None and not isinstance(once, Unset)]
    if len(said) > 1:
        names = " and ".join(f"{type(once).__name__.lower()}=" for once in said)
        raise InvalidOptions(f"{names} exclude each other: each says what becomes of a call too many; give one of them")
    return said[0] if said else None if found else UNSET


def check_by(what: str, by: object) -> None:
    """What makes two calls the same."""
    if by is None or (callable(by) and not inspect.iscoroutinefunction(by)) or (isinstance(by, str) and by):
        return
    names = by if isinstance(by, Sequence) and not isinstance(by, str) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidOptions(
            f"{what}: by={shown(by)} must be names of arguments, as in by=('to',), or a plain function of them; leave "
            "it out for all arguments"
        )


def _unique(value: object) -> Unique | Unset | None:
    if value is None or isinstance(value, Unset | Unique):
        return value
    raise InvalidOptions(f"unique={shown(value)}: needs a Unique(…), not {type(value).__name__}")


def _debounce(value: Debounce | Seconds | Unset | None) -> Debounce | Unset | None:
    return value if value is None or isinstance(value, Unset | Debounce) else Debounce(value)


def _throttle(value: Throttle | Seconds | Unset | None) -> Throttle | Unset | None:
    return value if value is None or isinstance(value, Unset | Throttle) else Throttle(value)


def _seconds(what: str, name: str, value: Seconds) -> float:
    try:
        return seconds(name, value, at_least=_SHORTEST_S)
    except InvalidOptions as error:
        raise InvalidOptions(f"{what}: {error}") from None


def _states(value: object) -> frozenset[State]:
    wanted = (value,) if isinstance(value, str) else value
    try:
        states = frozenset(map(State, wanted)) if isinstance(wanted, Collection) else frozenset()
    except ValueError:
        states = frozenset()
    if not states:
        raise InvalidOptions(f"Unique: states={shown(value)} must be some of the states of a job: {', '.join(State)}")
    if left_out := LIVE - states:
        raise InvalidOptions(
            f"Unique: states={shown(value)} leaves out {_listed(left_out)}: a job that has not ended goes from one of "
            "these states to another, so two of one key would run side by side; name all of them "
            f"({_listed(LIVE)}), and of {_listed(ENDINGS)} those that count as well"
        )
    return states


def _listed(states: Collection[State]) -> str:
    return ", ".join(state for state in State if state in states)
