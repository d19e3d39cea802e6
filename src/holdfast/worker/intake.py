"""Where a worker's jobs come from: those that were announced, claimed by their ids, and the rest from the store.

Duties:
1. Read announcements within each lane's quota, and claim those jobs. What cannot be claimed was taken or has ended: it
   is acknowledged, as what was claimed is, after the store has committed.
2. Of every lane take a tenth straight from the store, oldest first, and all that is left where the announcements came
   short: so a lost one costs seconds at most, also in a backlog. Tenths are saved up, so that one claim in a few rounds
   takes them together. A lane of which the store had nothing is not looked at again for a moment, or a hint: what is
   new there is announced.
3. Where announcements name no job (lanes with tenants), the store's order decides: they are a reason to look there.
4. While idle, have announcements come by themselves. What there is no room for then is handed on.
5. Without a transport, or while it is away, the store is all there is; nothing else changes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping

from holdfast.client.dispatch import Dispatch
from holdfast.core.fairness import Lane
from holdfast.core.job import WorkerId
from holdfast.runtime.clock import Clock
from holdfast.runtime.failpoints import FailpointHit, afailpoint
from holdfast.stores.base import Claim, Store
from holdfast.stores.moments import struck
from holdfast.transports.base import Entry
from holdfast.transports.moments import FETCH_BEGIN, FETCH_CLAIMED, FETCH_DONE

#: Of every lane's quota this share comes from the store, whatever was announced.
STORE_SHARE = 0.1
#: For so long nobody looks again into a lane of which the store had nothing, unless something says that it has.
LOOK_EVERY_S = 0.1
#: Tenths are claimed when there are so many of them, or half as many as are asked for, or after so long.
_SAVED_UP, _SAVED_FOR_S = 100, 0.25
_LISTENED_AT_ONCE = 10


class Intake:
    """See the module's duties. Belongs to one worker's fetcher."""

    def __init__(
        self,
        store: Store,
        worker: WorkerId,
        dispatch: Dispatch,
        *,
        wake: Callable[[], None],
        on_news: Callable[[], None] = lambda: None,
        clock: Clock,
    ) -> None:
        self._store = store
        self._worker = worker
        self._entries = dispatch.store
        self._consumer = dispatch.transport.consumer(worker.hex, wake=wake, on_news=on_news)
        self._clock = clock
        self._held: dict[Lane, deque[Entry]] = {}
        self._more: frozenset[Lane] = frozenset()
        self._shares: dict[Lane, float] = {}
        self._shared_at_s = float("-inf")
        self._look_at_s: dict[Lane, float] = {}

    def hint(self) -> None:
        """Something may be ready that was not announced."""
        self._look_at_s.clear()

    def known(self, rooms: Mapping[str, int]) -> Iterable[Lane]:
        """Lanes that have work; what there is no room for is handed on."""
        self._keep(self._consumer.arrived())
        self.hand_on(lane for lane in self._held if rooms.get(lane.queue) == 0)
        return self._more.union(self._held)

    def narrowed(self, plan: Mapping[Lane, int]) -> Mapping[Lane, int]:
        """What came by itself goes first, and by itself: it is here already."""
        if not self._held:
            return plan
        self.hand_on(self._held.keys() - plan.keys())
        return {lane: min(plan[lane], len(entries)) for lane, entries in self._held.items()} or plan

    async def claim(
        self, plan: Mapping[Lane, int], *, deadline_s: float, on_claim: Callable[[Claim], None]
    ) -> dict[Lane, int]:
        """Jobs for these quotas, handed over as they come; how many places of each lane were looked at. Fewer than the
        quota: neither announcements nor the store have more of it."""
        found: Counter[Lane] = Counter()
        woken: set[Lane] = set()
        if self._held or self._consumer.is_up:
            entries = await self._read(plan)
            jobs = [entry for entry in entries if entry.job_id is not None]
            woken = {entry.lane for entry in entries if entry.job_id is None}
            found.update(entry.lane for entry in jobs)
            await self._claim_announced(jobs, deadline_s=deadline_s, on_claim=on_claim)
            self._consumer.ack(entries)
        quotas = self._from_store(plan, found, woken)
        if quotas:
            claim = await self._store.claim_jobs(self._worker, quotas, deadline_s=deadline_s)
            on_claim(claim)
            found.update(claim.scanned)
            self._remember(quotas, claim.scanned)
        return {lane: found[lane] for lane in plan}

    def listen(self, lanes: Collection[Lane], *, free: int) -> None:
        """Have announcements come by themselves; no lanes: no more of them."""
        self._consumer.listen(lanes, most=max(1, min(_LISTENED_AT_ONCE, free // 4)))

    def hand_on(self, lanes: Iterable[Lane] | None = None) -> None:
        """Others are to have what came by itself; of all lanes, or of these."""
        if lanes is None:
            self._keep(self._consumer.arrived())
        for lane in list(self._held if lanes is None else lanes):
            self._consumer.hand_on(self._held.pop(lane, ()))

    async def close(self) -> None:
        self.hand_on()
        await self._consumer.close()

    async def _read(self, plan: Mapping[Lane, int]) -> list[Entry]:
        if self._held:
            return [self._next_held(lane) for lane, quota in plan.items() for _ in range(quota) if lane in self._held]
        await _passed(FETCH_BEGIN)
        entries, self._more = await self._consumer.read(self._announced_part(plan))
        return entries

    def _announced_part(self, plan: Mapping[Lane, int]) -> dict[Lane, int]:
        """The plan without what is to come straight from the store."""
        for lane, quota in plan.items():
            self._shares[lane] = self._shares.get(lane, 0.0) + STORE_SHARE * quota
        now_s = self._clock.monotonic()
        enough = min(_SAVED_UP, sum(plan.values()) / 2)
        if sum(self._shares.values()) < enough and now_s - self._shared_at_s < _SAVED_FOR_S:
            return dict(plan)
        self._shared_at_s = now_s
        quotas = {}
        for lane, quota in plan.items():
            share = min(quota, int(self._shares[lane]))
            self._shares[lane] = min(self._shares[lane] - share, float(_SAVED_UP))
            quotas[lane] = quota - share
        return quotas

    async def _claim_announced(
        self, entries: list[Entry], *, deadline_s: float, on_claim: Callable[[Claim], None]
    ) -> None:
        if not entries:
            return
        assert self._entries is not None
        try:
            await _passed(FETCH_DONE)
            ids = [entry.job_id for entry in entries if entry.job_id is not None]
            queues = {entry.lane.queue for entry in entries}
            claim = await self._entries.claim_entries(self._worker, ids, queues=queues, deadline_s=deadline_s)
        except BaseException:
            self._keep(entries)  # not acknowledged: they are claimed when the store answers again
            raise
        on_claim(claim)
        await _passed(FETCH_CLAIMED)

    def _from_store(self, plan: Mapping[Lane, int], found: Counter[Lane], woken: set[Lane]) -> dict[Lane, int]:
        """What is to be asked of the store beside what was announced."""
        if not self._consumer.is_up:
            return {lane: quota - found[lane] for lane, quota in plan.items() if quota > found[lane]}
        now_s = self._clock.monotonic()
        quotas = {}
        for lane, quota in plan.items():
            is_due = lane in woken or now_s >= self._look_at_s.get(lane, now_s)
            missing = quota - found[lane]
            if missing > 0 and is_due:
                quotas[lane] = missing
        return quotas

    def _remember(self, asked: Mapping[Lane, int], got: Mapping[Lane, int]) -> None:
        now_s = self._clock.monotonic()
        for lane, quota in asked.items():
            if got.get(lane, 0) < quota:
                self._look_at_s[lane] = now_s + LOOK_EVERY_S
            else:
                self._look_at_s.pop(lane, None)

    def _keep(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._held.setdefault(entry.lane, deque()).append(entry)

    def _next_held(self, lane: Lane) -> Entry:
        entries = self._held[lane]
        entry = entries.popleft()
        if not entries:
            del self._held[lane]
        return entry


async def _passed(point: str) -> None:
    try:
        await afailpoint(point)
    except FailpointHit as hit:
        raise struck(hit) from hit
