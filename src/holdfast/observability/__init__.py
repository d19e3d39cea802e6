"""What goes on, for machines that watch: metrics, health, demand and the fields of log lines. Serves nothing by itself
but `holdfast worker`'s port; an HTTP API mounts the same functions."""

from __future__ import annotations

from holdfast.app.log_output import JobFields, add_fields, formatter, set_up_logs
from holdfast.observability.exposition import CONTENT_TYPE
from holdfast.observability.health import Check, Readiness, Status, liveness, readiness
from holdfast.observability.metrics import Metrics, metrics_of, metrics_text
from holdfast.observability.routes import watched
from holdfast.observability.scaling import Demand, autoscale

__all__ = [
    "CONTENT_TYPE",
    "Check",
    "Demand",
    "JobFields",
    "Metrics",
    "Readiness",
    "Status",
    "add_fields",
    "autoscale",
    "formatter",
    "liveness",
    "metrics_of",
    "metrics_text",
    "readiness",
    "set_up_logs",
    "watched",
]
