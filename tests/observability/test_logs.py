"""Structured lines: who wrote them does not matter, they say which job they belong to; never its arguments."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from opentelemetry import trace
from tests.integration.scene import scene

from holdfast import Holdfast, JobFailed, RetryPolicy
from holdfast.app.log_output import JobFields, formatter, set_up_logs

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
SECRET = "a-secret-argument"

log = logging.getLogger("shop.tasks")


class Written:
    """What a handler has written so far."""

    def __init__(self, log_format: str) -> None:
        self.stream = io.StringIO()
        handler = logging.StreamHandler(self.stream)
        handler.setFormatter(formatter(log_format))
        logging.getLogger().addHandler(handler)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def lines(self, message: str = "") -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.text.splitlines()]
        return [line for line in found if message in line["message"]]

    def line(self, message: str) -> dict[str, Any]:
        [found] = self.lines(message)
        return found


@pytest.fixture
def written() -> Written:
    logging.getLogger("holdfast").setLevel(logging.DEBUG)
    return Written("json")


def app(**tasks: Callable[..., Any]) -> Holdfast:
    hf = Holdfast(":memory:")
    for name, function in tasks.items():
        hf.task(name=name, retry=RetryPolicy(max_attempts=1))(function)
    return hf


async def in_a_task(secret: str) -> None:
    log.warning("sold %d", 3, extra={"order": 17})


def in_a_thread(secret: str) -> None:
    log.warning("from a thread")


async def by_structlog(secret: str) -> None:
    structlog.get_logger("shop.other").warning("by structlog", order=18)


async def fails(secret: str) -> None:
    try:
        raise KeyError("missing")
    except KeyError:
        log.exception("it went wrong")
    raise ValueError("and again")


@scene
async def test_a_line_says_which_run_wrote_it(written: Written) -> None:
    hf = app(in_a_task=in_a_task, in_a_thread=in_a_thread, by_structlog=by_structlog)
    async with hf, hf.worker() as worker:
        assert worker.session is not None
        jobs = {}
        for task in ("in_a_task", "in_a_thread", "by_structlog"):
            jobs[task] = await hf.named(task).options(metadata={"traceparent": PARENT}).enqueue(SECRET)
            await jobs[task].result(timeout=30)
        for task, message in (
            ("in_a_task", "sold 3"),
            ("in_a_thread", "from a thread"),
            ("by_structlog", "by structlog"),
        ):
            line = written.line(message)
            about = {
                name: line[name] for name in ("job_id", "task", "queue", "attempt", "worker", "trace_id", "span_id")
            }
            assert about == {
                "job_id": str(jobs[task].id), "task": task, "queue": "default", "attempt": 1,
                "worker": str(worker.session.id), "trace_id": TRACE, "span_id": SPAN,
            }  # fmt: skip
            assert line["level"] == "warning"
    assert written.line("sold 3")["order"] == 17
    assert written.line("by structlog")["order"] == 18
    assert written.line("sold 3")["logger"] == "shop.tasks"
    log.warning("outside")
    assert "job_id" not in written.line("outside")
    assert SECRET not in written.text


@pytest.mark.parametrize("log_format", ["json", "readable"])
def test_a_traceback_has_no_values_of_variables(log_format: str) -> None:
    written = Written(log_format)

    @scene
    async def run() -> None:
        hf = app(fails=fails)
        async with hf, hf.worker():
            job = await hf.enqueue("fails", SECRET)
            with pytest.raises(JobFailed):
                await job.result(timeout=30)

    run()
    assert "KeyError: 'missing'" in written.text
    assert "ValueError: and again" in written.text
    assert SECRET not in written.text


@scene
async def test_the_current_span_goes_before_what_the_call_said(written: Written) -> None:
    span = trace.NonRecordingSpan(trace.SpanContext(0xABC, 0xDEF, is_remote=False))

    async def spanned() -> None:
        with trace.use_span(span):
            log.warning("inside")
        log.warning("no span any more")

    hf = app(spanned=spanned)
    async with hf, hf.worker():
        await (await hf.named("spanned").options(metadata={"traceparent": PARENT}).enqueue()).result(timeout=30)
    assert (written.line("inside")["trace_id"], written.line("inside")["span_id"]) == (f"{0xABC:032x}", f"{0xDEF:016x}")
    assert written.line("no span any more")["trace_id"] == TRACE


@scene
async def test_what_one_job_tells_is_not_told_of_another(written: Written) -> None:
    """Outcomes are written in groups, by a task that one of the runs has started."""
    hf = app(in_a_task=in_a_task)
    async with hf:
        options = [hf.named("in_a_task").options(metadata={"traceparent": PARENT}), hf.named("in_a_task")]
        jobs = await hf.enqueue_many([options[n % 2].request(SECRET) for n in range(20)])
        async with hf.worker():
            for job in jobs:
                await job.result(timeout=30)
    settled = {line["job_id"]: line for line in written.lines() if line.get("event") == "job.settled"}
    assert len(settled) == 20
    for number, job in enumerate(jobs):
        assert settled[str(job.id)].get("trace_id") in ((TRACE, None) if number % 2 == 0 else (None,))
        assert settled[str(job.id)]["task"] == "in_a_task"


def test_a_line_is_one_line(written: Written) -> None:
    log.warning("first\nsecond\x1b[2J")
    assert len(written.text.splitlines()) == 1
    assert written.lines()[0]["message"] == "first\nsecond\x1b[2J"
    log.warning("odd", extra={"thing": {1: (2, object)}, "nothing": None})
    assert written.line("odd")["thing"] == {"1": [2, "<class 'object'>"]}


@scene
async def test_a_handler_of_ones_own_can_have_the_fields() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(job_id)s|%(task)s|%(attempt)s|%(trace_id)s|%(message)s"))
    handler.addFilter(JobFields())
    log.addHandler(handler)
    try:
        hf = app(in_a_task=in_a_task)
        async with hf, hf.worker():
            job = await hf.enqueue("in_a_task", SECRET)
            await job.result(timeout=30)
        log.warning("outside")
    finally:
        log.removeHandler(handler)
    assert stream.getvalue() == f"{job.id}|in_a_task|1||sold 3\n||||outside\n"


def test_an_app_that_has_set_up_logging_keeps_it() -> None:
    own = logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(own)
    before = list(logging.getLogger().handlers)
    set_up_logs("json")
    assert logging.getLogger().handlers == before
    assert not structlog.is_configured()
