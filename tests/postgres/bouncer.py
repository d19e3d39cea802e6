"""A real PgBouncer in transaction mode before the server under test, with few connections, so that they are shared."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit, urlunsplit

import psycopg
import pytest
from tests.postgres.fixtures import Admin, PostgresSchema
from tests.postgres.shared import own_directory

#: So few that everybody gets everybody else's; more than one, so that the next statement may meet another one.
POOL = 3
_PATIENCE_S = 30.0
_CONFIG = """
[databases]
* = host=127.0.0.1 port={server_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {directory}/users.txt
admin_users = {user}
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
logfile = {directory}/log
"""


class Bouncer:
    """To be started, killed and started again on the same port."""

    def __init__(self, binary: str, server_url: str) -> None:
        parts = urlsplit(server_url)
        self._binary = binary
        self.directory = own_directory()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        user, password = parts.username or "", unquote(parts.password or "")
        values = {"server_port": parts.port, "port": self.port, "directory": self.directory, "user": user}
        (self.directory / "pgbouncer.ini").write_text(_CONFIG.format(**values, pool=POOL))
        (self.directory / "users.txt").write_text(f'"{user}" "{password}"\n')
        if os.geteuid() == 0:  # it refuses to run as root
            shutil.chown(self.directory, "nobody")
            for file in self.directory.iterdir():
                shutil.chown(file, "nobody")
        self._process: subprocess.Popen[bytes] | None = None

    def url_of(self, url: str) -> str:
        """The same database by way of here."""
        parts = urlsplit(url)
        login = parts.netloc.rpartition("@")[0]
        return urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{self.port}"))

    def start(self) -> None:
        account = {"user": pwd.getpwnam("nobody").pw_uid} if os.geteuid() == 0 else {}
        self._process = subprocess.Popen(
            [self._binary, "-q", str(self.directory / "pgbouncer.ini")],
            cwd=self.directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **account,
        )
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=_PATIENCE_S).close()
                return
            except OSError:
                assert self._process.poll() is None, (self.directory / "log").read_text()
                assert time.monotonic() < deadline, "PgBouncer does not listen"
                time.sleep(0.01)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def console(self, command: str) -> None:
        """What its administrator says."""
        user, password = (self.directory / "users.txt").read_text().replace('"', "").split()
        login = f"host=127.0.0.1 port={self.port} user={user} password={password} dbname=pgbouncer"
        with psycopg.connect(login, autocommit=True) as console:
            psycopg.ClientCursor(console).execute(command)


@pytest.fixture(scope="session")
def _bouncer_binary() -> str:
    binary = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        pytest.skip("SYSTEM TEST NOT RUN: there is no pgbouncer (Debian: apt-get install pgbouncer)")
    return binary


@pytest.fixture(scope="session")
def _shared_bouncer(postgres_admin: Admin, _bouncer_binary: str) -> Iterator[Bouncer]:
    yield from _running(Bouncer(_bouncer_binary, postgres_admin.url))


@pytest.fixture
def own_bouncer(postgres_admin: Admin, _bouncer_binary: str) -> Iterator[Bouncer]:
    """One for this test alone, to kill."""
    yield from _running(Bouncer(_bouncer_binary, postgres_admin.url))


def _running(bouncer: Bouncer) -> Iterator[Bouncer]:
    bouncer.start()
    yield bouncer
    bouncer.kill()
    shutil.rmtree(bouncer.directory)


@pytest.fixture
def bouncer(_shared_bouncer: Bouncer, postgres_tables: PostgresSchema) -> Bouncer:
    """The one that this process shares. It does not hand out what `postgres_tables` has just cut off."""
    _shared_bouncer.console("RECONNECT")
    return _shared_bouncer


@pytest.fixture
def pooled_tables(bouncer: Bouncer, postgres_tables: PostgresSchema) -> PostgresSchema:
    """Empty tables of a store, reached through PgBouncer."""
    return PostgresSchema(bouncer.url_of(postgres_tables.url), postgres_tables.schema)
