"""Why a job is where it is, as a value: sentences for people, and the numbers in them for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from holdfast.core.job import JobId
from holdfast.core.state import State

ReasonKind: TypeAlias = Literal[
    "queue_paused",
    "task_paused",
    "tenant_paused",
    "no_worker",
    "workers_busy",
    "comes_last",
    "limit",
    "rate",
    "breaker",
    "lifted",
    "unknown_task",
    "scheduled",
    "blocked",
    "lane",
    "alone",
    "draining",
    "expires",
    "running",
    "ended",
]
"""All kinds of reasons that there are; docs/guides/limits.md says what each of them means."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that keeps a job from running, or that is worth knowing while it waits."""

    kind: ReasonKind
    """What it is: `queue_paused`, `task_paused`, `tenant_paused`, `no_worker`, `workers_busy`, `comes_last`, `limit`,
    `rate`, `breaker`, `lifted`, `unknown_task`, `scheduled`, `blocked`, `lane`, `alone`, `draining`, `expires`,
    `running` or `ended`."""
    sentence: str
    """The same for people."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The names and numbers in it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job is where it is; as text, in one line."""

    job_id: JobId
    state: State
    held_by: tuple[Reason, ...]
    """All that keeps it from running now."""
    notes: tuple[Reason, ...] = ()
    """What else is worth knowing: its place in the lane, when it expires."""
    starts_at: datetime | None = None
    """An estimate of its start; None where nothing tells one."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Both, the most important first."""
        return (*self.held_by, *self.notes)

    def __str__(self) -> str:
        if not self.held_by:
            return f"job {self.job_id} is {self.state}" + "".join(f"; {each.sentence}" for each in self.notes)
        first, *rest = self.held_by
        why = f"is ready, but {first.sentence}" if self.state is State.READY else first.sentence
        return f"job {self.job_id} {why}" + "".join(f"; {each.sentence}" for each in (*rest, *self.notes))
