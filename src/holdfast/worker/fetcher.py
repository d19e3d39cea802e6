"""Claims work for free slots: weighted quotas over lanes, one claim in flight, large batches under load.

Duties:
1. Ask `intake` for as many jobs as there are free slots, shared out over the lanes by `core.fairness` (P9).
2. Under load wait a moment for more free slots, so that one claim serves many; when idle ask on every hint, and
   every `poll_s` in case a hint was lost.
3. Ask nothing of a queue that has as many jobs here as it may; its slots go to others, and it is asked again as soon
   as one of its jobs has ended.
4. Follow queue settings (weights, options, new queues) within a second.
5. When a job that must run alone waits, stop claiming until nothing runs here, take that one, and start nothing
   beside it. If others run for too long for that, go on with ordinary work and be more patient next time; a tenth
   of the time at most goes into such waiting. As long as there is nothing else to do, one follows the other. Under a
   supervisor only say that one waits: it gives such jobs a process of their own, whose fetcher takes nothing else.
6. Take, one before each round, what others parked because they do not know its task, and this worker does: in a
   rolling deploy they could claim and park it again and again if it only became ready.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto

from holdfast.client.dispatch import Dispatch
from holdfast.core.errors import LeaseLost, StoreError
from holdfast.core.fairness import Lane, Quotas
from holdfast.core.job import ClaimedJob, WorkerId
from holdfast.core.priority import HIGHEST, LOWEST
from holdfast.core.queue import QueueSettings, share_of
from holdfast.runtime.clock import Clock
from holdfast.runtime.service import Service
from holdfast.stores.base import Claim, Hint, Store
from holdfast.stores.health import StoreHealth
from holdfast.worker.intake import Intake
from holdfast.worker.slots import Slots

_GATHER_S = 0.002
_HINTS_EVERY_S = 0.02
_SETTINGS_EVERY_S = 1.0
#: Threads that hang do so for long: meanwhile others claim, who have some.
_AFTER_OTHERS_S = 1.0
_RENEWAL_S = 0.1
_LIGHTEST = 1e-6
_PARKED_EVERY_S = 2.0
_PATIENCE_S, _MOST_PATIENCE_S, _REST_FACTOR = 1.0, 60.0, 10


class Solitude(Enum):
    """What a worker does for jobs that must run alone."""

    IN_TURN = auto()
    """Runs them between others: there is no other process for them."""
    NEVER = auto()
    """Leaves them to another process."""
    ALWAYS = auto()
    """Runs nothing else."""


class Fetcher(Service):
    """See the module's duties."""

    def __init__(
        self,
        store: Store,
        worker: WorkerId,
        *,
        slots: Slots,
        queues: Mapping[str, float | None],
        known_queues: Callable[[], set[str]],
        known_tasks: Callable[[], Sequence[str]],
        start_run: Callable[[ClaimedJob], None],
        give_back: Callable[[ClaimedJob, str], None],
        on_lease_lost: Callable[[], None],
        on_crash: Callable[[Service, BaseException], None],
        is_overdue: Callable[[], bool],
        solitude: Solitude,
        on_lonely: Callable[[], None],
        on_settings: Callable[[Mapping[str, QueueSettings]], None],
        on_ignored: Callable[[str, tuple[str, ...]], None] = lambda *_: None,
        deadline_s: float,
        poll_s: float,
        clock: Clock,
        health: StoreHealth,
        dispatch: Dispatch,
    ) -> None:
        super().__init__(name="fetcher", on_crash=on_crash)
        self._store = store
        self._worker = worker
        self._slots = slots
        self._queues = queues
        self._known_queues = known_queues
        self._known_tasks = known_tasks
        self._start_run = start_run
        self._give_back = give_back
        self._on_lease_lost = on_lease_lost
        self._is_overdue = is_overdue
        self._solitude = solitude
        self._on_lonely = on_lonely
        self._on_settings = on_settings
        self._on_ignored = on_ignored
        self._ignored: dict[str, tuple[str, ...]] = {}
        self._deadline_s = deadline_s
        self._poll_s = poll_s
        self._clock = clock
        self._health = health
        self._intake = Intake(
            store, worker, dispatch, wake=self._came, on_news=lambda: self.hint(Hint.SETTINGS), clock=clock
        )
        self._quotas = Quotas({})
        self._weights: dict[Lane, float] = {}
        self._settings_at_s = float("-inf")
        self._hinted = False
        self._hinted_at_s = float("-inf")
        self._idle = True
        self._lonely = False
        self._alone_again_s = float("-inf")
        self._alone_at_once = False
        self._is_alone = False
        """A job runs alone, or is about to."""
        self._only_alone = False
        """The last job ran alone, and no other has come since."""
        self._patience_s = _PATIENCE_S
        self._parked_at_s = float("-inf")
        self._after_others_s = float("-inf")
        self.claiming = False
        slots.on_room = self.wake

    def hint(self, hint: Hint) -> None:
        """Something may have become ready."""
        if hint & (Hint.READY | Hint.SETTINGS):
            self._hinted = True
            self._intake.hint()
            if hint & Hint.SETTINGS and hint is not Hint.ANYTHING:
                self._settings_at_s = float("-inf")
            self.wake()

    def let_others_go_first(self) -> None:
        """What was claimed could not begin here: whoever else serves it is to have it, which is given back just now."""
        self._after_others_s = self._clock.monotonic() + _AFTER_OTHERS_S

    def _came(self) -> None:
        """Announcements by themselves; also while nothing more can begin here, since a connection may still wait."""
        if self._is_alone or not self._slots.free:
            self._intake.hand_on()
        self.wake()

    def ask_stop(self) -> None:
        super().ask_stop()
        self._slots.interrupt()

    async def on_stop(self) -> None:
        await self._intake.close()

    async def run(self) -> None:
        while not self.stopping.is_set():
            if not self._slots.free:
                self._intake.listen((), free=0)
                self._intake.hand_on()
                await self._slots.wait(1)
            elif self._slots.taken and self._slots.free * 4 < self._slots.size:
                await self._slots.wait(self._slots.size // 4, at_most_s=_GATHER_S)
            if self.stopping.is_set() or not self._slots.free:
                continue
            if (left_s := self._after_others_s - self._clock.monotonic()) > 0:
                await self.pause(left_s)
                continue
            try:
                if self._solitude is Solitude.ALWAYS:
                    more = await self._fetch_lonely()
                else:
                    if self._alone_at_once or (self._lonely and self._clock.monotonic() >= self._alone_again_s):
                        await self._have_time_alone()
                    more = await self._fetch_parked()
                    more = (self._slots.free > 0 and await self._fetch()) or more
                    # Ordinary work has its share of the time only if there is any; there may be more lonely ones.
                    self._alone_at_once = self._only_alone and not more
            except LeaseLost:
                self._hinted = True  # the claim has seen nothing: what it was to look at is still to be looked at
                self._on_lease_lost()  # the heartbeat finds out; a clock that jumped is no loss
                await self.pause(_RENEWAL_S)
                continue
            except (StoreError, TimeoutError) as error:
                self._hinted = True
                await self.pause(self._health.failed(error))
                continue
            self._health.worked()
            if not (more or self._alone_at_once):
                self._listen()
                await self.pause(self._poll_s)

    async def _fetch(self) -> bool:
        """One round of claims; False when there is nothing more to be had now."""
        now_s = self._clock.monotonic()
        await self._follow_settings(now_s)
        # A hint does not say which lane, so it has all of them asked; under load not more often than this.
        if self._hinted and (self._idle or now_s - self._hinted_at_s >= _HINTS_EVERY_S):
            self._hinted, self._hinted_at_s = False, now_s
            for lane in self._weights:
                self._quotas.hint(lane)
        for lane in self._intake.known(self._slots.rooms):
            self._quotas.hint(lane)
        plan = self._quotas.plan(self._slots.free, now_s, self._slots.rooms)
        if not plan:
            return False
        got = await self._claim(plan)
        spare = self._quotas.leftover(plan, got, self._slots.rooms)
        if spare or self._idle:
            await asyncio.sleep(0)  # what was claimed begins before more is asked for
        if spare:
            for lane, count in (await self._claim(spare)).items():
                got[lane] = got.get(lane, 0) + count
        self._idle = sum(got.values()) < sum(plan.values())
        # With fewer slots than lanes a round does not reach all of them; a hint may also have been put off.
        return self._hinted or self._quotas.expects(self._slots.rooms)

    async def _claim(self, plan: Mapping[Lane, int]) -> dict[Lane, int]:
        """Claim and start; returns how many rows each lane gave."""
        self.claiming = True
        runnable: Counter[tuple[str, int]] = Counter()

        def begin(claim: Claim) -> None:
            if claim.lonely:
                self._on_lonely()
            self._lonely = self._solitude is Solitude.IN_TURN and (self._lonely or claim.lonely)
            self._only_alone = self._only_alone and not claim.jobs
            runnable.update((job.queue, job.priority) for job in claim.jobs)
            for job in claim.jobs:
                self._start(job)

        wanted, plan = plan, self._intake.narrowed(plan)
        for lane in wanted.keys() - plan.keys():
            self._quotas.hint(lane)  # not asked now: it keeps its turn, else a trickle of arrivals would take each one
        try:
            async with asyncio.timeout(self._deadline_s):
                got = await self._intake.claim(plan, deadline_s=self._deadline_s / 2, on_claim=begin)
        finally:
            self.claiming = False
        for lane, asked in plan.items():
            # Limited or expired jobs took no slot, and neither did announcements of others': they are not charged.
            self._quotas.record(lane, asked=asked, got=got[lane], charged=runnable[lane])
        return got

    async def _claim_alone(self) -> int:
        """A job that must run alone, if there is one; how many were looked at."""
        self.claiming = True
        try:
            async with asyncio.timeout(self._deadline_s):
                lanes = dict.fromkeys(self._weights, 1)
                claim = await self._store.claim_jobs(self._worker, lanes, deadline_s=self._deadline_s / 2, alone=True)
            if claim.lonely:
                self._on_lonely()
            for job in claim.jobs:
                self._start(job)
        finally:
            self.claiming = False
        return sum(claim.scanned.values())

    def _listen(self) -> None:
        """Announcements may come by themselves while there is nothing to do; of queues that have room."""
        if self._solitude is not Solitude.ALWAYS:
            rooms = self._slots.rooms
            lanes = [lane for lane in self._weights if rooms.get(lane.queue) != 0] if rooms else self._weights.keys()
            self._intake.listen(lanes, free=self._slots.free)

    def _start(self, job: ClaimedJob) -> None:
        """A worker that is stopping starts nothing more; nor does a queue without room, whatever has been claimed."""
        if self.stopping.is_set():
            self._give_back(job, "the worker was stopping, it was not started")
        elif self._slots.rooms.get(job.queue) == 0:  # it has moved there since it was announced elsewhere
            self._give_back(job, f"queue {job.queue} had no room in this worker, it was not started")
        else:
            self._start_run(job)

    async def _fetch_parked(self) -> bool:
        """One job, now and then; True when it was there: there may be more."""
        now_s = self._clock.monotonic()
        if now_s - self._parked_at_s < _PARKED_EVERY_S or not (tasks := self._known_tasks()):
            return False
        rooms = self._slots.rooms
        if not (lanes := [lane for lane in self._weights if rooms.get(lane.queue) != 0]):
            return False
        self._parked_at_s, self.claiming = now_s, True
        try:
            async with asyncio.timeout(self._deadline_s):
                claim = await self._store.claim_parked(
                    self._worker, lanes, tasks=tasks, deadline_s=self._deadline_s / 2
                )
            for job in claim.jobs:
                self._start(job)
        finally:
            self.claiming = False
        if not claim.scanned:
            return False
        self._parked_at_s, self._only_alone = float("-inf"), False
        return True

    async def _fetch_lonely(self) -> bool:
        """One job, in a worker with one slot that runs nothing else."""
        await self._follow_settings(self._clock.monotonic())
        if not await self._claim_alone():
            return False
        self._on_lonely()
        return True

    async def _have_time_alone(self) -> None:
        """Others are to have what is announced meanwhile."""
        self._is_alone = True
        self._intake.listen((), free=0)
        self._intake.hand_on()
        try:
            await self._run_alone()
        finally:
            self._is_alone = False

    async def _run_alone(self) -> None:
        """One job with nothing beside it, then ordinary work again."""
        await self._slots.wait(self._slots.size, at_most_s=self._patience_s)
        if self._slots.taken or self.stopping.is_set():
            self._alone_again_s = self._clock.monotonic() + _REST_FACTOR * self._patience_s
            self._patience_s = min(_MOST_PATIENCE_S, self._patience_s * 2)
            return
        self._patience_s = _PATIENCE_S
        self._lonely = False  # the next ordinary claim tells whether there are more
        began_s = self._clock.monotonic()
        got = await self._claim_alone()
        # Nothing beside it; but one that does not end at its limit must not stop this worker for ever.
        while self._slots.free < self._slots.size and not self.stopping.is_set() and not self._is_overdue():
            await self._slots.wait(self._slots.size, at_most_s=_PATIENCE_S)
        now_s = self._clock.monotonic()
        self._alone_again_s = now_s + (now_s - began_s)  # ordinary work gets as much time as this took
        self._only_alone = not self._slots.taken and got > 0
        self._hinted = True  # every lane is looked at before the next one, also if hints were lost meanwhile
        self._intake.hint()

    async def _follow_settings(self, now_s: float) -> None:
        if now_s - self._settings_at_s < _SETTINGS_EVERY_S:
            return
        self._settings_at_s = now_s
        settings = await self._store.queue_settings()
        self._on_settings(settings)
        self._tell_ignored({name: each.ignored for name, each in settings.items() if each.ignored})
        names = set(self._queues) or (self._known_queues() | settings.keys())
        weights = {
            Lane(name, priority): _weight(settings.get(name, QueueSettings()), priority, self._queues.get(name))
            for name in sorted(names)
            for priority in range(HIGHEST, LOWEST - 1, -1)
        }
        if weights != self._weights:
            self._weights = weights
            self._quotas.set_weights(weights)

    def _tell_ignored(self, ignored: dict[str, tuple[str, ...]]) -> None:
        """Once for each queue, and again when it is other settings."""
        for queue, fields in ignored.items():
            if self._ignored.get(queue) != fields:
                self._on_ignored(queue, fields)
        self._ignored = ignored


def _weight(settings: QueueSettings, priority: int, own: float | None) -> float:
    weight = share_of(settings, priority, own)
    return weight and max(weight, _LIGHTEST)
