"""Routes that operators set: kept as they were said last, bounded in number, and on record."""

from __future__ import annotations

import asyncio

from holdfast.core.errors import InvalidOptions
from holdfast.core.routing import MOST_AT_RUN_TIME, OPERATOR, Route, Rule
from holdfast.stores.base import Store
from holdfast.stores.routes import Rerouted
from holdfast.testing.contracts.arrange import PLENTY

ME, YOU = "me@example.com", "you@example.com"


async def _told(store: Store) -> set[Rule]:
    return set(await store.routes())


async def check_routes_are_what_was_said_last(store: Store) -> None:
    assert await store.routes() == (), "nobody has said anything"
    await store.set_route("shop.*", queue="slow", priority=None, by=ME)
    await store.set_route("*", queue=None, priority=0, by=ME)
    await store.set_route("a<b>:c-d_*", queue="x", priority=9, by=ME)
    found = await _told(store)
    expected = {
        Rule("shop.*", Route(queue="slow"), OPERATOR),
        Rule("*", Route(priority=0), OPERATOR),
        Rule("a<b>:c-d_*", Route(queue="x", priority=9), OPERATOR),
    }
    assert found == expected, f"got {found}"
    done = await store.set_route("shop.*", queue=None, priority=3, by=ME)
    assert done == Rerouted(Route(queue="slow"), Route(priority=3)), f"the whole of it is replaced: {done}"
    done = await store.set_route("*", queue=None, priority=None, by=ME)
    assert done == Rerouted(Route(priority=0), None), f"nothing is said any more: {done}"
    done = await store.set_route("never set", queue=None, priority=None, by=ME)
    assert done == Rerouted(None, None), f"got {done}"
    found = await _told(store)
    assert found == {
        Rule("shop.*", Route(priority=3), OPERATOR),
        Rule("a<b>:c-d_*", Route(queue="x", priority=9), OPERATOR),
    }, f"got {found}"


async def check_a_part_of_a_route_is_said_without_the_other(store: Store) -> None:
    """Two operators at once: neither takes back what the other says."""
    await store.set_route("shop.*", queue="slow", priority=None, by=ME, only=("queue",))
    done = await store.set_route("shop.*", queue=None, priority=2, by=YOU, only=("priority",))
    assert done == Rerouted(Route(queue="slow"), Route(queue="slow", priority=2)), f"got {done}"
    done = await store.set_route("shop.*", queue="slower", priority=None, by=ME, only=("queue",))
    assert done.after == Route(queue="slower", priority=2), f"got {done}"


async def check_changes_of_routes_are_on_record(store: Store) -> None:
    await store.set_route("shop.*", queue="slow", priority=None, by=ME)
    await store.set_route("shop.*", queue="slow", priority=None, by=YOU)  # the same again, as after a lost answer
    await store.set_route("shop.*", queue=None, priority=2, by=YOU, only=("priority",))
    await store.set_route("shop.*", queue=None, priority=None, by=ME)
    await store.set_route("shop.*", queue=None, priority=None, by=YOU)
    changes = await store.setting_changes(limit=PLENTY)
    told = [(each.by, each.what, each.name, each.before, each.after) for each in reversed(changes)]
    slow, both = {"queue": "slow"}, {"queue": "slow", "priority": 2}
    assert told == [
        (ME, "route", "shop.*", None, slow),
        (YOU, "route", "shop.*", slow, both),
        (ME, "route", "shop.*", both, None),
    ], f"got {told}"


async def check_routes_are_bounded_in_number(store: Store) -> None:
    names = [f"task{number}" for number in range(MOST_AT_RUN_TIME)]
    await asyncio.gather(*(store.set_route(name, queue="q", priority=None, by=ME) for name in names))
    refused = ""
    try:
        await store.set_route("onemore", queue="q", priority=None, by=ME)
    except InvalidOptions as error:
        refused = str(error)
    assert refused.startswith("1,000 patterns are set already"), f"got {refused!r}"
    await store.set_route("task7", queue="other", priority=None, by=ME)
    found = await _told(store)
    assert len(found) == MOST_AT_RUN_TIME, f"got {len(found)}"
    assert Rule("task7", Route(queue="other"), OPERATOR) in found, "one that is there can be changed"
    await store.set_route("task7", queue=None, priority=None, by=ME)
    await store.set_route("onemore", queue="q", priority=None, by=ME)
