"""The local Redis server: safe by default, shared by its users, and gone with the last of them."""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.scene import PATIENCE_S
from tests.postgres.shared import own_directory
from tests.redis.fixtures import StartRedis

from holdfast.core.errors import ConfigError, NotOpen, StoreUnavailable
from holdfast.local import LocalRedis


def test_nobody_gets_in_without_the_password_and_only_the_owner_can_read_it(own_redis: LocalRedis) -> None:
    with socket.create_connection(("127.0.0.1", own_redis.port)) as line:
        line.sendall(b"PING\r\n")
        assert line.recv(100).startswith(b"-NOAUTH")
    for name in ("password", "redis.conf"):
        assert stat.S_IMODE((own_redis.directory / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(own_redis.directory.stat().st_mode) == 0o700
    command = Path(f"/proc/{own_redis.pid}/cmdline")
    assert not command.exists() or own_redis.password.encode() not in command.read_bytes()


def test_it_is_as_holdfast_wants_a_redis(own_redis: LocalRedis) -> None:
    assert b"maxmemory_policy:noeviction" in own_redis.ask("INFO", "memory")
    assert own_redis.ask("ECHO", "grüße") == "grüße".encode()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_what_was_written_survives_a_restart_on_the_same_port(own_redis: LocalRedis, how: str) -> None:
    assert own_redis.ask("SET", "kept", "17") == b"+OK"
    before, url = own_redis.pid, own_redis.url
    getattr(own_redis, how)()
    assert not own_redis.running
    with pytest.raises(NotOpen):
        _ = own_redis.pid
    own_redis.start()
    assert (own_redis.url, own_redis.ask("GET", "kept")) == (url, b"17")
    assert own_redis.pid != before


def test_wiped_it_is_empty_and_otherwise_the_same(own_redis: LocalRedis) -> None:
    own_redis.ask("SET", "kept", "17")
    url = own_redis.url
    own_redis.wipe()
    assert (own_redis.url, own_redis.ask("DBSIZE")) == (url, b":0")


def test_it_can_lose_the_last_of_what_it_wrote(own_redis: LocalRedis) -> None:
    for number in range(100):
        own_redis.ask("SET", f"key{number}", "x")
    own_redis.lose_tail(0.5)
    assert 30 < int(own_redis.ask("DBSIZE")[1:]) < 70
    assert own_redis.ask("GET", "key0") == b"x"


def test_frozen_it_accepts_connections_and_answers_nothing(own_redis: LocalRedis) -> None:
    with own_redis.frozen(), pytest.raises(TimeoutError):
        own_redis.ask("PING")
    assert own_redis.ask("PING") == b"+PONG"


def test_a_frozen_one_can_be_killed(own_redis: LocalRedis) -> None:
    with own_redis.frozen():
        own_redis.kill()
    assert not own_redis.running


def test_a_server_that_cannot_start_says_why(start_redis: StartRedis) -> None:
    with pytest.raises(StoreUnavailable, match="maxmemory"):
        start_redis(settings={"maxmemory": "much"})


def test_a_program_that_does_not_run_is_an_answer(start_redis: StartRedis, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="did not start"):
        start_redis(binary=tmp_path / "redis-server")


def test_a_directory_that_cannot_be_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="Redis cannot have its files in"), LocalRedis(tmp_path / "file" / "below"):
        pass


def test_users_share_one_server_and_the_last_takes_it_along() -> None:
    place = own_directory()
    with LocalRedis(place, temporary=True) as first:
        with LocalRedis(place, temporary=True) as second:
            assert second.pid == first.pid
            assert second.url == first.url
        assert first.ask("PING") == b"+PONG"
        process = os.pidfd_open(first.pid)
    assert not place.exists()
    assert select.select([process], [], [], PATIENCE_S)[0], "it has ended"
    os.close(process)


_USER = """
import sys
from holdfast.local import LocalRedis
server = LocalRedis(sys.argv[1], temporary=True)
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_user_takes_it_along() -> None:
    place = own_directory()
    user = subprocess.Popen(
        [sys.executable, "-c", _USER, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert user.stdout is not None
    user.stdout.readline()
    watcher = LocalRedis(place)
    assert watcher.running
    user.send_signal(signal.SIGKILL)
    user.communicate()
    watcher._occupancy.await_gone()
    assert not watcher.running
