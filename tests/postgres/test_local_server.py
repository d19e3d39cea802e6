"""The local PostgreSQL server: safe by default, shared by its users, and gone with the last of them."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.postgres.fixtures import StartPostgres
from tests.postgres.shared import QUICK, own_directory

from holdfast.core.errors import ConfigError, StoreUnavailable
from holdfast.local import LocalPostgres
from holdfast.local.binaries import major_version, wheel_binaries


@pytest.fixture
def template(postgres_template: Callable[[Path], Path]) -> Path:
    return postgres_template(wheel_binaries())


DEBIAN = [path for path in sorted(Path("/usr/lib/postgresql").glob("*/bin")) if (path / "initdb").exists()]


def answer(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()  # type: ignore[call-overload]
    assert row is not None
    return row[0]


def write(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload]


def test_it_is_reached_over_tcp_and_over_its_socket(own_postgres: LocalPostgres) -> None:
    assert answer(own_postgres.url, "SHOW listen_addresses") == "127.0.0.1"
    assert answer(own_postgres.socket_url, "SELECT inet_client_addr() IS NULL") is True


def test_nobody_gets_in_without_the_password_and_only_the_owner_can_read_it(own_postgres: LocalPostgres) -> None:
    for url in (own_postgres.url, own_postgres.socket_url):
        password = url.partition("postgres:")[2].partition("@")[0]
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(url.replace(password, "guessed"))
    assert stat.S_IMODE((own_postgres.directory / "pgpass").stat().st_mode) == 0o600
    assert stat.S_IMODE(own_postgres.directory.stat().st_mode) == 0o700


def test_a_database_is_created_with_any_name(own_postgres: LocalPostgres) -> None:
    url = own_postgres.create_database('shop "1" / ü')
    assert answer(url, "SELECT current_database()") == 'shop "1" / ü'
    write(url, "CREATE TABLE kept ()")
    copy = own_postgres.create_database("copy", template='shop "1" / ü')
    assert answer(copy, "SELECT count(*) FROM kept") == 0
    with pytest.raises(StoreUnavailable, match="already exists"):
        own_postgres.create_database("copy")


@pytest.mark.parametrize("how", ["smart", "fast", "immediate", "kill"])
def test_what_was_committed_survives_every_kind_of_end(own_postgres: LocalPostgres, how: str) -> None:
    write(own_postgres.url, "CREATE TABLE kept AS SELECT 17 AS number")
    before, url = own_postgres.pid, own_postgres.url
    if how == "kill":
        own_postgres.kill()
        assert not own_postgres.running
        own_postgres.start()
    else:
        own_postgres.restart(how)  # type: ignore[arg-type]
    assert own_postgres.pid != before
    assert own_postgres.url == url, "clients come back to the same port"
    assert answer(url, "SELECT number FROM kept") == 17


def test_a_kill_reaches_a_backend_that_is_busy(own_postgres: LocalPostgres) -> None:
    with psycopg.connect(own_postgres.url) as connection:
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)  # it will not notice that its parent has gone
        assert backend in own_postgres.processes()
        own_postgres.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_it_can_be_stopped_when_only_its_children_are_left(own_postgres: LocalPostgres) -> None:
    with psycopg.connect(own_postgres.url) as connection:
        os.kill(connection.info.backend_pid, signal.SIGSTOP)  # it will not notice that its parent has gone
        os.kill(own_postgres.pid, signal.SIGKILL)
        assert own_postgres.running
        os.kill(connection.info.backend_pid, signal.SIGCONT)
        own_postgres.stop()
    assert not own_postgres.running
    with pytest.raises(StoreUnavailable, match="was not created"):
        own_postgres.create_database("late")


def test_settings_are_the_servers_own(start_postgres: StartPostgres) -> None:
    server = start_postgres(settings={"fsync": "on", "max_connections": "7"})
    assert answer(server.url, "SHOW fsync") == "on"
    assert answer(server.url, "SHOW max_connections") == "7"


def test_a_server_that_cannot_start_says_why(start_postgres: StartPostgres) -> None:
    with pytest.raises(StoreUnavailable, match="max_connections"):
        start_postgres(settings={"max_connections": "many"})


def test_a_directory_that_cannot_be_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot have its files in"), LocalPostgres(tmp_path / "file" / "below"):
        pass


def test_a_port_that_is_taken_is_an_answer(own_postgres: LocalPostgres, template: Path) -> None:
    other = LocalPostgres(own_directory(), port=own_postgres.port, template=template, temporary=True)
    with pytest.raises(StoreUnavailable, match="could not create any TCP/IP sockets"), other:
        pass
    assert not other.directory.exists()


def test_a_second_user_joins_and_the_last_one_ends_it(template: Path) -> None:
    directory = own_directory()
    first = LocalPostgres(directory, template=template, temporary=True)
    second = LocalPostgres(directory, temporary=True)
    first.start()
    second.start()
    assert second.pid == first.pid
    assert second.url == first.url
    first.close()
    assert answer(second.url, "SELECT 1") == 1
    second.close()
    assert not directory.exists()


USER = """
import sys
from holdfast.local import LocalPostgres
server = LocalPostgres(sys.argv[1], temporary=True)
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_it_ends_with_a_user_who_is_killed(template: Path) -> None:
    directory = own_directory()
    ours = LocalPostgres(directory, template=template)
    ours.prepare()
    with subprocess.Popen(
        [sys.executable, "-c", USER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as user:
        assert user.stdout is not None
        assert int(user.stdout.readline()) == ours.pid
        gone = os.open(directory / "alive", os.O_RDONLY)
        user.kill()
    wait_until_free(gone)
    os.close(gone)
    assert not ours.running


def wait_until_free(descriptor: int) -> None:
    """The server's processes hold this lock: blocks until the last has ended."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def test_a_directory_that_is_not_temporary_keeps_its_data() -> None:
    directory = own_directory()
    with LocalPostgres(directory, settings=QUICK) as server:
        write(server.url, "CREATE TABLE kept AS SELECT 17 AS number")
        password = server.url
    assert not server.running
    with LocalPostgres(directory, settings=QUICK, temporary=True) as server:
        assert answer(server.url, "SELECT number FROM kept") == 17
        assert server.url.partition("@")[0] == password.partition("@")[0]


@pytest.mark.parametrize("binaries", [wheel_binaries(16), *DEBIAN], ids=lambda path: str(major_version(path)))
def test_other_versions_run_as_well(binaries: Path) -> None:
    with LocalPostgres(own_directory(), settings=QUICK, binaries=binaries, temporary=True) as server:
        assert str(answer(server.url, "SHOW server_version")).startswith(str(major_version(binaries)))


def test_what_is_no_server_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no PostgreSQL 9: it has"):
        wheel_binaries(9)
    with pytest.raises(ConfigError, match="has no PostgreSQL server that runs here"):
        major_version(tmp_path)
