"""How a program of ours writes its log: as plain lines, or as structured ones, readable or JSON, by structlog.

Structured lines have the job, task, queue, attempt, worker and trace of the run that wrote them, whoever wrote them:
Holdfast, the task by the standard library's logging or by structlog, or a library that it calls. Tracebacks are
written without the values of variables: these may be arguments.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from holdfast.core.errors import ConfigError
from holdfast.worker.log_fields import job_fields, span_finder

PLAIN: Final = "%(asctime)s %(levelname)-7s %(message)s"
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "_from_structlog",
    "_logger",
}

Line = MutableMapping[str, Any]


def set_up_logs(log_format: str) -> None:
    """Write to standard error in this form, unless the app has set up logging by itself."""
    if log_format != "plain" and not logging.getLogger("holdfast").hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(formatter(log_format, colours=sys.stderr.isatty()))
        logging.getLogger().addHandler(handler)
    elif not logging.getLogger("holdfast").hasHandlers():
        logging.basicConfig(format=PLAIN)


def formatter(log_format: str, *, colours: bool = False) -> logging.Formatter:
    """For a handler of your own: `readable` or `json`. ConfigError where structlog is not installed."""
    structlog = _structlog()
    shared = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
        add_fields(span_finder()),
    ]
    if log_format == "json":
        ending = [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message", replace_by="_event"),
            structlog.processors.JSONRenderer(default=repr),
        ]
    else:
        plain = structlog.dev.plain_traceback  # the other kinds show what variables hold
        ending = [_without_event_name, structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=plain)]
    if not structlog.is_configured():  # what tasks write by structlog goes the same way
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.stdlib.PositionalArgumentsFormatter(),
                structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
            ],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
            cache_logger_on_first_use=True,
        )
    made: logging.Formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_add_extra],
        processors=[*shared, structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
    )
    return made


def add_fields(span_fields: Callable[[], dict[str, str]] | None = None) -> Callable[[Any, str, Line], Line]:
    """A processor for structlog: what the running job's lines have in common, where the line does not say it itself."""
    spans = span_fields or span_finder()

    def add(logger: Any, method: str, line: Line) -> Line:
        fields = job_fields() | spans()
        # Events of one job may be told by what another one has started: only their own run's fields are theirs.
        if "_event" not in line or line.get("job_id") == fields.get("job_id", ""):
            for name, value in fields.items():
                line.setdefault(name, value)
        return line

    return add


class JobFields(logging.Filter):
    """For a handler of your own: gives records the same as attributes, as in `%(job_id)s`; empty outside of jobs."""

    NAMES: Final = ("job_id", "task", "queue", "attempt", "worker", "trace_id", "span_id")

    def __init__(self) -> None:
        super().__init__()
        self._spans = span_finder()

    def filter(self, record: logging.LogRecord) -> bool:
        found = job_fields() | self._spans()
        for name in self.NAMES:
            if name not in record.__dict__:
                setattr(record, name, found.get(name, ""))
        return True


def _add_extra(logger: Any, method: str, line: Line) -> Line:
    """What was given as `extra=`, as the events of Holdfast have their fields; the name of an event as `_event`."""
    record: logging.LogRecord = line["_record"]
    for name, value in vars(record).items():
        if name not in _OWN:
            line["_event" if name == "event" else name] = _plain(value)
    return line


def _plain(value: object) -> object:
    """As JSON has it."""
    match value:
        case None | str() | int() | float():
            return value
        case tuple() | list():
            return [_plain(each) for each in value]
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case _:
            return str(value)


def _without_event_name(logger: Any, method: str, line: Line) -> Line:
    """A person reads it in the sentence."""
    line.pop("_event", None)
    return line


def _structlog() -> Any:
    try:
        return importlib.import_module("structlog")
    except ModuleNotFoundError as error:
        raise ConfigError(f"structured logs need the package {error.name}: pip install 'holdfast[logs]'") from error
