"""What a test must not leave behind: errors that asyncio could only log."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest

from holdfast.runtime.failpoints import disarm_all


@pytest.fixture(autouse=True)
def nothing_is_left_behind(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    disarm_all()
    gc.collect()
    records = [*caplog.get_records("call"), *caplog.get_records("teardown")]
    wrong = [each.getMessage() for each in records if each.name == "asyncio" and each.levelno >= logging.WARNING]
    assert wrong == []
