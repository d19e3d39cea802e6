"""What operators say at run time about limits, rates, pauses, breakers and weights; and the record of who said it."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from holdfast.core.breaker import CLOSED, NO_FIGURES, BreakerFigures
from holdfast.core.gates import Barrier, Place
from holdfast.core.rate import Pace
from holdfast.stores.base import Hint
from holdfast.stores.flow import SettingChange
from holdfast.stores.gate_rows import figures_of
from holdfast.stores.job_reports import metadata_of
from holdfast.stores.postgres import tenants
from holdfast.stores.postgres.breakers import lock_breakers, write_breakers
from holdfast.stores.postgres.transaction import Tx
from holdfast.stores.rule_rows import (
    LIMIT,
    PAUSED_TASK,
    PAUSED_TENANT,
    breaker_words,
    changed_figures,
    figure_words,
    limit_words,
    pause_words,
    rules_of,
    tenant_words,
)


async def set_limit(
    tx: Tx, name: str, *, size: int | None, pace: Pace | None, by: str, only: Collection[str] | None
) -> tuple[int | None, Pace | None]:
    """The whole of what is said about a limit, or a part of it; nothing any more, if both are None."""
    await tx.fetch("rules.alone")
    before = rules_of(map(tuple, await tx.fetch("rules.limit", name)))
    if only is not None:
        size = size if "size" in only else before.sizes.get(name)
        pace = pace if "pace" in only else before.paces.get(name)
    if size is None and pace is None:
        await tx.fetch("rules.drop", LIMIT, name)
    else:
        await tx.fetch("rules.set", LIMIT, name, size, *(pace or (None, None, None)))
    words = limit_words(before.sizes.get(name), before.paces.get(name))
    await record_change(tx, by, "limit", name, words, limit_words(size, pace))
    tx.hints |= Hint.SETTINGS
    return size, pace


async def set_paused(tx: Tx, *, task: str | None, tenant: str | None, paused: bool, by: str) -> None:
    """Of a task, of a tenant, or of both."""
    await tx.fetch("rules.alone")
    for what, name in ((PAUSED_TASK, task), (PAUSED_TENANT, tenant)):
        if name is None:
            continue
        before = bool(await tx.fetch("rules.exists", what, name))
        if paused:
            await tx.fetch("rules.set", what, name, None, None, None, None)
        else:
            await tx.fetch("rules.drop", what, name)
            tx.freed.add(Place(Barrier.PAUSED, f"{what}:{name}"))
        await record_change(tx, by, "pause", f"{what}:{name}", pause_words(paused=before), pause_words(paused=paused))
    tx.hints |= Hint.SETTINGS | Hint.READY


async def set_breaker(tx: Tx, name: str, *, closed: bool, by: str) -> None:
    """Closed as if it had never failed, or held open."""
    [before] = (await lock_breakers(tx, [name])).states.values()
    after = CLOSED if closed else before._replace(held=True)
    await write_breakers(tx, {name: after})
    now = tx.now.timestamp()
    await record_change(tx, by, "breaker", name, breaker_words(before, now), breaker_words(after, now))
    if closed:
        tx.freed.add(Place(Barrier.BREAKER, name))
    tx.hints |= Hint.SETTINGS


async def set_breaker_figures(
    tx: Tx, name: str, figures: BreakerFigures, *, by: str, only: Collection[str] | None
) -> BreakerFigures:
    """The whole of what operators say of how a breaker counts, or a part of it."""
    await tx.fetch("rules.alone")
    found = await tx.fetch("rules.figures", name)
    before = figures_of(*found[0]) if found else NO_FIGURES
    after = changed_figures(before, figures, only)
    if after == NO_FIGURES:
        await tx.fetch("rules.drop_figures", name)
    else:
        await tx.fetch("rules.put_figures", name, *after)
    await record_change(tx, by, "breaker", name, figure_words(before), figure_words(after))
    return after


async def set_tenant_weight(tx: Tx, tenant: str, weight: float | None, *, by: str) -> None:
    """For jobs that get their places from now on."""
    await tx.fetch("rules.alone")
    before = await tenants.set_weight(tx, tenant, weight)
    await record_change(tx, by, "tenant", tenant, tenant_words(before), tenant_words(weight))


async def record_change(
    tx: Tx, by: str, what: str, name: str, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> None:
    """In the transaction of the change; saying the same again, as after a lost answer, changes nothing."""
    if before == after:
        return
    await tx.fetch("rules.record", tx.now, by, what, name, _text(before), _text(after))


def _text(words: dict[str, Any] | None) -> str | None:
    return None if words is None else json.dumps(words)


async def setting_changes(tx: Tx, *, limit: int, before: int | None) -> list[SettingChange]:
    """Newest first."""
    return [
        SettingChange(number, at, by, what, name, metadata_of(earlier), metadata_of(later))
        for number, at, by, what, name, earlier, later in await tx.fetch("rules.changes", limit, before)
    ]
