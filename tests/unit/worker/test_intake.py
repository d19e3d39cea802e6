"""Where a worker's jobs come from: announced ones first, a tenth from the store, all of it where announcements fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.client.dispatch import STORE_ALONE, Dispatch
from holdfast.core.errors import StoreUnavailable
from holdfast.core.fairness import Lane
from holdfast.runtime.clock import ManualClock
from holdfast.stores.base import Claim
from holdfast.transports.base import Entry, Reading
from holdfast.transports.store_alone import StoreAlone
from holdfast.worker.intake import LOOK_EVERY_S, Intake

CALM, URGENT = Lane("mail", 5), Lane("mail", 9)


class Stream(StoreAlone):
    """A transport with so many announcements per lane; without a job where it is told to only wake."""

    is_up = True

    def __init__(self, **lanes: int) -> None:
        self.left = Counter({CALM: lanes.get("calm", 0), URGENT: lanes.get("urgent", 0)})
        self.asked: list[Mapping[Lane, int]] = []
        self.acked: list[Entry] = []
        self.handed_on: list[Entry] = []
        self.came: list[Entry] = []
        self.wakes_only = False

    def entry(self, lane: Lane) -> Entry:
        return Entry(lane, b"0-1", None if self.wakes_only else uuid4())

    def arrived(self) -> list[Entry]:
        came, self.came = self.came, []
        return came

    async def read(self, quotas: Mapping[Lane, int]) -> Reading:
        self.asked.append(dict(quotas))
        found = []
        for lane, quota in quotas.items():
            got = min(quota, self.left[lane])
            self.left[lane] -= got
            found += [self.entry(lane) for _ in range(got)]
        return Reading(found, frozenset(lane for lane, left in self.left.items() if left))

    def ack(self, entries: Collection[Entry]) -> None:
        self.acked += entries

    def hand_on(self, entries: Collection[Entry]) -> None:
        self.handed_on += entries


class Shelf:
    """A store that has so many jobs per lane beside the announced ones, and claims whatever is announced."""

    def __init__(self, **lanes: int) -> None:
        self.left = Counter({CALM: lanes.get("calm", 0), URGENT: lanes.get("urgent", 0)})
        self.asked: list[dict[Lane, int]] = []
        self.claimed: list[UUID] = []
        self.fails = False

    async def claim_jobs(self, worker: UUID, lanes: Mapping[Lane, int], *, deadline_s: float) -> Claim:
        self.asked.append(dict(lanes))
        got = {lane: min(quota, self.left[lane]) for lane, quota in lanes.items()}
        self.left.subtract(got)
        return Claim([], got)

    async def claim_entries(
        self, worker: UUID, job_ids: Sequence[UUID], *, queues: Collection[str], deadline_s: float
    ) -> Claim:
        if self.fails:
            raise StoreUnavailable("away")
        self.claimed += job_ids
        return Claim([], {})


class Scene:
    def __init__(self, stream: Stream, shelf: Shelf, *, alone: bool = False) -> None:
        self.stream, self.shelf, self.clock = stream, shelf, ManualClock()
        dispatch: Any = STORE_ALONE if alone else Dispatch(stream, shelf)  # type: ignore[arg-type]
        self.intake = Intake(shelf, uuid4(), dispatch, wake=lambda: None, clock=self.clock)  # type: ignore[arg-type]

    async def claim(self, **plan: int) -> dict[Lane, int]:
        lanes = {"calm": CALM, "urgent": URGENT}
        quotas = self.intake.narrowed({lanes[name]: quota for name, quota in plan.items()})
        return await self.intake.claim(quotas, deadline_s=1.0, on_claim=lambda claim: None)


def playing(story: Callable[[], Any]) -> None:
    asyncio.run(story())


def test_without_a_transport_the_store_is_asked_for_all() -> None:
    async def story() -> None:
        scene = Scene(Stream(calm=9), Shelf(calm=4), alone=True)
        assert await scene.claim(calm=10, urgent=5) == {CALM: 4, URGENT: 0}
        assert scene.shelf.asked == [{CALM: 10, URGENT: 5}]

    playing(story)


def test_while_the_transport_is_away_the_store_is_asked_for_all() -> None:
    async def story() -> None:
        scene = Scene(Stream(calm=9), Shelf(calm=20))
        scene.stream.is_up = False
        for _ in range(2):
            assert await scene.claim(calm=10) == {CALM: 10}
        assert scene.stream.asked == []

    playing(story)


def test_a_tenth_comes_from_the_store_whatever_is_announced() -> None:
    async def story() -> None:
        scene = Scene(Stream(calm=10_000, urgent=10_000), Shelf(calm=1000, urgent=1000))
        for _ in range(100):
            assert await scene.claim(calm=10, urgent=60) == {CALM: 10, URGENT: 60}
            scene.clock.advance(0.001)
        taken = {lane: sum(asked.get(lane, 0) for asked in scene.shelf.asked) for lane in (CALM, URGENT)}
        assert 90 <= taken[CALM] <= 110
        assert 550 <= taken[URGENT] <= 650
        assert len(scene.shelf.asked) < 50, "saved up: not in every round"
        assert len(scene.shelf.claimed) + sum(taken.values()) == 7000

    playing(story)


def test_a_lane_that_came_short_is_looked_for_in_the_store_but_not_every_moment() -> None:
    async def story() -> None:
        scene = Scene(Stream(calm=3), Shelf(calm=5))
        assert await scene.claim(calm=10) == {CALM: 8}
        assert await scene.claim(calm=10) == {CALM: 0}
        assert len(scene.shelf.asked) == 1, "it had nothing more a moment ago"
        scene.shelf.left[CALM] = 2
        scene.clock.advance(LOOK_EVERY_S)
        assert await scene.claim(calm=10) == {CALM: 2}
        scene.shelf.left[CALM] = 2
        scene.intake.hint()
        assert await scene.claim(calm=10) == {CALM: 2}

    playing(story)


def test_a_wake_up_has_the_store_looked_at_at_once() -> None:
    async def story() -> None:
        scene = Scene(Stream(), Shelf())
        await scene.claim(calm=10)
        scene.stream.left[CALM], scene.stream.wakes_only, scene.shelf.left[CALM] = 1, True, 4
        assert await scene.claim(calm=10) == {CALM: 4}
        assert (scene.shelf.claimed, len(scene.stream.acked)) == ([], 1)

    playing(story)


def test_what_came_by_itself_is_claimed_first_and_alone() -> None:
    async def story() -> None:
        scene = Scene(Stream(urgent=5), Shelf())
        scene.stream.came = [scene.stream.entry(CALM) for _ in range(3)]
        assert set(scene.intake.known({})) == {CALM}
        assert await scene.claim(calm=2, urgent=8) == {CALM: 2}
        assert await scene.claim(calm=2, urgent=8) == {CALM: 1}
        assert scene.stream.asked == []
        assert await scene.claim(calm=2, urgent=8) == {CALM: 0, URGENT: 5}

    playing(story)


def test_what_there_is_no_room_for_is_handed_on() -> None:
    async def story() -> None:
        scene = Scene(Stream(), Shelf())
        scene.stream.came = [scene.stream.entry(CALM), scene.stream.entry(Lane("reports", 5))]
        assert set(scene.intake.known({"mail": 0})) == {Lane("reports", 5)}
        assert [entry.lane for entry in scene.stream.handed_on] == [CALM]
        await scene.claim(urgent=1)  # the plan leaves it out
        assert len(scene.stream.handed_on) == 2
        scene.stream.came = [scene.stream.entry(CALM)]
        await scene.intake.close()
        assert len(scene.stream.handed_on) == 3

    playing(story)


def test_what_could_not_be_claimed_is_not_acknowledged_and_claimed_later() -> None:
    async def story() -> None:
        scene = Scene(Stream(calm=3), Shelf())
        scene.shelf.fails = True
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await scene.claim(calm=10)
        assert scene.stream.acked == []
        scene.shelf.fails = False
        assert await scene.claim(calm=10) == {CALM: 3}
        assert len(scene.shelf.claimed) == len(scene.stream.acked) == 3

    playing(story)
