"""Redis for tests: a prefix of their own on a server that the run shares, or a server of their own to kill and wipe."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from tests.postgres.shared import own_directory

from holdfast.local import LocalRedis

#: What a test server writes down survives its death, not the machine's.
QUICK = {"appendfsync": "no"}


class StartRedis(Protocol):
    """What the fixture `start_redis` is."""

    def __call__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        binary: Path | None = None,
        sentinel: bool = False,
        port: int | None = None,
    ) -> LocalRedis: ...


def chosen_server() -> Path | None:
    """The program that HOLDFAST_TEST_REDIS_SERVER names, as /usr/bin/valkey-server; else the wheel's."""
    named = os.environ.get("HOLDFAST_TEST_REDIS_SERVER", "")
    return Path(named) if named else None


def shared_redis() -> LocalRedis:
    """To be entered: the first process of a test run to do so starts it, the others join."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or secrets.token_hex(16)
    place = own_directory().parent / f"holdfast-test-redis-{run}"
    return LocalRedis(place, settings=QUICK, binary=chosen_server(), temporary=True)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The server that HOLDFAST_TEST_REDIS_URL names, else the one that this test run shares.

    Tests on one server do not meet: each installation of Holdfast has keys of its own.
    """
    if url := os.environ.get("HOLDFAST_TEST_REDIS_URL"):
        yield url
        return
    with shared_redis() as server:
        yield server.url


@pytest.fixture
def start_redis() -> Iterator[StartRedis]:
    """Starts a server for this test alone: `start_redis(settings={"maxmemory": "10mb"}, binary=…)`."""
    started: list[LocalRedis] = []

    def start(
        *,
        settings: Mapping[str, str] | None = None,
        binary: Path | None = None,
        sentinel: bool = False,
        port: int | None = None,
    ) -> LocalRedis:
        wanted = ({} if sentinel else QUICK) | dict(settings or {})
        how = {"binary": binary or chosen_server(), "sentinel": sentinel, "port": port}
        server = LocalRedis(own_directory(), settings=wanted, temporary=True, **how)  # type: ignore[arg-type]
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.close()


@pytest.fixture
def own_redis(start_redis: StartRedis) -> LocalRedis:
    """A server for this test alone, to stop, kill, freeze and wipe."""
    return start_redis()
