"""Several processes on one SQLite file agree on which queues have tenants."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts.arrange import a_job, claim, due, enlist, insert


@pytest.mark.parametrize("how", ["by enqueueing", "by going past the gate", "by reading settings", "by opening"])
def test_a_process_hears_that_another_has_named_a_tenant(how: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        one, other = (SqliteStore(str(tmp_path / "holdfast.db")) for _ in range(2))
        await one.open()
        if how != "by opening":
            await other.open()
        await insert(one, a_job(tenant="a", delay_s=3600), *(a_job(run_at=1.0) for _ in range(5)))
        if how == "by enqueueing":
            await insert(other, *(a_job() for _ in range(5)))
        elif how == "by going past the gate":
            await other.insert_jobs([a_job() for _ in range(5)], admit=False)
        elif how == "by reading settings":
            await other.queue_settings()
        else:
            await other.open()
        await due(other)
        await insert(one, a_job(tenant="b"))
        got = [job.tenant for job in await claim(one, await enlist(one), 2)]
        assert "b" in got, "the jobs without a tenant take turns with it, whoever made them ready"
        await one.close()
        await other.close()

    asyncio.run(scenario())
