"""What clients were told and what runs did, written down in memory: the first two histories of the checker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from tests.history.records import Answer, ClientCall, Op, RunEvent, RunLine
from tests.simulation.process import Process

from holdfast.worker.context import CurrentJob

if TYPE_CHECKING:
    from tests.simulation.world import World


@dataclass(slots=True)
class RunSeen:
    """One run in user code, as an onlooker of the whole world sees it."""

    job_id: UUID
    token: int
    process: Process
    began_s: float
    ended_s: float = float("inf")
    lingers: bool = False
    """It does not end when it is asked to: what it does after that is its own fault."""


class Story:
    """One for each world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.calls: list[ClientCall] = []
        self.lines: list[RunLine] = []
        self.runs: list[RunSeen] = []
        self.runs_of: Counter[UUID] = Counter()
        self.results: list[tuple[UUID, str, object]] = []
        """What waiters for an ending were told: the job, the state, the value."""

    def asked(self, op: Op, job_id: UUID, answer: Answer, told: object = None, *, key: str | None, what: str) -> None:
        now_s = self._world.now_s
        told_text = None if told is None else str(told)
        self.calls.append(
            ClientCall(op, str(job_id), answer, now_s, told_text, key=key, fingerprint=what if key else None)
        )

    @contextmanager
    def told(self, job: CurrentJob, process: Process, *, lingers: bool = False) -> Iterator[None]:
        """Around the body of a task. A process that is dead tells nothing."""
        run = RunSeen(job.id, job.token, process, self._world.now_s, lingers=lingers)
        self.runs.append(run)
        self.runs_of[job.id] += 1
        self._write(RunEvent.START, job, None)
        outcome = "ok"
        try:
            yield
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            if not process.is_dead:
                run.ended_s = self._world.now_s
                self._write(RunEvent.END, job, outcome)
                if self._world.trace is not None:
                    self._world.say(process.name, f"token {job.token} ended: {outcome}")

    def effect(self, job: CurrentJob) -> None:
        self._write(RunEvent.EFFECT, job, None)

    def unfinished(self, process: Process) -> list[int]:
        """The tokens of what was in user code there."""
        return [run.token for run in self.runs if run.process is process and run.ended_s == float("inf")]

    def _write(self, event: RunEvent, job: CurrentJob, outcome: str | None) -> None:
        line = RunLine(event, str(job.id), job.token, job.attempt, job.worker, 0, self._world.now_s, outcome)
        self.lines.append(line)
