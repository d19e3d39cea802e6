"""Where jobs go, as operators say it; every change is on record in the transaction that makes it."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.stores.postgres.rules import record_change
from holdfast.stores.postgres.transaction import Tx
from holdfast.stores.route_rows import refuse_more, rerouted, route_of, route_words, row_of
from holdfast.stores.routes import Rerouted


async def set_route(
    tx: Tx, pattern: str, *, queue: str | None, priority: int | None, by: str, only: Collection[str] | None
) -> Rerouted:
    """The whole of what is said for a pattern, or only a part of it."""
    await tx.fetch("rules.alone")
    rows = await tx.fetch("routes.one", pattern)
    before = route_of(*rows[0]) if rows else None
    after = rerouted(before, queue, priority, only)
    if after is None:
        await tx.fetch("routes.drop", pattern)
    else:
        if not rows:
            [(count,)] = await tx.fetch("routes.count")
            refuse_more(count)
        await tx.fetch("routes.set", pattern, *row_of(after))
    await record_change(tx, by, "route", pattern, route_words(before), route_words(after))
    return Rerouted(before, after)
