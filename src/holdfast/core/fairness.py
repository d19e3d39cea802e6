"""How a worker's free slots are shared between lanes; which job of a lane comes next is the store's order.

Deficit round robin as quotas per fetch: each lane that is believed to have work earns credit in proportion to
its weight, is asked for what it has earned, and pays for what it got. Processes share no state.

Slots left over by rounding go to the lanes that would otherwise be the first to fall a whole job behind, none
to one that is ahead. (Giving them to the largest remainders sounds as good and is not: lanes then drift
more than a job away from their share, and a 10 % lane is left out of some fetches of ten or more.) While all
lanes have work, each stays less than one job from its ideal share, whatever the capacities are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from holdfast.core.errors import InvalidOptions

PROBE_EVERY_S: Final = 1.0
_LIGHTEST: Final = 1e-6  # what a weight of 0 counts as among lanes that are to be probed
_ROUNDING: Final = 1e-9  # credits are sums of floats: 2.9999999999 has earned three


class Lane(NamedTuple):
    """A queue and a priority: what is claimed from, in one order."""

    queue: str
    priority: int


NO_ROOMS: Final[Mapping[str, int]] = MappingProxyType({})


class _Account:
    """What is known of one lane."""

    __slots__ = ("asked_at_s", "credit", "empty", "hinted", "weight")

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.credit = 0.0  # jobs earned and not yet got; negative: got ahead of its share
        self.empty = False  # believed, until the next claim shows otherwise
        self.hinted = False
        self.asked_at_s = -math.inf

    def due(self, now_s: float) -> bool:
        return self.hinted or now_s - self.asked_at_s >= PROBE_EVERY_S


class Quotas:
    """The quotas of one process. A round is: `plan`, claim, `record` each lane, `leftover`, claim, `record`.

    1. Lanes believed to have work share the capacity by weight.
    2. A lane believed empty is asked for one job once a second, and in the first round after a hint.
    3. A lane of weight 0 is asked only when no lane of positive weight is believed to have work.
    4. When nothing is believed to have work, those that are due share the capacity, or else all lanes:
       whoever asks has decided to ask.

    5. `rooms` says of some queues how many jobs they may still have here; what they cannot take goes to the others, and
       a queue without room neither earns nor is asked.

    A claim that failed needs no `record`: the next plan does not count its credit twice.
    """

    def __init__(self, weights: Mapping[Lane, float]) -> None:
        self._accounts: dict[Lane, _Account] = {}
        self._turn = 0
        self.set_weights(weights)

    def set_weights(self, weights: Mapping[Lane, float]) -> None:
        """Change weights and lanes; credit and belief stay, a new lane starts at zero and as non-empty."""
        for lane, weight in weights.items():
            if not 0 <= weight < math.inf:
                raise InvalidOptions(
                    f"weight {weight!r} of queue {lane.queue!r}, priority {lane.priority}: must be 0 or more"
                )
        accounts: dict[Lane, _Account] = {}
        for lane, weight in weights.items():
            account = accounts[lane] = self._accounts.get(lane) or _Account(weight)
            account.weight = weight
        self._accounts = accounts

    def hint(self, lane: Lane) -> None:
        """Somebody says that the lane has work; untrue hints cost one slot of one claim."""
        if account := self._accounts.get(lane):
            account.hinted = True

    @property
    def expectant(self) -> bool:
        """Whether any lane is believed, or hinted, to have work: then it is worth asking again at once."""
        return self.expects(NO_ROOMS)

    def expects(self, rooms: Mapping[str, int]) -> bool:
        """The same of lanes whose queues have room."""
        return any(
            (account.hinted or not account.empty) and rooms.get(lane.queue) != 0
            for lane, account in self._accounts.items()
        )

    def plan(self, capacity: int, now_s: float, rooms: Mapping[str, int] = NO_ROOMS) -> dict[Lane, int]:
        """How many jobs to ask of which lane, at most `capacity` in all; `now_s` is a monotonic clock."""
        lanes = self._accounts.keys() if not rooms else [each for each in self._accounts if rooms.get(each.queue) != 0]
        if capacity <= 0 or not lanes:
            return {}
        heavy = [lane for lane in lanes if self._accounts[lane].weight > 0]
        ready = self._ready(heavy)
        due = self._to_probe(heavy if ready else lanes, now_s)
        quotas = dict.fromkeys(due[: self._for_probes(capacity) if ready else capacity], 1)
        ready = ready or self._ready(lanes) or due or heavy or list(lanes)
        free = capacity - len(quotas)
        if free:
            allotted, earned = self._allot(ready, free, rooms, at_most=capacity)
            for lane, credit in earned.items():
                self._accounts[lane].credit = credit
            for lane, quota in allotted.items():
                quotas[lane] = quotas.get(lane, 0) + quota
        if rooms:
            quotas = _within(rooms, quotas)
        for lane, account in self._accounts.items():
            if lane in quotas:
                account.asked_at_s = now_s
            if lane in quotas or not account.empty:
                # From here on a hint may tell of a job that this claim will not see: it outlives `record`.
                account.hinted = False
        return quotas

    def record(self, lane: Lane, *, asked: int, got: int, charged: int | None = None) -> None:
        """Take note of what a claim brought; `charged` is less than `got` for jobs that could not be run."""
        if account := self._accounts.get(lane):
            account.credit -= got if charged is None else charged
            if asked > 0:
                account.empty = got < asked

    def leftover(
        self, plan: Mapping[Lane, int], got: Mapping[Lane, int], rooms: Mapping[str, int] = NO_ROOMS
    ) -> dict[Lane, int]:
        """What the second claim of a round asks: slots that came back unused, of lanes that may have more.

        These are the lanes that gave all they were asked for, and those that may have work but were not asked;
        lanes of weight 0 only when there is no other. Call it after `record`. It may be repeated with its own
        answer as the plan until nothing is left over: then no slot is free while a lane has known work.
        """
        free = sum(plan.values()) - sum(got.values())
        if free <= 0:
            return {}
        able = [
            lane
            for lane, account in self._accounts.items()
            if (got.get(lane, 0) >= plan[lane] if lane in plan else account.hinted or not account.empty)
            and rooms.get(lane.queue) != 0
        ]
        able = self._ready(able) or able  # known work before rumours
        able = [lane for lane in able if self._accounts[lane].weight > 0] or able
        return _within(rooms, self._allot(able, free, rooms, at_most=free)[0]) if able else {}

    def _allot(
        self, lanes: list[Lane], slots: int, rooms: Mapping[str, int], *, at_most: int
    ) -> tuple[dict[Lane, int], dict[Lane, float]]:
        """Quotas, and the credits that they come from. A queue that has earned more than its room earns just that."""
        quotas: dict[Lane, int] = {}
        saved: dict[Lane, float] = {}
        while lanes and slots:
            earned = self._earned(lanes, slots, at_most=at_most)
            by_queue = {queue: [lane for lane in lanes if lane.queue == queue] for queue in rooms}
            tight = next(
                (queue for queue, own in by_queue.items() if own and sum(earned[e] for e in own) > rooms[queue]), None
            )
            if tight is None:
                return quotas | self._share(earned, slots), saved | earned
            own, room = by_queue[tight], min(rooms[tight], slots)
            earned = self._earned(own, room, at_most=at_most)
            quotas |= self._share(earned, room)
            saved |= earned
            lanes, slots = [lane for lane in lanes if lane.queue != tight], slots - room
        return quotas, saved

    def _for_probes(self, capacity: int) -> int:
        """Slots for rumours while there is known work: half of them at most, of a single one every other round."""
        self._turn = 1 - self._turn
        return capacity // 2 or self._turn

    def _ready(self, lanes: Iterable[Lane]) -> list[Lane]:
        return [lane for lane in lanes if not self._accounts[lane].empty]

    def _to_probe(self, lanes: Iterable[Lane], now_s: float) -> list[Lane]:
        """Lanes believed empty whose turn has come: hinted ones first, then those that waited longest.

        Of the hinted ones, waiting makes urgent and weight makes it faster: where there are fewer slots than
        lanes, a light lane must not fill them before a heavy one was looked at, nor be looked at never.
        """

        def rank(lane: Lane) -> tuple[bool, float]:
            account = self._accounts[lane]
            if not account.hinted:
                return True, account.asked_at_s
            return False, (account.weight or _LIGHTEST) * (account.asked_at_s - now_s)

        due = [lane for lane in lanes if self._accounts[lane].empty and self._accounts[lane].due(now_s)]
        return sorted(due, key=rank)

    def _weights(self, lanes: Iterable[Lane]) -> dict[Lane, float]:
        weights = {lane: self._accounts[lane].weight for lane in lanes}
        # Lanes of weight 0 among themselves are equal; beside others they have nothing to say.
        return weights if any(weights.values()) else dict.fromkeys(weights, 1.0)

    def _earned(self, lanes: list[Lane], slots: int, *, at_most: int) -> dict[Lane, float]:
        """The lanes' credits after sharing out `slots` by weight; they add up to `slots`.

        What is carried over counts up to one batch either way. Its sum is zero as long as the same lanes have
        work; when one that was away brings credit with it, all make room in proportion to their weights.
        """
        carried = {lane: max(-at_most, min(at_most, self._accounts[lane].credit)) for lane in lanes}
        weights = self._weights(lanes)
        per_weight = (slots - sum(carried.values())) / sum(weights.values())
        return {lane: carried[lane] + per_weight * weights[lane] for lane in lanes}

    def _share(self, earned: Mapping[Lane, float], slots: int) -> dict[Lane, int]:
        """Whole numbers near `earned` that add up to `slots`."""
        weights = self._weights(earned)
        candidates = [lane for lane in earned if weights[lane] > 0]
        quotas = {lane: max(0, math.floor(earned[lane] + _ROUNDING)) for lane in candidates}

        def urgency(lane: Lane) -> tuple[bool, float]:
            behind = earned[lane] - quotas[lane]
            return behind <= _ROUNDING, (1 - behind) / weights[lane]

        def patience(lane: Lane) -> tuple[bool, float]:
            return quotas[lane] > 0, (quotas[lane] - earned[lane]) / weights[lane]

        for _ in range(slots - sum(quotas.values())):
            quotas[min(candidates, key=urgency)] += 1
        for _ in range(sum(quotas.values()) - slots):  # only when lanes with saved credit come back together
            quotas[max(candidates, key=patience)] -= 1
        return {lane: quota for lane, quota in quotas.items() if quota}


def _within(rooms: Mapping[str, int], quotas: dict[Lane, int]) -> dict[Lane, int]:
    """The quotas without what a queue has no room for: probes and rounding may have given it a job too many."""
    left = dict(rooms)
    for lane, quota in quotas.items():
        if lane.queue in left:
            quotas[lane] = min(quota, left[lane.queue])
            left[lane.queue] -= quotas[lane]
    return {lane: quota for lane, quota in quotas.items() if quota} if rooms else quotas
