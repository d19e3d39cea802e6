"""What becomes of a call on its way to the store and back: chosen by the seed, call by call."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random


class Fate(Enum):
    ANSWERED = auto()
    REFUSED = auto()
    """Certainly not executed, and the caller is told so."""
    CUT = auto()
    """Not executed, and the caller cannot know."""
    LOST = auto()
    """Executed; the caller hears that the answer is missing."""
    LATE = auto()
    """The caller hears that the answer is missing; it is executed after that."""
    HUNG = auto()
    """Executed at some time or never, and the caller hears nothing for long."""


@dataclass(slots=True)
class Weather:
    """How bad it is. Every seed has its own, and most have some kinds of fault only."""

    rng: Random
    lease_s: float
    rates: dict[Fate, float] = field(default_factory=dict)
    slow: float = 0.0
    """The share of calls that take long."""
    hints_lost: float = 0.0
    outage_until_s: float = 0.0
    """Nobody reaches the store until then."""

    @classmethod
    def drawn(cls, rng: Random, lease_s: float) -> Weather:
        bad = rng.choice((0.0, 0.02, 0.1, 0.3))
        faults = [fate for fate in Fate if fate is not Fate.ANSWERED and rng.random() < 0.5]
        rates = {fate: bad * rng.random() for fate in faults}
        return cls(rng, lease_s, rates, rng.choice((0.0, 0.02, 0.2)), rng.choice((0.0, 0.1, 0.5, 1.0)))

    def clear_up(self) -> None:
        self.rates = {}
        self.slow = self.hints_lost = self.outage_until_s = 0.0

    def fate(self, now_s: float) -> Fate:
        if now_s < self.outage_until_s:
            return self.rng.choice((Fate.REFUSED, Fate.REFUSED, Fate.CUT, Fate.HUNG))
        if self.rates:
            draw = self.rng.random()
            for fate, rate in self.rates.items():
                draw -= rate
                if draw < 0:
                    return fate
        return Fate.ANSWERED

    def way_s(self) -> float:
        """One way between a process and the store."""
        if self.slow and self.rng.random() < self.slow:
            return self.lease_s * self.rng.random() ** 2
        return 0.0005 + 0.004 * self.rng.random()

    def patience_s(self) -> float:
        """How long a driver waits for an answer before it gives the connection up."""
        return self.lease_s * (0.3 + 1.5 * self.rng.random())
