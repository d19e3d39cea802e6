"""Every event becomes one readable line at a fitting level."""

from __future__ import annotations

import logging
from dataclasses import fields
from uuid import UUID

import pytest
from tests.unit.telemetry.samples import sample

from holdfast.telemetry.events import EVENTS, Event, JobBuried, JobEnqueued, JobRetried, WorkerStarted
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.logs import attach_logs, log_event


@pytest.mark.parametrize("kind", EVENTS)
def test_every_event_is_one_record_with_its_fields(kind: type[Event], caplog: pytest.LogCaptureFixture) -> None:
    event = sample(kind)
    with caplog.at_level(logging.DEBUG, logger="holdfast"):
        log_event(event)
    (record,) = caplog.records
    line = record.getMessage()
    assert line
    assert "%" not in line
    assert "{" not in line
    assert record.name == "holdfast." + kind.name.partition(".")[0]
    assert record.__dict__["event"] == kind.name
    for f in fields(event):
        assert record.__dict__[f.name] == getattr(event, f.name)


def test_lines_read_well(caplog: pytest.LogCaptureFixture) -> None:
    job = UUID(int=1)
    log_event(JobRetried(job, "shop.send", 2, 4.04, "ConnectionError: refused", "transient"))
    log_event(JobBuried(job, "shop.send", 5, "ValueError: no", "attempts"))
    with caplog.at_level(logging.INFO, logger="holdfast"):
        log_event(WorkerStarted(job, 100, ()))
        log_event(WorkerStarted(job, 100, ("mail", "images")))
    assert [(r.levelname, r.getMessage().replace(str(job), "J")) for r in caplog.records] == [
        ("WARNING", "job J shop.send: attempt 2 failed (transient), again in 4.0 s: ConnectionError: refused"),
        ("ERROR", "job J shop.send: dead after attempt 5 (attempts): ValueError: no"),
        ("INFO", "worker J started, 100 jobs at once, queues: all"),
        ("INFO", "worker J started, 100 jobs at once, queues: mail, images"),
    ]


def test_an_error_text_cannot_forge_a_second_line(caplog: pytest.LogCaptureFixture) -> None:
    log_event(sample(JobRetried, error="ValueError: x\nERROR all is lost\x1b[2J 100% é"))
    (record,) = caplog.records
    assert record.getMessage().endswith(r"ValueError: x\nERROR all is lost\x1b[2J 100% é")
    assert record.__dict__["error"] == "ValueError: x\nERROR all is lost\x1b[2J 100% é"


def test_a_silenced_logger_gets_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL, logger="holdfast"):
        log_event(sample(JobBuried))
    assert caplog.records == []


def test_events_of_every_job_are_wanted_only_by_a_logger_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = Telemetry()
    with caplog.at_level(logging.INFO, logger="holdfast"):
        detach = attach_logs(telemetry)
    assert not telemetry.wants(JobEnqueued)
    assert telemetry.wants(JobBuried)
    assert telemetry.wants(WorkerStarted)
    detach()
    assert not any(telemetry.wants(kind) for kind in EVENTS)
    with caplog.at_level(logging.DEBUG, logger="holdfast"):
        attach_logs(telemetry)
    assert all(telemetry.wants(kind) for kind in EVENTS)
