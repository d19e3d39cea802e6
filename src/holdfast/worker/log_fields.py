"""What a log line is about: the job whose run wrote it, and its trace. Found out when a line is written, not before."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from holdfast.core.trace import trace_of
from holdfast.worker.context import _current


def job_fields() -> dict[str, Any]:
    """Of the run in which this is called; empty outside of one. Never its arguments."""
    current = _current.get()
    if current is None:
        return {}
    fields = {
        "job_id": str(current.id),
        "task": current.task,
        "queue": current.queue,
        "attempt": current.attempt,
        "worker": current.worker,
    }
    trace = trace_of(current._run.job.headers)
    return fields if trace is None else fields | {"trace_id": trace.trace_id, "span_id": trace.span_id}


def span_finder() -> Callable[[], dict[str, str]]:
    """What tells the ids of OpenTelemetry's current span, where that is installed."""
    try:
        trace = importlib.import_module("opentelemetry.trace")
    except ModuleNotFoundError:
        return dict

    def span_fields() -> dict[str, str]:
        span = trace.get_current_span().get_span_context()
        return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"} if span.is_valid else {}

    return span_fields
