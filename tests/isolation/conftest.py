"""The app of these tests is a module's, as it has to be: each test hears only of its own."""

from __future__ import annotations

import pytest
from tests.isolation.app import hf

from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.logs import attach_logs


@pytest.fixture(autouse=True)
def heard_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = Telemetry()
    attach_logs(telemetry)
    monkeypatch.setattr(hf, "telemetry", telemetry)
