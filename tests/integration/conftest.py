"""What a test must not leave behind: armed failpoints, and errors that asyncio could only log."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator

import pytest

from holdfast.app import backends
from holdfast.config import Config
from holdfast.runtime.clock import Clock, ManualClock
from holdfast.runtime.failpoints import disarm_all
from holdfast.stores.base import Store


@pytest.fixture(autouse=True)
def nothing_is_left_behind(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    disarm_all()
    gc.collect()
    records = [*caplog.get_records("call"), *caplog.get_records("teardown")]
    wrong = [each.getMessage() for each in records if each.name == "asyncio" and each.levelno >= logging.WARNING]
    assert wrong == []


@pytest.fixture(autouse=True)
def on_postgres(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HOLDFAST_TEST_STORE=postgres, whatever would be in memory is in PostgreSQL.

    Tests that move the clock stay where they are: there the database's clock decides.
    """
    if os.environ.get("HOLDFAST_TEST_STORE") != "postgres":
        return
    place = request.getfixturevalue("postgres_tables")
    make_store = backends.make_store

    def make(config: Config, *, clock: Clock | None = None) -> Store:
        if config.url != ":memory:" or isinstance(clock, ManualClock):
            return make_store(config, clock=clock)
        return make_store(config.with_arguments(url=place.url, schema=place.schema), clock=clock)

    monkeypatch.setattr(backends, "make_store", make)
