"""Failpoints are global to a process: whatever a test armed is gone after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.runtime.failpoints import disarm_all


@pytest.fixture(autouse=True)
def no_failpoint_is_left_armed() -> Iterator[None]:
    yield
    disarm_all()
