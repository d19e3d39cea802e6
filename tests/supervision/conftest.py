"""A crew on SQLite, on PostgreSQL, or on each in turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.supervision.crew import Crew

#: An hour: where a job runs again, it was the supervisor that handed it back, and no lease that ran out.
SETTINGS: dict[str, Any] = {"lease_s": 3600.0, "spares": 0, "poll_s": 0.1, "kill_after_s": 0.2, "grace_s": 20.0}


@pytest.fixture
def make_crew(tmp_path: Path) -> Callable[..., Crew]:
    """On a SQLite file, with these settings."""

    def make(**settings: Any) -> Crew:
        return Crew(tmp_path, SETTINGS | {"url": f"sqlite:///{tmp_path / 'jobs.db'}"} | settings)

    return make


@pytest.fixture(params=["sqlite", "postgres"])
def make_crew_on_both(
    request: pytest.FixtureRequest, tmp_path: Path, make_crew: Callable[..., Crew]
) -> Callable[..., Crew]:
    """The same on each store."""
    if request.param == "sqlite":
        return make_crew
    place = request.getfixturevalue("postgres_schema")
    return lambda **settings: make_crew(**{"url": place.url, "schema": place.schema} | settings)
