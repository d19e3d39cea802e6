"""Breakers: what runs say about them is written in the transaction that settles these. Rules: `core.breaker`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from holdfast.core.breaker import CLOSED, BreakerFigures, BreakerMark, BreakerState, Phase, after_mark
from holdfast.core.gates import Barrier, Place
from holdfast.core.queue import MOST_COUNTED
from holdfast.stores.flow import BreakerInfo
from holdfast.stores.gate_rows import breaker_of, figures_of
from holdfast.stores.postgres.holding import moment
from holdfast.stores.postgres.transaction import Tx
from holdfast.stores.rule_rows import breaker_info


class Locked(NamedTuple):
    """Nobody else changes these until we commit."""

    states: dict[str, BreakerState]
    fresh: list[str]
    """Those that nothing was known of before."""
    figures: dict[str, BreakerFigures]
    """What operators say of how they count."""


async def lock_breakers(tx: Tx, names: Collection[str]) -> Locked:
    """Before anything else is locked."""
    fresh = [row[0] for row in await tx.fetch("rules.lock_breakers", sorted(set(names)))]
    rows = await tx.fetch("rules.breakers_of", list(names))
    states = {name: breaker_of(*state) for name, *state, _, _, _ in rows}
    return Locked(states, fresh, {name: figures_of(*said) for name, _, _, _, *said in rows})


async def write_marks(tx: Tx, locked: Locked, marks: Iterable[BreakerMark]) -> None:
    """What these runs say, one after the other, about breakers that are locked."""
    states = locked.states
    now, after = tx.now.timestamp(), dict(states)
    for mark in marks:
        name = mark.breaker.name
        after[name] = after_mark(after[name], now, mark, locked.figures[name])
    await write_breakers(tx, {name: state for name, state in after.items() if state != states[name]})
    if blank := [name for name in locked.fresh if after[name] == CLOSED]:
        await tx.fetch("rules.drop_breakers", blank)
    for name, state in after.items():
        if state.phase(now) is Phase.CLOSED and states[name].phase(now) is not Phase.CLOSED:
            tx.freed.add(Place(Barrier.BREAKER, name))


async def write_breakers(tx: Tx, states: Mapping[str, BreakerState]) -> None:
    rows = [
        (
            name,
            " ".join(map(repr, state.recent)),
            None if state.open_until is None else moment(state.open_until),
            state.held,
        )
        for name, state in states.items()
    ]
    await tx.many("rules.write_breakers", rows)


async def breakers(tx: Tx) -> list[BreakerInfo]:
    """All that have failed, or that an operator has touched."""
    return [
        breaker_info(name, breaker_of(recent, open_until, held), figures_of(*said), waiting, now=now.timestamp())
        for name, recent, open_until, held, now, waiting, *said in await tx.fetch("rules.breakers", MOST_COUNTED)
    ]
