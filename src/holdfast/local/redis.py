"""A Redis server on this machine, in a directory of its own, that lives as long as somebody uses it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from holdfast.core.errors import NotOpen, StoreUnavailable
from holdfast.local.binaries import redis_server
from holdfast.local.cluster import Account, as_user, write_private
from holdfast.local.occupancy import HOST, Occupancy, free_port

#: What Holdfast asks of a Redis, and what makes one survive its own death.
_SETTINGS = {"maxmemory-policy": "noeviction", "appendonly": "yes", "save": '""'}
_ANSWER_S = 1.0
_GLANCE_S = 0.01


class LocalRedis:
    """A server on loopback with a random password; it ends with its last user, as `LocalPostgres` does.

    1. `start` makes the directory if there is none, and joins a server that already runs there.
    2. `stop`, `kill`, `wipe`, `frozen` and `lose_tail` are for everybody; clients see what they
       would see of a real one.
    3. `close` ends our use alone; the last to close stops the server (and removes a `temporary` directory).
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        binary: Path | None = None,
        temporary: bool = False,
        sentinel: bool = False,
    ) -> None:
        """`settings` are lines of Redis's own configuration; `binary` defaults to the wheel's server."""
        self.directory = Path(directory).absolute()
        self.binary = binary or redis_server()
        self.settings = dict(settings or {})
        self._account = Account.for_server()
        self._occupancy = Occupancy(self.directory, server="Redis")
        self._port = port
        self._temporary = temporary
        self._sentinel = sentinel

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
            raise NotOpen(f"the Redis server in {self.directory} has no port before start()")
        return self._port

    @property
    def password(self) -> str:
        return self.passfile.read_text("utf-8").strip()

    @property
    def passfile(self) -> Path:
        """Holds the password, for its owner alone."""
        return self.directory / "password"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    @property
    def passfile_url(self) -> str:
        """The same without the password, which whoever reads it finds in a file."""
        return f"redis://{HOST}:{self.port}/0?passfile={quote(str(self.passfile), safe='/')}"

    @property
    def log(self) -> Path:
        """What the server has said since the directory was made."""
        return self.directory / "log"

    @property
    def running(self) -> bool:
        return self._occupancy.running

    @property
    def pid(self) -> int:
        if not self.running or not (path := self.directory / "pid").exists():
            raise NotOpen(f"the Redis server in {self.directory} does not run")
        return int(path.read_text("utf-8"))

    def start(self, *, patience_s: float = 30.0) -> None:
        """Returns when the server answers, after it has read its data."""
        self._occupancy.enter()
        with self._occupancy.starting():
            if self.running:
                self._port = int((self.directory / "port").read_text("utf-8"))
            else:
                self._launch()
            self._await_answer(patience_s)

    def stop(self) -> None:
        """As an operator would: it writes what it has, and ends. Nothing happens if it does not run."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: nobody is told. What it had handed to the kernel stays."""
        self._end(signal.SIGKILL)

    def wipe(self) -> None:
        """Started again without its data, as by somebody who has replaced its disk; on the same port."""
        self.kill()
        shutil.rmtree(self.data)
        self.start()

    def lose_tail(self, share: float) -> None:
        """Killed, and started without the last part of what it had written down: `share` of it, from 0 to 1."""
        self.kill()
        log = self.data / "appendonly.aof"
        if not log.exists():  # from Redis 7 on, a directory of them
            log = max((self.data / "appendonlydir").glob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
        os.truncate(log, int(log.stat().st_size * (1.0 - share)))
        self.start()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """SIGSTOP for as long as the block lasts: connections stay open, nothing is answered."""
        pid = self.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends our use of it; the last to do so stops it."""
        with self._occupancy.leaving() as is_last:
            if is_last:
                self._end(signal.SIGKILL if self._temporary else signal.SIGTERM)
                if self._temporary:
                    shutil.rmtree(self.directory, ignore_errors=True)

    def ask(self, *words: str) -> bytes:
        """The answer to one command, as the server writes it; for a few words, not for work."""
        with socket.create_connection((HOST, self.port), timeout=_ANSWER_S) as line:
            line.sendall(_packed("AUTH", self.password) + _packed(*words))
            reader = line.makefile("rb")
            reader.readline()
            answer = reader.readline()
            if answer.startswith(b"$") and int(answer[1:]) >= 0:
                return reader.read(int(answer[1:]) + 2)[:-2]
            return answer.strip()

    def list_keys(self) -> list[str]:
        """All keys of the first database; for few of them."""
        with socket.create_connection((HOST, self.port), timeout=_ANSWER_S) as line:
            line.sendall(_packed("AUTH", self.password) + _packed("KEYS", "*"))
            reader = line.makefile("rb")
            reader.readline()
            count = int(reader.readline()[1:])
            return [reader.read(int(reader.readline()[1:]) + 2)[:-2].decode() for _ in range(count)]

    def _launch(self) -> None:
        self._port = self._port or free_port("Redis")
        os.chown(self.directory, self._account.uid, self._account.gid)
        if not self.passfile.exists():
            write_private(self.passfile, self.settings.get("requirepass") or secrets.token_urlsafe(24))
        self.data.mkdir(mode=0o700, exist_ok=True)
        os.chown(self.data, self._account.uid, self._account.gid)
        fixed = {
            "bind": HOST,
            "port": str(self._port),
            "dir": str(self.data),
            "pidfile": str(self.directory / "pid"),
            "requirepass": self.password,  # in a file that others cannot read, unlike the words of a command
            "masterauth": self.password,
        }
        if self._sentinel:  # which knows nothing of data
            usual = {name: fixed[name] for name in ("bind", "port", "dir", "pidfile", "requirepass")}
        else:
            usual = _SETTINGS | fixed
        lines = [f"{name} {value}\n" for name, value in {**usual, **self.settings}.items()]
        configuration = self.directory / "redis.conf"
        write_private(configuration, "".join(lines), self._account)
        (self.directory / "pid").unlink(missing_ok=True)
        (self.directory / "port").write_text(str(self._port), "utf-8")
        self._occupancy.launch(
            [str(self.binary), str(configuration), *(["--sentinel"] if self._sentinel else [])],
            account=as_user(self._account),
            stop_signal=signal.SIGKILL if self._temporary else signal.SIGTERM,
            temporary=self._temporary,
        )

    def _await_answer(self, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while True:
            with contextlib.suppress(OSError, ValueError):
                if self.ask("PING") == b"+PONG" and (self.directory / "pid").exists():
                    return
            if not self.running:
                raise StoreUnavailable(f"Redis did not start: {self._last_words()} (all of it is in {self.log})")
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"Redis is not ready after {patience_s:g} s; {self.log} says why")
            time.sleep(_GLANCE_S)

    def _end(self, number: signal.Signals) -> None:
        if self.running:
            with contextlib.suppress(NotOpen, ProcessLookupError):  # it is ending already
                os.kill(self.pid, number)
                os.kill(self.pid, signal.SIGCONT)  # one that is stopped hears nothing
            self._occupancy.await_gone()

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").split("\n") if self.log.exists() else []
        said = [line.strip() for line in lines if line.strip()]
        return ": ".join(said[-2:]) or "it said nothing"  # of its configuration it first says what, then why


def _packed(*words: str) -> bytes:
    encoded = [word.encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
