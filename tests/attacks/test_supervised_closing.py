"""A supervisor that is told to stop ends, also when its own way to the store has never been open."""

from __future__ import annotations

import asyncio
import socket
from uuid import uuid4

from tests.integration.scene import scene

from holdfast.app.backends import make_store
from holdfast.config import Config
from holdfast.core.cause import Cause
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.supervision.recovery import Recovery


@scene
async def test_a_hand_back_that_never_gets_to_the_store_is_given_up() -> None:
    with socket.socket() as nobody:  # bound, and not listening: every connection is refused
        nobody.bind(("127.0.0.1", 0))
        recovery = Recovery(make_store, telemetry=Telemetry())
        config = Config(url=f"postgresql://me@127.0.0.1:{nobody.getsockname()[1]}/jobs", lease_s=0.5)
        recovery.hand_back(uuid4(), config, pid=1, why="it died", cause=Cause.WORKER_LOST, suspects=[])
        async with asyncio.timeout(20):
            await recovery.close()
