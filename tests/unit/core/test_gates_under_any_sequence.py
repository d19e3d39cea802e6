"""Admission under any sequence of claims, endings, time and rules: no gate ever lets more through than it should."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.breaker import CLOSED, BreakerGate, BreakerState, Phase, after_failure, after_success
from holdfast.core.gates import Barrier, Candidate, Gate, Passed, Place, RateGate, SlotGate, Usage, WhenFull, admit
from holdfast.core.rate import Pace

LIMITS = [SlotGate("one", 1), SlotGate("two", 2), SlotGate("two", 2, when_full=WhenFull.SKIP)]
RATES = [RateGate("slow", Pace(1, 10.0, 1)), RateGate("quick", Pace(2, 1.0, 3))]
BANK = BreakerGate("bank", 2, 30.0, 5.0)
AT_BANK = Place(Barrier.BREAKER, "bank")
GATES: list[Gate] = [*LIMITS, *RATES, BANK]

candidates = st.lists(st.sampled_from(GATES), max_size=4).map(lambda gates: Candidate("t", "q", "", tuple(gates)))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.lists(candidates, min_size=1, max_size=4)),
        st.tuples(st.just("succeed"), st.integers(0, 5)),
        st.tuples(st.just("fail"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.1, 0.5, 1.0, 6.0])),
    ),
    max_size=60,
)


@dataclass
class _World:
    """A store in a few lines: what it keeps is what `admit` is asked with."""

    now: float = 1000.0
    full_at: dict[str, float] = field(default_factory=dict)
    breaker: BreakerState = CLOSED
    running: list[tuple[Candidate, Passed]] = field(default_factory=list)
    starts: dict[str, list[float]] = field(default_factory=dict)

    def claim(self, some: list[Candidate]) -> None:
        held = Counter(place for _, passed in self.running for place in passed.takes)
        phase = self.breaker.phase(self.now)
        usage = Usage(self.now, dict(held), dict(self.full_at), {"bank": self.breaker})
        for candidate, admission in zip(some, admit(some, usage), strict=True):
            if isinstance(admission, Passed):
                assert phase is not Phase.OPEN or BANK not in candidate.gates
                self.running.append((candidate, admission))
                for key in admission.spends:
                    self.starts.setdefault(key, []).append(self.now)
        self.full_at = usage.full_at

    def end(self, number: int, *, failed: bool) -> None:
        if self.running:
            candidate, _ = self.running.pop(number % len(self.running))
            if BANK in candidate.gates:
                self.breaker = (
                    after_failure(self.breaker, self.now, BANK) if failed else after_success(self.breaker, self.now)
                )


@given(steps)
def test_no_gate_lets_more_through_than_it_should(told: list[tuple[str, object]]) -> None:
    world = _World()
    for verb, value in told:
        match verb, value:
            case "claim", list():
                world.claim(value)
            case (("succeed" | "fail"), int()):
                world.end(value, failed=verb == "fail")
            case "wait", float():
                world.now += value
        using = Counter(gate for candidate, _ in world.running for gate in set(candidate.gates))
        by_key = Counter({gate.key: 0 for gate in LIMITS})
        for candidate, _ in world.running:
            by_key.update({gate.key for gate in candidate.gates if isinstance(gate, SlotGate)})
        assert all(by_key[gate.key] <= gate.size for gate in LIMITS), using
        probes = [passed for _, passed in world.running if AT_BANK in passed.takes]
        assert len(probes) <= 1, "never two probes"
    for rate in RATES:
        times = world.starts.get(rate.key, [])
        for first, at in enumerate(times):
            for number, later in enumerate(times[first:], start=1):
                assert number <= rate.pace.burst + (later - at) / rate.pace.gap_s + 1e-4
