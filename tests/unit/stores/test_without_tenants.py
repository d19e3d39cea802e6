"""Where nobody names a tenant or has a gate to pass, SQLite is asked what it was asked before there were any."""

from __future__ import annotations

import asyncio
import re

from holdfast.core.settlement import Succeed
from holdfast.runtime.clock import ManualClock
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import a_job, claim, enlist, insert

_FRAME = re.compile(r"BEGIN|COMMIT|SAVEPOINT|RELEASE|PRAGMA")
_TABLE = re.compile(r"\b(?:UPDATE|INTO|FROM)\s+(\w+)")
_ASIDE = re.compile(r"\([^()]*\)")

ENQUEUE = [
    "SELECT depth",
    "SELECT queue_setting",
    *["INSERT job"] * 3,
    "UPDATE counter",
    *["INSERT ready"] * 3,
    "INSERT depth",
]
CLAIM = [
    *("SELECT worker", "SELECT queue_setting", "SELECT ready", *["DELETE ready"] * 3, "UPDATE counter"),
    *(*["INSERT active"] * 3, "SELECT ready", "INSERT depth"),
]
SETTLE = [*["INSERT done"] * 3, *["DELETE active"] * 3, "SELECT expiry"]
PROMOTE = ["DELETE timer", "SELECT job", "UPDATE counter", "INSERT ready", "SELECT timer", "INSERT depth"]


def _what(statement: str) -> str:
    """A statement's verb and first table, but for what it asks aside in brackets."""
    text = "\n".join(line for line in statement.splitlines() if not line.startswith("--")).strip()
    verb = text.split()[0]
    table = _TABLE.search(_ASIDE.sub("", text)) or _TABLE.search(text)
    assert table is not None, statement
    return f"{verb} {table[1]}"


def test_a_life_without_tenants_takes_the_statements_that_it_took_before() -> None:
    async def scenario() -> list[str]:
        clock = ManualClock()
        store = SqliteStore(":memory:", clock=clock)
        await store.open()
        try:
            worker = await enlist(store)
            await insert(store, a_job(delay_s=1.0))
            clock.advance(2.0)
            said: list[str] = []
            await store._writer.submit("trace", lambda tx: tx.db.set_trace_callback(said.append))
            await insert(store, a_job(), a_job(), a_job())
            jobs = await claim(store, worker, 3)
            await store.settle_jobs(worker, [Succeed(job.id, job.token, b"1") for job in jobs])
            assert (await store.promote_jobs(limit=10)).promoted == 1
            await store._writer.submit("trace", lambda tx: tx.db.set_trace_callback(None))
        finally:
            await store.close()
        return [_what(each) for each in said if not _FRAME.match(each)]

    assert asyncio.run(scenario()) == [*ENQUEUE, *CLAIM, *SETTLE, *PROMOTE]
