"""What a campaign is to be, and what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaign.faults import KINDS, RESTART, STOP_PAST_LEASE, STRIKES
from tests.campaign.samples import Sample
from tests.history import Report


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign is to be."""

    seed: int
    jobs: int = 2_000
    seconds: float = 15.0
    """How long to strike, at least."""
    workers: int = 2
    supervisors: int = 1
    producers: int = 2
    lease_s: float = 1.5
    quiet_within_s: float = 120.0
    pause_s: float = 0.4
    """Between two strikes, on average, when nothing else holds them up."""
    kills: int = 0
    """Of workers, at least."""
    restarts: int = 0
    """Of the server in immediate mode, at least, where there is one."""
    faults: frozenset[str] = frozenset(KINDS)


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    plan: Plan
    directory: Path
    store: str
    report: Report
    causes: dict[str, int]
    """Of all runs that are on record with one, also of those that never came to user code."""
    strikes: Counter[str]
    deaths: Counter[str]
    recovered_s: dict[str, list[float]]
    """Per way to be killed: seconds from each kill to the first run of one of its jobs, in order."""
    samples: list[Sample]
    fight_s: float
    seconds: float
    network_losses: int = 0
    """Answers that the proxy lost, held or left hanging."""
    pickups: str = ""
    """Where there was a Redis: how long urgent jobs waited, during its outages, after them, and otherwise."""
    incidents: list[str] = field(default_factory=list)
    """What no history shows: a process that crashed or hung, complaints in the logs, a damaged file."""

    @property
    def sound(self) -> bool:
        return self.report.sound and not self.incidents

    @property
    def kills(self) -> int:
        named = ("killed", "killed at a failpoint", "killed under a supervisor")
        return sum(self.deaths[how] for how in named)

    @property
    def killed_workers(self) -> int:
        return self.deaths["workers killed"]

    @property
    def restarts(self) -> int:
        return self.strikes[RESTART]

    @property
    def stops_past_lease(self) -> int:
        return self.strikes[STOP_PAST_LEASE]

    @property
    def strikes_by_kind(self) -> Counter[str]:
        kinds = {strike.name: strike.kind for strike in STRIKES}
        by_kind: Counter[str] = Counter()
        for name, count in self.strikes.items():
            by_kind[kinds[name]] += count
        return by_kind

    def __str__(self) -> str:
        lines = [
            f"seed {self.plan.seed}, {self.seconds:.0f} s, files in {self.directory}",
            "strikes: " + ", ".join(f"{count} × {name}" for name, count in sorted(self.strikes.items())),
            "processes: " + ", ".join(f"{count} {how}" for how, count in sorted(self.deaths.items())),
            str(self.report),
            "causes on record: " + ", ".join(f"{count} {cause}" for cause, count in sorted(self.causes.items())),
        ]
        lines += [f"pickup of urgent jobs: {self.pickups}"] if self.pickups else []
        return "\n".join([*lines, *(f"incident: {incident}" for incident in self.incidents)])
