"""Rule 11 for limits of which only the newest is to run: who comes while somebody else has the older one in hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.faults.pair import pair
from tests.faults.racing import waits_or_is_done
from tests.integration.scene import scene

from holdfast.core.fairness import Lane
from holdfast.core.gates import SlotGate, WhenFull
from holdfast.core.settlement import Cancel
from holdfast.core.state import State
from holdfast.stores.base import CancelRequest
from holdfast.stores.postgres.transaction import Tx
from holdfast.testing.contracts.arrange import (
    PRIORITY,
    a_job,
    apply,
    claim,
    drain,
    enlist,
    finish,
    insert,
    serve,
    start,
    state,
)

NEWEST = (SlotGate("build", 1, when_full=WhenFull.REPLACE),)
BESIDE = Lane("beside", PRIORITY)


@scene
async def test_who_is_about_to_run_while_a_newer_one_comes_is_asked_to_stop(
    postgres_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was let go, with a slot, and is being claimed: its row is in the hand of one who waits for the gate."""
    async with pair(postgres_place) as stores:
        one, other, *_ = stores
        run = await start(one, gates=NEWEST)
        [older] = await insert(one, a_job(gates=NEWEST))
        assert await claim(one, run.worker) == []
        await finish(one, run)
        await serve(one)
        assert await state(one, older) is State.READY, "the slot is kept for it"
        [newer] = await insert(one, a_job(gates=NEWEST, queue=BESIDE.queue))
        fetch, claiming = Tx.fetch, list[asyncio.Future[Any]]()

        async def slowly(tx: Tx, name: str, *args: object) -> Any:
            if name == "passing.flag_holders":  # the newer one has the gate in hand, and was judged
                monkeypatch.setattr(Tx, "fetch", fetch)
                claiming.append(asyncio.ensure_future(claim(one, run.worker)))
                await waits_or_is_done(stores, claiming[0])
            return await fetch(tx, name, *args)

        monkeypatch.setattr(Tx, "fetch", slowly)
        assert await claim(other, await enlist(other), lane=BESIDE) == []
        [job] = await claiming[0]
        assert job.id == older
        request = CancelRequest(older, job.token, f"replaced by {newer}")
        assert await one.cancel_requests(run.worker) == [request]
        await apply(one, run.worker, Cancel(older, job.token, request.reason))
        await serve(one)
        assert [each.id for each in await drain(one, run.worker, BESIDE)] == [newer]
