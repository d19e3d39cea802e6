"""Routes that operators set while everything runs: who heeds them, when, before what; and the record of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, Heard, by_hand, scene, url_of

from holdfast import Holdfast, InvalidOptions, NotOpen, Route, RoutedCall, StoreUnavailable
from holdfast.runtime.clock import ManualClock
from holdfast.telemetry.flow_events import SettingChanged
from holdfast.testing import harness


def make_app(url: str = ":memory:", **settings: Any) -> Holdfast:
    hf = Holdfast(url, **settings)

    @hf.task(name="shop.report", queue="own", priority=6)
    async def report() -> None: ...

    return hf


async def place_of(hf: Holdfast, **options: Any) -> tuple[str, int]:
    """Where an enqueue puts a report."""
    info = await (await hf.named("shop.report").options(**options).enqueue()).info()
    return info.queue, info.priority


def counted(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with every look into the store."""
    looks: list[None] = []
    store: Any = hf._open_store()
    routes = store.routes

    async def counting() -> Any:
        looks.append(None)
        return await routes()

    monkeypatch.setattr(store, "routes", counting)
    return looks


@asynccontextmanager
async def operator_and_producer(path: Path) -> AsyncIterator[tuple[Holdfast, Holdfast, ManualClock]]:
    """Two processes, as far as the store can tell; the clock is the producer's."""
    url, clock = url_of(path / "jobs.db"), ManualClock()
    async with make_app(url) as operator, make_app(url, clock=clock) as producer:
        yield operator, producer, clock


# ---------------------------------------------------------------- before what


@scene
async def test_what_operators_say_goes_before_any_other_pattern_and_after_calls_and_routers() -> None:
    hf = make_app(routes={"shop.report": {"queue": "settings", "priority": 1}})
    hf.route("shop.repor*", queue="code")

    @hf.router
    def by_tier(call: RoutedCall) -> Route | None:
        return Route(queue="routed") if call.metadata.get("routed") else None

    async with hf:
        assert await place_of(hf) == ("settings", 1)
        await hf.routes.set("*", queue="slow", by="ada")
        assert await place_of(hf) == ("slow", 1), "what it does not say comes from the next level"
        assert await place_of(hf, metadata={"routed": True}) == ("routed", 1)
        assert await place_of(hf, queue="called", priority=9) == ("called", 9)
        await hf.routes.set("shop.*", queue="slower", priority="bulk", by="ada")
        assert await place_of(hf) == ("slower", 0), "of operators' patterns the most specific one"
        assert await hf.routes.clear("shop.*")
        assert await hf.routes.clear("*")
        assert await place_of(hf) == ("settings", 1)


@scene
async def test_a_placement_says_that_it_was_an_operator_as_far_as_the_open_app_has_heard() -> None:
    hf = make_app()
    request = hf.named("shop.report").request()
    async with hf:
        await hf.routes.set("shop.*", queue="slow")
        assert tuple(hf.placement(request).queue) == ("own", "the task"), "nobody has looked yet"
        assert await hf.routes.look()
        place = hf.placement(request)
        assert tuple(place.queue) == ("slow", "pattern 'shop.*' (operator)")
        assert tuple(place.priority) == (6, "the task")
    assert tuple(hf.placement(request).queue) == ("own", "the task"), "of a closed app it is code and settings that say"
    with pytest.raises(NotOpen):
        hf.routes  # noqa: B018  # it is the question


@scene
async def test_all_routes_are_listed_in_the_order_in_which_they_are_asked() -> None:
    hf = make_app(routes={"shop.*": "settings", "nobody.*": {"priority": "high"}})
    hf.route("*.report", queue="code")
    async with hf:
        await hf.routes.set("*", priority="low")
        await hf.routes.set("other", queue="slow")
        told = [
            (each.pattern, each.queue, each.priority, each.said_by, each.matches) for each in await hf.routes.list()
        ]
    assert told == [
        ("other", "slow", None, "operator", 0),
        ("*", None, 2, "operator", 1),
        ("nobody.*", None, 7, "argument routes", 0),
        ("*.report", "code", None, "code", 1),
        ("shop.*", "settings", None, "argument routes", 1),
    ]


# ---------------------------------------------------------------- who heeds them, and when


@pytest.mark.parametrize("idle_s", [1.0, 3600.0])
@scene
async def test_a_producer_that_was_idle_looks_before_it_places_its_next_job(tmp_path: Path, idle_s: float) -> None:
    async with operator_and_producer(tmp_path) as (operator, producer, clock):
        assert await place_of(producer) == ("own", 6)
        await operator.routes.set("shop.*", queue="slow", priority="bulk")
        clock.advance(idle_s)
        assert await place_of(producer) == ("slow", 0)
        await operator.routes.clear("shop.*")
        clock.advance(idle_s)
        assert await place_of(producer) == ("own", 6)


@scene
async def test_the_first_job_of_a_process_obeys(tmp_path: Path) -> None:
    async with operator_and_producer(tmp_path) as (operator, producer, _):
        await operator.routes.set("shop.*", queue="slow")
        assert await place_of(producer) == ("slow", 6)


@pytest.mark.parametrize("way", ["one", "by name", "unknown", "many", "options"])
@scene
async def test_every_way_to_enqueue_obeys(tmp_path: Path, way: str) -> None:
    async with operator_and_producer(tmp_path) as (operator, producer, _):
        await operator.routes.set("shop.*", queue="slow")
        task = producer.named("shop.report")
        match way:
            case "one":
                job = await task.enqueue()
            case "by name":
                job = await producer.enqueue("shop.report")
            case "unknown":
                job = await producer.enqueue("shop.unheard_of", 5)
            case "many":
                [job] = await producer.enqueue_many([task.request()])
            case _:
                job = await task.options(key="once", delay=60).enqueue()
        assert (await job.info()).queue == "slow"


def test_a_placement_knows_what_code_without_an_event_loop_has_heard(tmp_path: Path) -> None:
    hf = make_app(url_of(tmp_path / "jobs.db"))
    request = hf.named("shop.report").request()
    hf.sync.routes.set("shop.*", queue="slow")
    assert hf.sync.routes.look()
    assert tuple(hf.placement(request).queue) == ("slow", "pattern 'shop.*' (operator)")
    hf.sync.close()
    assert tuple(hf.placement(request).queue) == ("own", "the task")


def test_code_without_an_event_loop_obeys_and_can_set_them(tmp_path: Path) -> None:
    hf = make_app(url_of(tmp_path / "jobs.db"))
    hf.sync.routes.set("shop.*", queue="slow")
    assert hf.named("shop.report").sync.enqueue().info().queue == "slow"
    [one] = hf.sync.enqueue_many([hf.named("shop.report").request()])
    assert one.info().queue == "slow"
    assert [each.pattern for each in hf.sync.routes.list()] == ["shop.*"]
    assert hf.sync.routes.clear("shop.*")
    hf.sync.close()


@scene
async def test_a_job_that_a_job_enqueues_obeys() -> None:
    hf = make_app()

    @hf.task(name="parent")
    async def parent() -> str:
        return (await (await hf.enqueue("shop.report")).info()).queue

    async with hf, hf.worker(queues=["default"]):
        await hf.routes.set("shop.*", queue="slow")
        assert await (await parent.enqueue()).result(timeout=PATIENCE_S) == "slow"


@scene
async def test_they_hold_under_a_clock_that_stands_still() -> None:
    hf = make_app()
    async with harness(hf) as t:
        await hf.named("shop.report").enqueue()
        await hf.routes.set("shop.*", queue="slow")
        await hf.named("shop.report").enqueue()
        assert [job.queue for job in t.enqueued] == ["own", "slow"]


@scene
async def test_where_they_lead_is_a_queue_that_is_known_and_that_workers_find() -> None:
    hf = Holdfast(":memory:")

    @hf.task
    async def work() -> int:
        return 1

    async with hf, hf.worker(), asyncio.timeout(PATIENCE_S):
        await hf.routes.set("*", queue="elsewhere")
        await hf.routes.look()
        assert "elsewhere" in await hf.queues.known()
        assert await (await work.enqueue()).result() == 1


@scene
async def test_a_queue_that_a_route_names_is_known_in_every_process(tmp_path: Path) -> None:
    async with operator_and_producer(tmp_path) as (operator, other, _):
        with pytest.raises(InvalidOptions, match=r"there is no queue 'quick': .* no operator's route leads there"):
            await other.queues.set_weights("quick", weight=0.5)
        await operator.routes.set("shop.*", queue="quick")
        assert "quick" in await other.queues.known()
        await other.queues.set_weights("quick", weight=0.5)


# ---------------------------------------------------------------- at what cost


@scene
async def test_a_process_looks_once_a_second_whatever_it_enqueues(monkeypatch: pytest.MonkeyPatch) -> None:
    hf = make_app(clock=(clock := ManualClock()))
    task = hf.named("shop.report")
    async with hf:
        looks = counted(hf, monkeypatch)
        await asyncio.gather(*(task.enqueue() for _ in range(300)))
        assert len(looks) == 1
        clock.advance(0.9)
        await asyncio.gather(*(task.enqueue() for _ in range(50)), hf.enqueue_many([task.request()] * 20))
        assert len(looks) == 1
        clock.advance(0.1)
        await asyncio.gather(*(task.enqueue() for _ in range(300)), hf.enqueue_many([task.request()] * 20))
        assert len(looks) == 2


@scene
async def test_a_store_that_cannot_be_asked_keeps_nobody_from_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    hf = make_app(clock=(clock := ManualClock()))
    async with hf:
        await hf.routes.set("shop.*", queue="slow")
        assert await place_of(hf) == ("slow", 6)

        async def away() -> Any:
            raise StoreUnavailable("the store does not answer")

        monkeypatch.setattr(hf._open_store(), "routes", away)
        clock.advance(10)
        assert await place_of(hf) == ("slow", 6), "what was known last"
        assert not await hf.routes.look()
        monkeypatch.undo()
        clock.advance(1)
        assert await hf.routes.look()


# ---------------------------------------------------------------- what is said


@scene
async def test_what_is_left_out_stays_as_it_is_and_all_of_it_is_on_record() -> None:
    hf = make_app()
    async with hf:
        heard = Heard(hf, SettingChanged)
        await hf.routes.set("shop.*", queue="slow", by="ada")
        await hf.routes.set("shop.*", priority="bulk", by="eve")
        await hf.routes.set("shop.*", priority=0, by="eve")
        assert [(each.queue, each.priority) for each in await hf.routes.list()] == [("slow", 0)]
        assert await hf.routes.set("shop.*", queue="slow") == (await hf.routes.list())[0], "all that is set for it"
        assert await hf.routes.clear("shop.*", by="ada")
        assert not await hf.routes.clear("shop.*", by="ada")
        told = [(each.by, each.what, each.name, each.before, each.after) for each in await hf.audit.list()]
        events = [await heard.next(SettingChanged) for _ in range(5)]
    slow, both = {"queue": "slow"}, {"queue": "slow", "priority": 0}
    assert told[::-1] == [
        ("ada", "route", "shop.*", None, slow),
        ("eve", "route", "shop.*", slow, both),
        ("ada", "route", "shop.*", both, None),
    ]
    assert [(each.what, each.which, each.said) for each in events] == [
        ("route", "shop.*", "queue slow"),
        ("route", "shop.*", "queue slow, priority 0"),
        ("route", "shop.*", "queue slow, priority 0"),
        ("route", "shop.*", "queue slow, priority 0"),
        ("route", "shop.*", "as settings and code say"),
    ]


@pytest.mark.parametrize(
    ("pattern", "said", "sentence"),
    [
        ("shop.?", {"queue": "slow"}, r"^route 'shop\.\?': '\?' is in no task's name"),
        ("", {"queue": "slow"}, "needs a pattern for names of tasks"),
        ("a" * 201, {"queue": "slow"}, "has 201 characters, at most 200"),
        (5, {"queue": "slow"}, "needs a pattern for names of tasks"),
        ("shop.*", {}, r"^route 'shop\.\*': a Route says where to: give it queue=, priority= or both$"),
        ("shop.*", {"queue": "no such"}, r"^route 'shop\.\*': queue name 'no such' has ' ' at position 3"),
        ("shop.*", {"priority": 10}, r"^route 'shop\.\*': priority=10: needs a whole number from 0 to 9"),
        ("shop.*", {"priority": "bluk"}, r"^route 'shop\.\*': there is no priority 'bluk'"),
    ],
)
@scene
async def test_what_makes_no_sense_is_refused_in_the_words_for_any_route(
    pattern: Any, said: dict[str, Any], sentence: str
) -> None:
    async with make_app() as hf:
        with pytest.raises(InvalidOptions, match=sentence):
            await hf.routes.set(pattern, **said)
        assert await hf.routes.list() == []
        assert await hf.audit.list() == []


@scene
async def test_nonsense_that_somebody_wrote_by_hand_stops_nobody(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with make_app(url_of(path), clock=(clock := ManualClock())) as hf:
        await hf.routes.set("shop.*", queue="slow")
        for pattern, queue, priority in (
            ("'no ?'", "'x'", "1"),
            ("'*'", "'no such'", "NULL"),
            ("'shop.r*'", "NULL", "77"),
            ("'shop.report'", "'no such'", "3"),
            ("x'ff00'", "'x'", "1"),
            ("CAST(x'ff00' AS TEXT)", "'x'", "1"),
            ("'shop.repor*'", "CAST(x'ff' AS TEXT)", "'soon'"),
            ("'" + "s" * 300 + "*'", "'x'", "1"),
            ("'*.report'", "x'00'", "1.5"),
            ("''", "'x'", "1"),
        ):
            by_hand(path, f"INSERT INTO route VALUES ({pattern}, {queue}, {priority})")
        clock.advance(1)
        assert await place_of(hf) == ("slow", 3), "of a row, what makes sense"
        assert [each.pattern for each in await hf.routes.list()] == ["shop.report", "shop.*"]
        await hf.routes.set("shop.r*", queue="mended", priority=1, by="ada")
        [change, *_] = await hf.audit.list()
        assert (change.before, change.after) == (None, {"queue": "mended", "priority": 1}), "it was not there"
