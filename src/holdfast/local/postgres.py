"""A PostgreSQL server on this machine, in a directory of its own, that lives as long as somebody uses it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias
from urllib.parse import quote

from holdfast.core.errors import ConfigError, NotOpen, StoreUnavailable
from holdfast.local.binaries import wheel_binaries
from holdfast.local.cluster import ROLE, Account, Cluster, as_user
from holdfast.local.occupancy import HOST, Occupancy, free_port

StopMode: TypeAlias = Literal["smart", "fast", "immediate"]

_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,  # when the last client has gone
    "fast": signal.SIGINT,  # clients are cut, everything is written
    "immediate": signal.SIGQUIT,  # nothing is written: the next start recovers
}
_LONGEST_SOCKET_PATH = 103
_GLANCE_S = 0.01


class LocalPostgres:
    """A server on loopback: whoever started it is a user of it, and it ends with the last user, even if he is killed.

    1. `start` makes the data directory if there is none, and joins a server that already runs there.
    2. `stop`, `restart` and `kill` are for everybody; clients see what they would see of a real server.
    3. `close` ends our use alone; the last to close stops the server (and removes a `temporary` directory).
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        binaries: Path | None = None,
        template: Path | None = None,
        temporary: bool = False,
    ) -> None:
        """`settings` are PostgreSQL's own; `binaries` defaults to the wheel's; `template` is a prepared directory."""
        self.directory = Path(directory).absolute()
        self.binaries = binaries or wheel_binaries()
        self._cluster = Cluster(self.directory)
        self._account = Account.for_server()
        self._template = None if template is None else Cluster(template)
        self._settings = dict(settings or {})
        self._port = port
        self._temporary = temporary
        self._occupancy = Occupancy(self.directory, server="PostgreSQL")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1; the same after a restart."""
        if self._port is None:
            raise NotOpen(f"the PostgreSQL server in {self.directory} has no port before start()")
        return self._port

    @property
    def url(self) -> str:
        """Of the database `postgres`, for its superuser, over TCP."""
        return self.url_of("postgres")

    @property
    def socket_url(self) -> str:
        """The same over the Unix socket."""
        if not self._socket_directory:
            raise ConfigError(f"{self.directory} is too long a path for a Unix socket: use the TCP url")
        host = quote(self._socket_directory, safe="")
        return f"postgresql://{ROLE}:{self._cluster.password}@/postgres?host={host}&port={self.port}"

    @property
    def log(self) -> Path:
        """What the server has said since the directory was made."""
        return self._cluster.log

    @property
    def running(self) -> bool:
        """Whether any of its processes lives."""
        return self._occupancy.running

    @property
    def pid(self) -> int:
        """Of the postmaster, the parent of all its processes."""
        said = self._postmaster_file()
        if not said:
            raise NotOpen(f"the PostgreSQL server in {self.directory} does not run")
        return int(said[0])

    def processes(self) -> list[int]:
        """The postmaster and its children, where there is a /proc; else the postmaster alone."""
        postmaster = self.pid
        return [postmaster, *(pid for pid, parent in _parents() if parent == postmaster)]

    def url_of(self, database: str) -> str:
        """Of another database of this server."""
        return f"postgresql://{ROLE}:{self._cluster.password}@{HOST}:{self.port}/{quote(database, safe='')}"

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """An empty database, or a copy of another one; its url."""
        passfile = str(self._cluster.pgpass).replace("\\", r"\\").replace("'", r"\'")
        login = f"host={HOST} port={self.port} user={ROLE} dbname=postgres passfile='{passfile}'"
        command = [str(self.binaries / "createdb"), f"--maintenance-db={login}", f"--template={template}", "--", name]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode:
            raise StoreUnavailable(f"database {name!r} was not created: {made.stderr.strip()}")
        return self.url_of(name)

    def prepare(self) -> None:
        """Makes the data directory if there is none, and starts nothing."""
        if self._cluster.exists:
            return
        if self._template is not None and self._template.exists:
            self._cluster.copy(self._template, account=self._account)
        else:
            self._cluster.make(self.binaries, account=self._account, durable=self._settings.get("fsync") != "off")

    def start(self, *, patience_s: float = 60.0) -> None:
        """Returns when the server accepts connections, after recovery if it needs one."""
        self._occupancy.enter()
        with self._occupancy.starting():
            before = self._postmaster_file()
            if self.running:
                before = []
            else:
                self.prepare()
                self._launch()
            self._await_ready(before, patience_s=patience_s)

    def stop(self, mode: StopMode = "fast") -> None:
        """Returns when all its processes have ended; nothing happens if there are none."""
        if self.running:
            with contextlib.suppress(NotOpen, ProcessLookupError):  # it is ending already
                os.kill(self.pid, _SIGNALS[mode])
            self._occupancy.await_gone()

    def restart(self, mode: StopMode = "fast") -> None:
        """Stops and starts on the same port."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """SIGKILL for all its processes at once: nothing is written, nobody is told."""
        postmaster = self.pid
        os.kill(postmaster, signal.SIGSTOP)  # or it would answer the death of the first child with new ones
        for pid in [*self.processes()[1:], postmaster]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._occupancy.await_gone()

    def close(self) -> None:
        """Ends our use of it; the last to do so stops it."""
        with self._occupancy.leaving() as is_last:
            if is_last:
                self.stop("immediate" if self._temporary else "fast")
                if self._temporary:
                    shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def _socket_directory(self) -> str:
        path = str(self.directory)
        return path if len(os.fsencode(path)) + len("/.s.PGSQL.00000") <= _LONGEST_SOCKET_PATH else ""

    def _launch(self) -> None:
        self._port = self._port or free_port("PostgreSQL")
        settings = {
            "listen_addresses": HOST,
            "port": str(self._port),
            "unix_socket_directories": f'"{self._socket_directory}"' if self._socket_directory else "",
            **self._settings,
        }
        command = [
            str(self.binaries / "postgres"),
            f"-D{self._cluster.data}",
            *(f"--{name}={value}" for name, value in settings.items()),
        ]
        stop_signal = _SIGNALS["immediate" if self._temporary else "fast"]
        account = as_user(self._account)
        self._occupancy.launch(command, account=account, stop_signal=stop_signal, temporary=self._temporary)

    def _await_ready(self, before: list[str], *, patience_s: float) -> None:
        # PostgreSQL says "ready" in its pid file and nowhere else that a stranger could wait for.
        deadline = time.monotonic() + patience_s
        while (said := self._postmaster_file()) == before or len(said) < 8 or said[7].strip() != "ready":
            if not self.running:
                raise StoreUnavailable(f"PostgreSQL did not start: {self._last_words()} (all of it is in {self.log})")
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"PostgreSQL is not ready after {patience_s:g} s; {self.log} says why")
            time.sleep(_GLANCE_S)
        self._port = int(said[3])

    def _postmaster_file(self) -> list[str]:
        try:
            return (self._cluster.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        fatal = [line for line in lines[-20:] if "FATAL" in line or "PANIC" in line]
        return (fatal or lines or ["it said nothing"])[-1]


def _parents() -> Iterator[tuple[int, int]]:
    for pid in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]:
        with contextlib.suppress(OSError):  # it has ended since
            yield pid, int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
