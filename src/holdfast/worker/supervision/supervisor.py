"""Keeps worker processes running, and never imports the code that they run.

Duties:
1. Keep as many at work as the settings say, and spares that stand by; start others when some end, with a growing delay
   when they do not even get ready.
2. Hand back at once what a process was running that died, whatever it died of (P10).
3. End what no longer does as it must: a process with a run past its hard limit, or whose heartbeat has stopped.
4. Give jobs that must run alone a process of their own.
5. Replace processes, one at a time and after their jobs have ended: on request (new code), or because of their age,
   memory or number of jobs.
6. When told to stop: let all of them drain, and end what does not.

What a process does is on its board; what becomes of jobs is the store's; this only decides about processes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from holdfast.config import Config
from holdfast.core.cause import Cause
from holdfast.core.errors import ConfigError
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.processes import told_end
from holdfast.runtime.signals import StopSignals
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.process_events import ProcessDied, ProcessFailed, ProcessKilled, ProcessReady, ProcessReplaced
from holdfast.worker.supervision.child import Child, Role
from holdfast.worker.supervision.line import Order, Word
from holdfast.worker.supervision.recovery import Recovery
from holdfast.worker.supervision.scale import Scale
from holdfast.worker.supervision.watch import LOOK_EVERY_S, STOP_MARGIN_S, Watch, describe

#: A spare is started so long after the last worker: what starts together competes for the same processor.
SPARE_AFTER_S: Final = 1.0
#: A process that worked for less than this and died was no good; so many in a row, and the next one has to wait.
SHORT_LIFE_S: Final = 5.0
SHORT_LIVES: Final = 5
#: So long for winding up after an order to end now; then it is killed.
NOW_MARGIN_S: Final = 10.0
#: A process for lonely jobs ends when it has seen none for so long.
LONELY_FOR_S: Final = 5.0


class Supervisor:
    """See the module's duties; runs once."""

    def __init__(
        self,
        command: Callable[[int, int], Sequence[str]],
        *,
        recovery: Recovery,
        telemetry: Telemetry,
        cut_short_code: int,
        hopeless_codes: Sequence[int] = (),
        on_settings: Callable[[Config], None] = lambda config: None,
        on_gone: Callable[[Child], None] = lambda child: None,
    ) -> None:
        """`on_settings` hears what every process says of its settings; `on_gone` of one that has ended, whose board
        can be read for the last time."""
        self._command = command
        self._recovery = recovery
        self._telemetry = telemetry
        self._cut_short_code = cut_short_code
        self._hopeless = hopeless_codes
        self._on_settings = on_settings
        self._on_gone = on_gone
        self._config: Config | None = None
        self._children: list[Child] = []
        self._generation = 0
        self._changed = asyncio.Event()
        self._failing = Backoff(1.0, 30.0)
        self._dying = Backoff(0.5, 5.0)  # shorter: it may be jobs that kill them, and others wait
        self._start_again_s = 0.0
        self._last_ready_s = 0.0
        self._short_lives = 0
        self._lonely_served_s = 0.0
        self._stopping = False
        self._code: int | None = None
        self._watch = Watch()
        self._scale = Scale()

    async def run(self, signals: StopSignals) -> int:
        """Until a signal, or until nothing can be started at all; returns the exit code."""
        first = asyncio.create_task(signals.wait(1))
        try:
            while not first.done() and self._code is None:
                self._look()
                self._staff()
                await self._pause(first)
            await self._stop(signals)
        finally:
            first.cancel()
            await self._recovery.close()
        return self._code or 0

    def reload(self) -> None:
        """Have every process replaced by one with the code as it is now."""
        self._generation += 1
        for child in self._children:
            child.outdated = "the code is loaded anew"
        self._changed.set()

    def tell(self) -> list[str]:
        """What every process is doing; each writes by itself where its jobs stand."""
        for child in self._children:
            child.order(Order.TELL)
        now_s = time.monotonic()
        return [line for child in self._children for line in describe(child, now_s)]

    # ------------------------------------------------------------ who is there

    @property
    def children(self) -> Sequence[Child]:
        """Every process that has not ended."""
        return self._children

    def _with(self, role: Role) -> list[Child]:
        return [child for child in self._children if child.role is role and child.leaving is None]

    @property
    def _may_retire(self) -> bool:
        """Whether one more may go on beside its successor: what it runs may last for ever, a machine is finite."""
        retiring = sum(child.role is Role.WORKER and child.leaving is not None for child in self._children)
        return self._config is not None and retiring < max(self._config.processes, self._config.most_processes)

    @property
    def _crowded(self) -> bool:
        """Whether some that were to stand by are on their way out: one more for each of them would be too many."""
        return any(child.role is Role.SPARE and child.leaving is not None for child in self._children)

    @property
    def _spares(self) -> list[Child]:
        return [child for child in self._with(Role.SPARE) if child.outdated is None]

    async def _pause(self, signal: asyncio.Task[None] | None) -> None:
        """Until something happens, or it is time to look again."""
        changed = asyncio.create_task(self._changed.wait())
        waiting = {changed} if signal is None else {changed, signal}
        # Also before any settings are known: a process that died on its way there has to be started again.
        interval_s = LOOK_EVERY_S if self._config is None else self._watch.interval_s(self._config)
        await asyncio.wait(waiting, timeout=interval_s, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        self._changed.clear()

    # ------------------------------------------------------------ staff

    def _staff(self) -> None:
        """Give everybody who is ready something to do, and start who is missing."""
        wanted = 1 if self._config is None else self._scale.wanted(self._config)
        self._dismiss(wanted)
        ready = iter([child for child in self._spares if child.is_ready])
        workers = self._with(Role.WORKER)
        missing = wanted - len(workers)
        for _ in range(missing):
            missing -= self._employ(next(ready, None), Role.WORKER)
        lonely = self._needs_solitary()
        if lonely:
            lonely -= self._employ(next(ready, None), Role.SOLITARY)
        outdated = [child for child in workers if child.outdated is not None and self._may_retire]
        if outdated and missing <= 0 and self._employ(next(ready, None), Role.WORKER):
            self._retire(outdated.pop(0))
        standing_by = 0 if self._config is None else self._config.spares
        if time.monotonic() - self._last_ready_s < SPARE_AFTER_S and not self._spares:
            standing_by = 0
        needed = max(0, missing) + lonely + min(1, len(outdated)) + standing_by
        available = sum(child.role is Role.SPARE for child in self._spares)
        if available < needed and not self._crowded and time.monotonic() >= self._start_again_s:
            self._start()
            self._changed.set()  # there may be more to start

    def _employ(self, child: Child | None, role: Role) -> int:
        if child is None:
            return 0
        child.role = role
        child.working_since_s = time.monotonic()
        child.order(Order.WORK_ALONE if role is Role.SOLITARY else Order.WORK)
        return 1

    def _dismiss(self, wanted: int) -> None:
        """Those that are no longer needed: old spares, workers beyond the number wanted, solitaries without work."""
        for child in self._with(Role.SPARE):
            if child.outdated is not None:
                self._leave(child, Order.DRAIN, child.outdated)
        workers = self._with(Role.WORKER)
        for child in sorted(workers, key=lambda each: each.board.worker().taken)[: max(0, len(workers) - wanted)]:
            if self._may_retire:
                child.outdated = "there is less to do"
                self._retire(child)
        for child in self._with(Role.SOLITARY):
            seen = child.board.worker()
            idle_s = time.monotonic() - max(child.working_since_s, seen.lonely_s)
            if child.outdated is not None:  # where there is more for it, another one is called soon
                self._lonely_served_s = time.monotonic()
                self._retire(child)
            elif not seen.taken and not child.board.runs() and idle_s > LONELY_FOR_S:
                self._lonely_served_s = time.monotonic()
                self._leave(child, Order.RETIRE, "nothing needs to run alone")

    def _needs_solitary(self) -> int:
        """1 when jobs that must run alone wait, and there may be one more process for them."""
        if self._config is None or len(self._with(Role.SOLITARY)) >= self._config.processes:
            return 0
        seen_s = max((child.board.worker().lonely_s for child in self._with(Role.WORKER)), default=0.0)
        began_s = max((child.working_since_s for child in self._with(Role.SOLITARY)), default=0.0)
        return int(seen_s > max(self._lonely_served_s, began_s + LOOK_EVERY_S))

    def _retire(self, child: Child) -> None:
        self._telemetry.emit(ProcessReplaced(child.pid, child.outdated or ""))
        self._leave(child, Order.RETIRE, child.outdated or "")

    def _leave(self, child: Child, order: Order, why: str) -> None:
        child.leaving = why
        child.leaving_since_s = time.monotonic()
        child.order(order)

    def _start(self) -> None:
        try:
            child = Child.start(self._command, generation=self._generation)
        except OSError as error:
            self._fail(f"no process could be started: {error}", self._failing)
            return
        self._children.append(child)
        child.follow(on_word=self._on_word, on_end=self._on_end)

    def _fail(self, why: str, backoff: Backoff) -> None:
        pause_s = backoff.next()
        self._start_again_s = time.monotonic() + pause_s
        self._telemetry.emit(ProcessFailed(why, pause_s))

    # ------------------------------------------------------------ what is heard

    def _on_word(self, child: Child, word: str, details: dict[str, Any]) -> None:
        match word:
            case Word.LOADED:
                self._take_settings(child, details)
            case Word.READY:
                child.is_ready = True
                self._last_ready_s = time.monotonic()
                self._failing.reset()
                self._telemetry.emit(ProcessReady(child.pid, self._last_ready_s - child.started_s))
        self._changed.set()

    def _take_settings(self, child: Child, details: dict[str, Any]) -> None:
        try:
            self._config = child.config = _settings_of(details)
        except (ConfigError, LookupError, TypeError, AttributeError) as error:
            child.kill(f"its settings cannot be understood here: {error}")
        else:
            self._recovery.open(child.config)
            self._on_settings(child.config)

    def _on_end(self, child: Child, code: int) -> None:
        self._children.remove(child)
        seen, runs = child.board.worker(), child.board.runs()
        self._on_gone(child)
        child.board.close()
        self._changed.set()
        orderly = child.killed is None and child.leaving is not None and code in (0, self._cut_short_code)
        if self._stopping and (code == self._cut_short_code or child.killed is not None):
            self._code = self._cut_short_code
        if not child.is_ready and child.leaving is None:
            self._on_stillborn(child, code)
        elif not orderly:
            self._telemetry.emit(ProcessDied(child.pid, told_end(code), len(runs)))
            self._count_short_lives(child)
        if seen.worker is not None and child.config is not None and not orderly:
            drained = self._stopping and child.killed is not None
            self._recovery.hand_back(
                seen.worker,
                child.config,
                pid=child.pid,
                why=f"its process {child.pid} {told_end(code)}" + (f": {child.killed}" if child.killed else ""),
                cause=Cause.HANDED_BACK if drained else Cause.WORKER_LOST,
                # Where the culprit is known, its neighbours are not suspected.
                suspects=[] if child.culprits else runs,
                culprits=[run for run in runs if run.token in {culprit.token for culprit in child.culprits}],
            )

    def _on_stillborn(self, child: Child, code: int) -> None:
        if code in self._hopeless and not self._last_ready_s:
            self._code = code  # wrong from the start: another try would end the same way
        else:
            self._fail(f"process {child.pid} {told_end(code)} before it was ready", self._failing)

    def _count_short_lives(self, child: Child) -> None:
        if child.role is Role.SPARE:
            return
        if child.killed is not None or time.monotonic() - child.working_since_s >= SHORT_LIFE_S:
            self._short_lives = 0
            self._dying.reset()
            return
        self._short_lives += 1
        if self._short_lives >= SHORT_LIVES:
            why = f"{self._short_lives} processes in a row have died within {SHORT_LIFE_S:g} s"
            self._fail(why, self._dying)

    # ------------------------------------------------------------ watch

    def _look(self) -> None:
        config = self._config
        if config is None:
            return
        for child, why, culprits in self._watch.look(self._at_work(), config):
            self._telemetry.emit(ProcessKilled(child.pid, why))
            child.kill(why, culprits)
        for child in self._watch.overstaying(self._children, config):
            child.kill(f"it did not end when it was told to: {child.leaving}")
        for child in self._with(Role.WORKER):
            if child.outdated is None:
                child.outdated = self._watch.worn_out(child, config)
        if config.most_processes:
            self._scale.look([child.board.worker() for child in self._with(Role.WORKER)], config, self._recovery)

    def _at_work(self) -> Iterator[Child]:
        return (child for child in self._children if child.role is not Role.SPARE and child.killed is None)

    # ------------------------------------------------------------ the end

    async def _stop(self, signals: StopSignals) -> None:
        """Drain; on a second signal, or past the time, end what is left."""
        self._stopping = True
        failed = self._code is not None
        grace_s = 0.0 if self._config is None else self._config.grace_s
        for child in self._children:
            self._leave(child, Order.NOW if failed else Order.DRAIN, "the worker stops")
        second = asyncio.create_task(signals.wait(2))
        await self._until_gone(time.monotonic() + grace_s + STOP_MARGIN_S, unless=second)
        for child in self._children:
            child.order(Order.NOW)
        await self._until_gone(time.monotonic() + NOW_MARGIN_S)
        second.cancel()
        for child in list(self._children):
            child.kill("it did not end when it was told to")
        await self._until_gone(float("inf"))

    async def _until_gone(self, deadline_s: float, *, unless: asyncio.Task[None] | None = None) -> None:
        while self._children and time.monotonic() < deadline_s and not (unless is not None and unless.done()):
            self._look()
            await self._pause(unless)


def _settings_of(details: dict[str, Any]) -> Config:
    """As a process says them, which may run a newer version of this program: what is not known here is left out."""
    known = {setting.name for setting in Config.settings()}
    return Config(**{name: value for name, value in details["settings"].items() if name in known})
