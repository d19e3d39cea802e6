"""Whoever asks a store that is being closed is answered."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.integration.scene import PATIENCE_S, scene

from holdfast import NotOpen
from holdfast.stores.sqlite import SqliteStore, writer


@scene
async def test_a_request_made_while_the_store_closes_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """`submit` had seen an open store; before it put its request, `close` put the end mark: nobody ever answered."""
    store = SqliteStore(":memory:")
    await store.open()
    closing = threading.Thread(target=store._writer.close)

    def close_meanwhile(_: int) -> None:
        closing.start()
        closing.join(0.5)  # or until it waits for us

    monkeypatch.setattr(writer, "check_process", close_meanwhile)
    try:
        await asyncio.wait_for(store.promote_jobs(limit=1), PATIENCE_S / 6)
    except NotOpen:
        pass
    finally:
        monkeypatch.undo()
        await asyncio.to_thread(closing.join)
        await store.close()
