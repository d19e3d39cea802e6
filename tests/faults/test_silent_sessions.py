"""A client that falls silent in the middle of a round, with locks in its hand: the server ends what it left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest
from tests.campaign.where import Where
from tests.faults.trial import PATIENCE_S, Trial

from holdfast.stores.postgres import connections
from holdfast.stores.postgres.connections import Doorway


def test_who_has_prepared_a_statement_and_says_no_more_loses_his_locks(
    postgres_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process that is stopped there; the driver ends no round between preparing and executing."""
    monkeypatch.setattr(connections, "LONGEST_S", 0.3)

    async def run() -> None:
        where = Where.of(postgres_place)
        async with Trial(postgres_place) as trial:
            await trial.enqueue(trial.work.options(delay=3600), 1)
        lock = f"SELECT 1 FROM {where.schema}.timer FOR UPDATE"
        silent = await Doorway(where.url, pooled=False).open("silent")
        other = await asyncpg.connect(where.url)
        if other.get_server_version().major < 17:
            silent.terminate()
            await other.close()
            pytest.skip(
                "this server has no transaction_timeout (17 and later have): docs/postgres.md says what is left"
            )
        try:
            await silent.execute(f"BEGIN; {lock}")
            await silent.prepare("SELECT 42")
            async with asyncio.timeout(PATIENCE_S):
                assert await other.fetch(lock)
        finally:
            silent.terminate()
            await other.close()

    asyncio.run(run())
