"""What the judge says: the violations, one sentence each, and the numbers worth printing after a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Violation:
    """One promise broken for one job (empty: for the store as a whole)."""

    invariant: str
    job: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.job or 'store'}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Report:
    violations: list[Violation]
    jobs: int = 0
    """In the store."""
    states: Mapping[str, int] = field(default_factory=dict)
    runs: int = 0
    """Starts of user code."""
    extra_runs: Mapping[str, int] = field(default_factory=dict)
    """Runs that did not end their job, by the cause on record."""
    lost: int = 0
    unexplained_duplicates: int = 0
    stale_writes_accepted: int = 0
    overlapping_runs: int = 0
    """Pairs of runs of one job that were in user code at the same time; no violation by itself."""
    torn_lines: int = 0

    @property
    def sound(self) -> bool:
        return not self.violations

    @property
    def broken(self) -> set[str]:
        """The names of the invariants that do not hold."""
        return {violation.invariant for violation in self.violations}

    def __str__(self) -> str:
        extra = ", ".join(f"{count} {cause}" for cause, count in sorted(self.extra_runs.items())) or "none"
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items())) or "none"
        totals = {
            "lost": self.lost,
            "unexplained duplicates": self.unexplained_duplicates,
            "stale writes accepted": self.stale_writes_accepted,
            "overlaps in user code": self.overlapping_runs,
            "torn lines": self.torn_lines,
        }
        lines = [
            f"{self.jobs} jobs ({states}); {self.runs} runs, extra: {extra}",
            ", ".join(f"{name} {count}" for name, count in totals.items()),
        ]
        per_invariant = Counter(violation.invariant for violation in self.violations)
        if self.violations:
            lines.append("broken: " + ", ".join(f"{name} ×{count}" for name, count in per_invariant.items()))
        lines += [f"  {violation}" for violation in self.violations[:_SHOWN]]
        if len(self.violations) > _SHOWN:
            lines.append(f"  … and {len(self.violations) - _SHOWN} more")
        return "\n".join(lines)
