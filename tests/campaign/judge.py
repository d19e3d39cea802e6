"""The judge of a campaign in a process of its own: it looks while the others work, and must not hold them up."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from tests.campaign.recovering import Recovering
from tests.campaign.sources import StoreSource
from tests.campaign.where import Where
from tests.history.report import Report
from tests.history.running import RunningJudge
from tests.history.telling import tell

#: A job this old has been answered for by its producer, mostly: what is heard of it later costs a second judgement.
SETTLED_S = 8.0
_TOLD = 5


@dataclass(frozen=True, slots=True)
class Tally:
    """What one look found."""

    jobs: int
    """In the store so far."""
    judged: int
    more: bool = False
    """Whether there is more to judge at once."""
    violations: list[str] = field(default_factory=list)
    stories: dict[str, str] = field(default_factory=dict)
    """Of the first jobs with a violation."""
    pids: set[int] = field(default_factory=set)
    """Processes that ran those."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of it."""

    report: Report
    tally: Tally
    causes: dict[str, int]
    recovered_s: dict[str, float]
    """Per killed worker: until the first of its jobs ran again."""


class Judge:
    """As the campaign holds it."""

    def __init__(self, directory: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._asking = threading.Lock()
        self._process = context.Process(target=_serve, args=(directory, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        return cast(int, self._process.pid)

    async def look(self) -> Tally:
        """Judge what has come to rest."""
        return cast(Tally, await asyncio.to_thread(self._ask, "look"))

    async def finish(self, killed: dict[str, float]) -> Verdict:
        """Judge the rest, when nobody works any more. `killed`: workers, and when."""
        return cast(Verdict, await asyncio.to_thread(self._ask, "finish", killed))

    def close(self) -> None:
        self._line.close()
        self._process.join(5)
        self._process.kill()

    def _ask(self, *question: object) -> Any:
        with self._asking:  # a look that nobody waits for any more has its answer all the same
            self._line.send(question)
            answer = self._line.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(directory: Path, line: Connection) -> None:
    gc.disable()  # nothing here is circular, and there is much of it
    bench = _Bench(directory)
    answers: dict[str, Callable[..., object]] = {"look": bench.look, "finish": bench.finish}
    while True:
        try:
            verb, *arguments = line.recv()
        except EOFError:
            return
        try:
            line.send(answers[verb](*arguments))
        except Exception as error:
            line.send(error)


class _Bench:
    """In that process."""

    def __init__(self, directory: Path) -> None:
        self._source = StoreSource(Where.of(directory))
        self._recovering = Recovering()
        client, runs = directory / "client", directory / "runs"
        self._judge = RunningJudge(self._source, client=client, runs=runs, saw=self._recovering.saw)

    def look(self) -> Tally:
        more = self._judge.look(before=_id_of(time.time() - SETTLED_S))
        return self._tally(more=more)

    def finish(self, killed: dict[str, float]) -> Verdict:
        while self._judge.look(before=_id_of(time.time() + 3600)):
            pass
        report = self._judge.finish()
        states = self._source.states()
        causes = self._source.grouped("SELECT cause, count(*) FROM attempt GROUP BY cause")
        return Verdict(replace(report, states=states), self._tally(), causes, self._recovering.first_s(killed))

    def _tally(self, *, more: bool = False) -> Tally:
        jobs = self._judge.seen + self._source.count_after(self._judge.watermark)
        found = self._judge.violations
        told = dict.fromkeys(violation.job for violation in found if violation.job)
        joined = {job_id: self._judge.joined_of(job_id) for job_id in list(told)[:_TOLD]}
        return Tally(
            jobs=jobs,
            judged=self._judge.judged,
            more=more,
            violations=[str(violation) for violation in found],
            stories={job_id: tell(each, job_id) for job_id, each in joined.items()},
            pids={line.pid for each in joined.values() for lines in each.starts.values() for line in lines},
        )


def _id_of(at: float) -> str:
    """The lowest id that could have been made at this time."""
    return str(UUID(int=int(at * 1000) << 80))
