"""What asyncio can only log (a callback that failed, an error that nobody took) fails the test, too."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_goes_unnoticed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    gc.collect()
    records = [*caplog.get_records("call"), *caplog.get_records("teardown")]
    assert [
        record.getMessage() for record in records if record.name == "asyncio" and record.levelno >= logging.WARNING
    ] == []
