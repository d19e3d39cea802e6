"""Waiting for the end of processes that are not our children, or that somebody else waits for."""

from __future__ import annotations

import asyncio
import os
import signal

from tests.integration.scene import PATIENCE_S


async def gone(pid: int) -> None:
    """Wait until there is no such process; it may be a zombie then."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
    except TimeoutError:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)  # one failed test must not burden those after it
        raise
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
