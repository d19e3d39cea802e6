"""Changes of settings are on record: who changed what, when, from what, to what; in the transaction of the change."""

from __future__ import annotations

from collections.abc import Awaitable

from holdfast.core.breaker import BreakerFigures
from holdfast.core.queue import QueueSettings
from holdfast.core.queue_options import QueueOptions
from holdfast.core.rate import Pace
from holdfast.stores.base import Store
from holdfast.stores.flow import SettingChange
from holdfast.testing.contracts.arrange import LONG_S, PLENTY, QUEUE, TASK

ME, YOU = "me@example.com", "you@example.com"


async def _changes(store: Store) -> list[SettingChange]:
    return await store.setting_changes(limit=PLENTY)


async def _twice(store: Store, what: str, name: str, one: Awaitable[object], other: Awaitable[object]) -> None:
    """A setting that is changed by one and then by another: both are on record, and the one follows the other."""
    before = await _changes(store)
    await one
    await other
    now = await _changes(store)
    assert now[2:] == before, f"what was on record stays: {now}"
    second, first = now[:2]
    assert [first.by, second.by] == [ME, YOU], f"who: {now}"
    assert {(each.what, each.name) for each in (first, second)} == {(what, name)}, f"what: {now}"
    assert first.number < second.number, f"newest first: {now}"
    assert first.at <= second.at, f"when: {now}"
    assert first.after == second.before, f"the one begins where the other ended: {now}"
    assert first.before != first.after, f"what it was, and what it is: {now}"
    assert second.before != second.after, f"what it was, and what it is: {now}"


async def check_every_change_is_on_record(store: Store) -> None:
    assert await _changes(store) == [], "nobody has changed anything"
    await _twice(
        store,
        "queue",
        QUEUE,
        store.set_queue(QUEUE, QueueSettings(paused=True), by=ME),
        store.set_queue(QUEUE, QueueSettings(weight=3.0), only=("weight",), by=YOU),
    )
    await _twice(
        store,
        "tenant",
        "acme",
        store.set_tenant_weight("acme", 2.0, by=ME),
        store.set_tenant_weight("acme", None, by=YOU),
    )
    await _twice(
        store,
        "limit",
        "api",
        store.set_limit("api", size=2, pace=None, by=ME),
        store.set_limit("api", size=None, pace=Pace(1, LONG_S, 3), by=YOU),
    )
    await _twice(
        store,
        "breaker",
        "bank",
        store.set_breaker("bank", closed=False, by=ME),
        store.set_breaker("bank", closed=True, by=YOU),
    )
    await _twice(
        store,
        "breaker",
        "bank",
        store.set_breaker_figures("bank", BreakerFigures(failures=2), by=ME),
        store.set_breaker_figures("bank", BreakerFigures(window_s=9.0), only=("window_s",), by=YOU),
    )
    await _pauses(store)


async def _pauses(store: Store) -> None:
    await store.set_paused(task=TASK, paused=True, by=ME)
    await store.set_paused(tenant="acme", paused=True, by=ME)
    await store.set_paused(task=TASK, paused=False, by=YOU)
    third, second, first = (await _changes(store))[:3]
    assert {each.what for each in (first, second, third)} == {"pause"}, f"got {first}, {second}, {third}"
    assert first.name == third.name != second.name, f"a task is no tenant: {first}, {second}, {third}"
    assert TASK in first.name, f"its name: {first}"
    assert "acme" in second.name, f"its name: {second}"
    assert (first.after, first.before) == (third.before, third.after), f"there and back: {first}, {third}"


async def check_the_words_say_what_was_set(store: Store) -> None:
    await store.set_queue(QUEUE, QueueSettings(paused=True, weight=2.5), by=ME)
    await store.set_limit("api", size=7, pace=None, by=ME)
    figures = BreakerFigures(failures=3)
    for _ in range(2):  # the same again, as after a lost answer, changes nothing
        await store.set_breaker_figures("bank", figures, by=ME)
        await store.set_queue(QUEUE, QueueSettings(options=QueueOptions(concurrency=4)), only=("concurrency",), by=ME)
    options, breaker, limit, queue = await _changes(store)
    assert (breaker.before, breaker.after) == (None, {"failures": 3}), f"got {breaker}"
    assert options.before is not None, f"got {options}"
    assert options.after == options.before | {"concurrency": 4} != options.before, f"got {options}"
    assert queue.after is not None, f"got {queue}"
    assert (queue.after["paused"], queue.after["weight"]) == (True, 2.5), f"got {queue}"
    assert limit.before is None, f"nothing was said before: {limit}"
    assert limit.after is not None, f"got {limit}"
    assert limit.after["size"] == 7, f"got {limit}"
    await store.set_limit("api", size=None, pace=None, by=ME)
    assert (await _changes(store))[0].after is None, "nothing is said any more"


async def check_the_record_is_read_page_by_page(store: Store) -> None:
    for size in range(5):
        await store.set_limit("api", size=size, pace=None, by=ME)
    every = await _changes(store)
    assert [each.after and each.after["size"] for each in every] == [4, 3, 2, 1, 0], f"newest first: {every}"
    read: list[SettingChange] = []
    page = await store.setting_changes(limit=2)
    while page:
        assert len(page) <= 2, f"a page is a page: {page}"
        read += page
        page = await store.setting_changes(limit=2, before=page[-1].number)
    assert read == every, "nothing is told twice or left out"
