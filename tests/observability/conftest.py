"""An app on each store, and nothing of structlog's left behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.integration.conftest import nothing_is_left_behind  # noqa: F401
from tests.supervision.conftest import make_crew, make_crew_on_both  # noqa: F401

from holdfast import Holdfast

MakeApp = Callable[..., Holdfast]


@pytest.fixture(params=["sqlite", "postgres"])
def make_app(request: pytest.FixtureRequest, tmp_path: Path) -> MakeApp:
    """`make_app(concurrency=5)`: not open; its tables are to be made by `migrate`."""
    if request.param == "sqlite":
        return lambda **settings: Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}", **{"poll_s": 0.1} | settings)
    place = request.getfixturevalue("postgres_schema")

    def make(**settings: Any) -> Holdfast:
        return Holdfast(place.url, schema=place.schema, **{"poll_s": 0.1} | settings)

    return make


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), logging.getLogger("holdfast").level
    yield
    root.handlers[:] = handlers
    logging.getLogger("holdfast").setLevel(level)
    structlog.reset_defaults()
