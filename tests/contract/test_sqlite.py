"""The conformance suite on SQLite: a private store, and a file on disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contracts import CHECKS, Check


@pytest.fixture(params=["memory", "file"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "jobs.db")


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in CHECKS.items()])
def test_sqlite_keeps_the_contract(check: Check, path: str) -> None:
    asyncio.run(_run(check, path))


async def _run(check: Check, path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    try:
        await check(store)
    finally:
        await store.close()
