"""Serves an application by uvicorn, and ends well: whoever follows is told to come again, and requests may end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable

import uvicorn

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown
from holdfast.http.application import Application
from holdfast.http.connections import Connection
from holdfast.runtime.signals import StopSignals

_WAITING = 2048


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it; of a name that says nothing about that, no."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_proxies(proxies: str) -> str:
    """Addresses or networks, separated by commas; never everybody: who asks could say that he is somebody else."""
    for each in proxies.split(",") if proxies else ():
        try:
            network = ipaddress.ip_network(each.strip())
        except ValueError:
            network = None
        if network is None or not network.prefixlen:
            raise InvalidOptions(
                f"proxies: {shown(each.strip())} is no address of a proxy; write it as 10.0.0.7, or 10.0.0.0/24"
            )
    return proxies


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; OSError where it cannot. Port 0: any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    place = socket.create_server((host, port), family=family, backlog=_WAITING)
    # Inherited by every connection. asyncio sees to it only for sockets that it has made itself; without it an answer
    # whose head and body are two packets waits until the client's kernel confirms the first, 40 ms later.
    place.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return place


def address_of(place: socket.socket) -> str:
    """As a client writes it."""
    host, port = place.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _Server(uvicorn.Server):
    """Streams would be waited for until the grace is over: they are ended first. Whoever waits for an ending has half
    of it: who is cut off at its end does not hear that his job is stored. Signals are ours to handle."""

    def __init__(self, config: uvicorn.Config, app: Application, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._on_started = started

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]  # ours are the signals
        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.server.stop_streams()
        grace_s = self.config.timeout_graceful_shutdown or 0
        asyncio.get_running_loop().call_later(grace_s / 2, self._app.server.stop_waits)
        await super().shutdown(sockets)


async def serve(
    app: Application,
    place: socket.socket,
    signals: StopSignals,
    *,
    grace_s: float,
    proxies: str = "",
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serve until the first signal; then take nothing new, and let what is under way end within `grace_s`, or until the
    second.

    `proxies`: addresses, separated by commas, whose word about who asks is believed.
    """
    config = uvicorn.Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=check_proxies(proxies) or None,
        timeout_graceful_shutdown=max(1, round(grace_s)),
        ws="none",
    )
    server = _Server(config, app, started)
    stopping = asyncio.create_task(_stop(server, signals), name="holdfast-api-stop")
    try:
        await server.serve([place])
    finally:
        stopping.cancel()


async def _stop(server: _Server, signals: StopSignals) -> None:
    await signals.wait(1)
    server.should_exit = True
    await signals.wait(2)
    server.force_exit = True
