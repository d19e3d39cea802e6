"""Ends a server that connections may come to at this very moment."""

from __future__ import annotations

import asyncio


async def stop_listening(server: asyncio.Server) -> None:
    """No more are let in. What was just let in is handed over first: a server that is closed before that loses it, with
    its socket open."""
    loop = asyncio.get_running_loop()
    for socket in server.sockets:
        loop.remove_reader(socket.fileno())
    for _ in range(3):
        await asyncio.sleep(0)
    server.close()
