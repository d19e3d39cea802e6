"""Figures of breakers: what operators say of how one counts goes before its marks, each by itself, from the next on."""

from __future__ import annotations

import asyncio

from holdfast.core.breaker import CLOSED, NO_FIGURES, BreakerFigures, BreakerGate, BreakerMark, Phase
from holdfast.core.settlement import Bury
from holdfast.stores.base import Store
from holdfast.stores.flow import BreakerInfo
from holdfast.testing.contracts.arrange import ERROR, LONG_S, start

ME = "somebody@example.com"
BANK = BreakerGate("bank", failures=3, window_s=LONG_S, open_for_s=LONG_S)


async def _say(store: Store, figures: BreakerFigures, *only: str) -> BreakerFigures:
    return await store.set_breaker_figures(BANK.name, figures, by=ME, only=only or None)


async def _found(store: Store) -> BreakerInfo:
    nothing = BreakerInfo(BANK.name, CLOSED, Phase.CLOSED, 0)
    return next((each for each in await store.breakers() if each.name == BANK.name), nothing)


async def _fail(store: Store, gate: BreakerGate = BANK) -> Phase:
    run = await start(store, gates=(gate,))
    mark = BreakerMark(run.token, failed=True, breaker=gate)
    await store.settle_jobs(run.worker, [Bury(run.id, run.token, "it failed", ERROR)], marks=[mark])
    return (await _found(store)).phase


async def check_figures_are_said_one_by_one(store: Store) -> None:
    assert (await _found(store)).figures == NO_FIGURES, "nobody has said anything"
    await asyncio.gather(
        _say(store, BreakerFigures(failures=20), "failures"), _say(store, BreakerFigures(window_s=2.5), "window_s")
    )
    found = await _found(store)
    said = BreakerFigures(20, 2.5)
    assert (found.figures, found.said_by, found.phase) == (said, "operator", Phase.CLOSED), (
        f"nobody's word is lost: {found}"
    )
    assert await _say(store, BreakerFigures(open_for_s=7.0), "open_for_s", "failures") == BreakerFigures(None, 2.5, 7.0)
    assert (await _found(store)).figures == BreakerFigures(None, 2.5, 7.0), "nothing is said of the failures any more"
    await _say(store, BreakerFigures(failures=4))
    assert (await _found(store)).figures == BreakerFigures(failures=4), "the whole of what is said is replaced"
    assert await _say(store, NO_FIGURES) == NO_FIGURES
    assert await store.breakers() == [], "as if nobody had ever said anything"


async def check_more_failures_have_to_come_before_it_opens(store: Store) -> None:
    assert await _fail(store) is Phase.CLOSED
    await _say(store, BreakerFigures(failures=5))
    phases = [await _fail(store) for _ in range(4)]
    assert phases == [Phase.CLOSED] * 3 + [Phase.OPEN], f"the fifth of them opens it: {phases}"


async def check_of_fewer_failures_the_next_one_opens_it(store: Store) -> None:
    assert [await _fail(store), await _fail(store)] == [Phase.CLOSED] * 2
    await _say(store, BreakerFigures(failures=1))
    assert (await _found(store)).phase is Phase.CLOSED, "what was counted before opens nothing by itself"
    assert await _fail(store) is Phase.OPEN


async def check_another_window_holds_from_the_next_failure_on(store: Store) -> None:
    brief = BANK._replace(window_s=0.0)
    assert [await _fail(store, brief) for _ in range(4)] == [Phase.CLOSED] * 4, "none is within the window"
    await _say(store, BreakerFigures(window_s=LONG_S))
    assert [await _fail(store, brief) for _ in range(2)] == [Phase.CLOSED, Phase.OPEN], "with the last one from before"


async def check_it_opens_for_as_long_as_they_say(store: Store) -> None:
    await _say(store, BreakerFigures(failures=1, open_for_s=10 * LONG_S))
    await _fail(store)
    first = (await _found(store)).state.open_until
    assert first is not None
    assert first - await store.now() > 9 * LONG_S, "not for as long as the code says"
    await _say(store, BreakerFigures(failures=1, open_for_s=1.0))
    assert (await _found(store)).state.open_until == first, "it is open already: this is for the next time"
    await store.set_breaker(BANK.name, closed=True, by=ME)
    await _fail(store)
    again = (await _found(store)).state.open_until
    assert again is not None
    assert again - await store.now() <= 1.0


async def check_what_the_code_says_holds_again_when_they_are_cleared(store: Store) -> None:
    await _say(store, BreakerFigures(failures=50))
    assert [await _fail(store) for _ in range(5)] == [Phase.CLOSED] * 5
    await _say(store, NO_FIGURES)
    assert await _fail(store) is Phase.OPEN


async def check_figures_are_those_of_one_breaker(store: Store) -> None:
    await _say(store, BreakerFigures(failures=1))
    other = BANK._replace(name="another bank")
    await _fail(store, other)
    assert [(each.name, each.phase) for each in await store.breakers()] == [
        ("another bank", Phase.CLOSED),
        ("bank", Phase.CLOSED),
    ]
