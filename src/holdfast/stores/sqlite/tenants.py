"""Tenants: the tags of jobs that go to the tails of their lanes, and what is set for tenants. Rules: `core.tenancy`."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import NamedTuple

from holdfast.core.tenancy import cost_of, next_tag
from holdfast.stores.base import Hint
from holdfast.stores.gate_rows import tenant_weight_of
from holdfast.stores.rule_rows import tenant_words
from holdfast.stores.sqlite.rules import record_change
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.transaction import TailRow, Tx

SQL = load("tenants")

_FORGOTTEN_AT_ONCE = 20  # times the limit of a sweep: it only looks at most of them


def tenanted(db: sqlite3.Connection) -> set[str]:
    """The queues in which somebody has named a tenant."""
    return {queue for (queue,) in db.execute(SQL["tenanted"])}


def mark_tenanted(tx: Tx, queues: Collection[str]) -> None:
    """From now on all jobs of these queues get tags."""
    tx.db.executemany(SQL["mark_tenanted"], [(queue,) for queue in queues])
    tx.tenanted.update(queues)


def give_tags(tx: Tx, rows: Sequence[TailRow]) -> list[int]:
    """One tag for each, in order; 0 in queues without tenants. What was given is remembered."""
    chains: dict[tuple[str, int, str], _Chain] = {}
    tags: list[int] = []
    for queue, priority, job_id, *_ in rows:
        if queue not in tx.tenanted:
            tags.append(0)
            continue
        (tenant,) = tx.db.execute(SQL["tenant_of"], (job_id,)).fetchone()
        key = (queue, priority, tenant)
        before = chains.get(key)
        chain = before._replace(tag=before.tag + before.cost, job_id=job_id) if before else _begin(tx, *key, job_id)
        tags.append(chain.tag)
        chains[key] = chain
    tx.db.executemany(SQL["set_last_tag"], [(*key, chain.tag, chain.job_id) for key, chain in chains.items()])
    return tags


class _Chain(NamedTuple):
    """The jobs of a tenant in a lane, one behind the other: the last of them."""

    tag: int
    job_id: bytes
    cost: int


def _begin(tx: Tx, queue: str, priority: int, tenant: str, job_id: bytes) -> _Chain:
    (reached,) = tx.db.execute(SQL["reached"], (queue, priority)).fetchone() or (None,)
    last, waits = tx.db.execute(SQL["last_tag"], (queue, priority, tenant)).fetchone() or (None, False)
    cost = tenant_cost(tx, tenant)
    if last is not None and not waits and last > (reached or 0):
        between = (last, (reached or 0) - cost)
        (before,) = tx.db.execute(SQL["last_waiting"], (queue, priority, *between, tenant)).fetchone()
        last, waits = (last, False) if before is None else (before, True)
    return _Chain(next_tag(reached, last, cost, waiting=bool(waits)), job_id, cost)


def reach(tx: Tx, queue: str, priority: int, tag: int) -> None:
    """A job with this tag was claimed."""
    if tag:
        tx.db.execute(SQL["reach"], (queue, priority, tag))


class Forgetting:
    """Tags that no longer say anything go, a bounded number of them per sweep; remembers where it was."""

    def __init__(self) -> None:
        self._after: tuple[str, int, str] = ("", 0, "")

    def forget(self, tx: Tx, *, limit: int) -> None:
        most = limit * _FORGOTTEN_AT_ONCE
        rows = tx.db.execute(SQL["some_tags"], (*self._after, most)).fetchall()
        tx.db.executemany(SQL["forget"], [(queue, priority, tenant) for queue, priority, tenant, past in rows if past])
        self._after = rows[-1][:3] if len(rows) == most else ("", 0, "")


# ---------------------------------------------------------------- settings


def set_weight(tx: Tx, tenant: str, weight: float | None, *, by: str) -> None:
    """For jobs that get their tags from now on."""
    before = _weight(tx, tenant)
    record_change(tx, by=by, what="tenant", name=tenant, before=tenant_words(before), after=tenant_words(weight))
    if weight is None:
        tx.db.execute(SQL["drop_weight"], (tenant,))
    else:
        tx.db.execute(SQL["set_weight"], (tenant, weight))
    tx.hints |= Hint.SETTINGS


def weights(db: sqlite3.Connection) -> dict[str, float]:
    """Of all tenants for whom one was set."""
    found = {tenant: tenant_weight_of(weight) for tenant, weight in db.execute(SQL["weights"]) if type(tenant) is str}
    return {tenant: weight for tenant, weight in found.items() if weight is not None}


def tenant_cost(tx: Tx, tenant: str) -> int:
    """What one job costs it."""
    return cost_of(_weight(tx, tenant))


def _weight(tx: Tx, tenant: str) -> float | None:
    (weight,) = tx.db.execute(SQL["weight"], (tenant,)).fetchone() or (None,)
    return tenant_weight_of(weight)
