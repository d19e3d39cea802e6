"""Who uses the server of a directory, and whether it runs: what the kernel's locks say (decision 0050)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.core.errors import ConfigError, StoreUnavailable
from holdfast.local import keeper

HOST = "127.0.0.1"
_PORTS = range(20_000, 32_000)  # below those that systems hand out by themselves, so that a restart finds its own free


class Occupancy:
    """Our part in the use of one directory's server; `server` is its name in words."""

    def __init__(self, directory: Path, *, server: str) -> None:
        self._directory = directory
        self._server = server
        self._in_use: int | None = None

    @property
    def running(self) -> bool:
        """Whether any of the server's processes lives."""
        if not self._directory.exists():
            return False
        with _opened(self._directory / "alive") as alive:
            try:
                fcntl.flock(alive, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def await_gone(self) -> None:
        """Wait until all of its processes have ended."""
        with contextlib.suppress(FileNotFoundError), _opened(self._directory / "alive") as alive:  # gone altogether
            fcntl.flock(alive, fcntl.LOCK_SH)

    def enter(self) -> None:
        """Be a user of it, if we are not."""
        path = self._directory / "in_use"
        while self._in_use is None:
            try:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise ConfigError(f"{self._server} cannot have its files in {self._directory}: {error}") from error
            fcntl.flock(held, fcntl.LOCK_SH)
            # While we waited, the last user's keeper may have removed a temporary directory.
            if path.exists() and path.stat().st_ino == os.fstat(held).st_ino:
                self._in_use = held
            else:
                os.close(held)

    @contextlib.contextmanager
    def leaving(self) -> Iterator[bool]:
        """End our use of it; True where we are the last, who has to stop it in here."""
        if self._in_use is None:
            yield False
            return
        in_use, self._in_use = self._in_use, None
        try:
            try:
                fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fcntl.flock(in_use, fcntl.LOCK_SH)  # others use it, or the keeper is at it: then this waits for him
                yield False
            else:
                yield True
        finally:
            os.close(in_use)

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """One at a time: others who want it started join."""
        with _opened(self._directory / "starting") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            yield

    def launch(self, command: Sequence[str], *, account: Mapping[str, Any], stop_signal: int, temporary: bool) -> None:
        """Start the server under a keeper, who stops it after its last user."""
        order = {
            "directory": str(self._directory),
            "command": list(command),
            "account": dict(account),
            "stop_signal": int(stop_signal),
            "temporary": temporary,
        }
        started = subprocess.run(
            [sys.executable, "-I", "-S", str(keeper.__file__), json.dumps(order)], capture_output=True, text=True
        )
        if started.returncode:
            raise StoreUnavailable(f"{self._server} did not start: {started.stderr.strip()}")


def free_port(server: str) -> int:
    """One that nobody has now."""
    for _ in range(100):
        port = secrets.choice(_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((HOST, port))
                return port
    raise StoreUnavailable(f"no free port for {server} between {_PORTS.start} and {_PORTS.stop}: name one")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
