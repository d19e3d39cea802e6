"""A circuit breaker as a value: what failures and successes make of it, and whether it lets anybody through.

Closed, it lets everybody through. `failures` of them within `window_s` open it: nobody passes for `open_for_s`. Then it
is half open: one run at a time is let through as a probe. Its success closes the breaker, its failure opens it again.
What began before that says nothing new, whenever it ends.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from holdfast.core.durations import LONGEST_S

MOST_FAILURES: Final = 1_000
"""So many moments are kept of a breaker."""
SHORTEST_S: Final = 0.001
"""Neither is its window shorter, nor the time for which it opens."""


class Phase(StrEnum):
    """Whether a breaker lets runs through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerGate(NamedTuple):
    """Runs of a job pass this breaker, and tell it how they ended."""

    name: str
    failures: int
    window_s: float
    open_for_s: float

    @property
    def makes_sense(self) -> bool:
        """Whether anybody could have given it: whatever is read from where people write by hand may be anything."""
        spans = (self.window_s, self.open_for_s)
        return 1 <= self.failures <= MOST_FAILURES and all(0 <= span <= LONGEST_S for span in spans)


class BreakerFigures(NamedTuple):
    """How a breaker counts, as far as somebody says it; None: nothing is said of that."""

    failures: int | None = None
    window_s: float | None = None
    open_for_s: float | None = None

    def over(self, gate: BreakerGate) -> BreakerGate:
        """These, and where they say nothing those of the gate."""
        said = {name: value for name, value in self._asdict().items() if value is not None}
        return gate._replace(**said)


NO_FIGURES = BreakerFigures()


class BreakerState(NamedTuple):
    """What all processes know of one breaker. Times are the store's, in epoch seconds."""

    recent: tuple[float, ...] = ()
    """When it failed last, oldest first."""
    open_until: float | None = None
    """None: it is closed."""
    held: bool = False
    """An operator has opened it: it stays open until one closes it."""

    def phase(self, now: float) -> Phase:
        if self.held:
            return Phase.OPEN
        if self.open_until is None:
            return Phase.CLOSED
        return Phase.OPEN if now < self.open_until else Phase.HALF_OPEN


CLOSED = BreakerState()


class BreakerMark(NamedTuple):
    """What the run with this token says about its breaker."""

    token: int
    failed: bool
    breaker: BreakerGate
    ran_s: float = 0.0
    """How long ago the run began, when this is told."""


def after_mark(state: BreakerState, now: float, mark: BreakerMark, said: BreakerFigures = NO_FIGURES) -> BreakerState:
    """The breaker after what a run says of it. While it is half open, only runs are heard that began since then.

    `said`: what operators say of it, which goes before what the worker's code says.
    """
    if state.phase(now) is Phase.HALF_OPEN and state.open_until is not None and now - mark.ran_s < state.open_until:
        return state
    return after_failure(state, now, said.over(mark.breaker)) if mark.failed else after_success(state, now)


def after_failure(state: BreakerState, now: float, breaker: BreakerGate) -> BreakerState:
    """The breaker after one more failure."""
    match state.phase(now):
        case Phase.OPEN:
            return state
        case Phase.HALF_OPEN:
            return state._replace(open_until=now + breaker.open_for_s)
    recent = (*(at for at in state.recent if now - breaker.window_s < at <= now), now)[-breaker.failures :]
    if len(recent) < breaker.failures:
        return state._replace(recent=recent)
    return BreakerState((), now + breaker.open_for_s)


def after_success(state: BreakerState, now: float) -> BreakerState:
    """The breaker after a success: only the one of a probe closes it."""
    return CLOSED if state.phase(now) is Phase.HALF_OPEN else state
