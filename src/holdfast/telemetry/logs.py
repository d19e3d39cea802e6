"""Turns events into lines of the standard library's logging. Handlers, formats and levels are the user's.

Loggers are named after an event's noun: `holdfast.job`, `holdfast.worker`, `holdfast.store`, … Every record
also has `event` and the event's fields as attributes, for handlers that write JSON.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import fields
from logging import DEBUG, ERROR, INFO, WARNING
from typing import Any

from holdfast.telemetry import events, flow_events, process_events, transport_events
from holdfast.telemetry.events import EVENTS, Event
from holdfast.telemetry.hub import Telemetry

_LINES: dict[type[Event], tuple[int, str]] = {
    events.JobEnqueued: (DEBUG, "job %(job_id)s %(task)s: enqueued on %(queue)s, %(state)s"),
    events.JobStarted: (DEBUG, "job %(job_id)s %(task)s: started, attempt %(attempt)d"),
    events.JobSettled: (DEBUG, "job %(job_id)s %(task)s: %(outcome)s after %(duration_s).3f s"),
    events.JobRetried: (
        WARNING,
        "job %(job_id)s %(task)s: attempt %(attempt)d failed (%(error_class)s), again in %(delay_s).1f s: %(error)s",
    ),
    events.JobBuried: (
        ERROR,
        "job %(job_id)s %(task)s: dead after attempt %(attempt)d (%(reason)s): %(error)s",
    ),
    events.JobCrashed: (ERROR, "job %(job_id)s %(task)s: attempt %(attempt)d ended because %(why)s"),
    events.JobLost: (
        WARNING,
        "job %(job_id)s %(task)s: a write under token %(token)d came too late, another run owns the job",
    ),
    events.JobParked: (WARNING, "job %(job_id)s %(task)s: parked, %(reason)s %(key)s"),
    events.JobOverdue: (ERROR, "job %(job_id)s %(task)s: still runs %(seconds).1f s past its hard limit"),
    events.JobErrorIgnored: (
        WARNING,
        "job %(job_id)s %(task)s: has succeeded, so that what its task raised afterwards changes nothing: %(error)s",
    ),
    events.JobsPromoted: (DEBUG, "%(count)d scheduled jobs are ready"),
    flow_events.JobsLetGo: (DEBUG, "%(count)d jobs that waited at limits, rates, breakers or pauses are ready"),
    events.JobsPruned: (DEBUG, "%(count)d ended jobs pruned"),
    events.JobsSwept: (WARNING, "jobs that were left behind moved on: %(counts)s"),
    events.WorkerStarted: (
        INFO,
        "worker %(worker)s started, %(concurrency)d jobs at once, queues: %(queues)s",
    ),
    events.WorkerDraining: (INFO, "worker %(worker)s claims nothing more and waits for %(running)d jobs"),
    events.WorkerStopped: (INFO, "worker %(worker)s stopped"),
    events.WorkerLeaseLost: (ERROR, "worker %(worker)s has lost its lease and stops its jobs"),
    events.WorkerTold: (WARNING, "worker %(worker)s: %(line)s"),
    events.WorkerBlocked: (
        WARNING,
        "worker %(worker)s: the event loop has been blocked for %(seconds).1f s by %(blame)s at %(where)s",
    ),
    events.WorkersReaped: (WARNING, "silent workers reaped, %(jobs)d jobs are ready again: %(workers)s"),
    process_events.IsolateNotStarted: (
        ERROR,
        "no process for isolated tasks could be started, again in %(pause_s).1f s: %(error)s",
    ),
    events.LeadTaken: (DEBUG, "leads %(role)s, term %(term)d"),
    events.LeadLost: (DEBUG, "leads %(role)s no longer, term %(term)d is over"),
    process_events.ProcessReady: (INFO, "process %(pid)d is ready after %(after_s).1f s"),
    process_events.ProcessFailed: (ERROR, "%(why)s; another one is started in %(again_s).1f s"),
    process_events.ProcessKilled: (ERROR, "process %(pid)d is killed: %(why)s"),
    process_events.ProcessDied: (ERROR, "process %(pid)d %(why)s, with %(running)d running jobs"),
    process_events.ProcessLeftWaiting: (WARNING, "process %(pid)d: its jobs wait for its lease to end: %(why)s"),
    process_events.ProcessHandedBack: (WARNING, "process %(pid)d: its %(jobs)d jobs are back at their places"),
    process_events.ProcessReplaced: (INFO, "process %(pid)d ends when its jobs have ended: %(why)s"),
    process_events.ProcessTold: (WARNING, "%(line)s"),
    events.StoreDown: (ERROR, "the store does not answer, trying on: %(error)s"),
    events.StoreUp: (WARNING, "the store answers again after %(after_s).1f s"),
    transport_events.TransportDown: (
        WARNING,
        "Redis at %(place)s is not used, work comes from the store alone: %(error)s",
    ),
    transport_events.TransportRefused: (ERROR, "Redis is not used until somebody acts: %(error)s"),
    transport_events.TransportUp: (WARNING, "Redis at %(place)s is used again after %(after_s).1f s"),
    transport_events.TransportFilled: (INFO, "queue %(queue)s: Redis is told anew of %(jobs)d ready jobs"),
    transport_events.TransportGarbage: (
        WARNING,
        "%(count)d entries of the Redis stream %(stream)s are not Holdfast's and were dropped",
    ),
    events.QueueClosed: (
        WARNING,
        "queue %(queue)s is full with %(depth)d jobs, %(parked)d of them parked: enqueues wait",
    ),
    events.QueueOpened: (INFO, "queue %(queue)s accepts jobs again"),
    events.QueueRefused: (DEBUG, "queue %(queue)s did not take a job: it is %(why)s"),
    events.QueueRetriesStretched: (
        WARNING,
        "queue %(queue)s: retries are more than %(percent)d percent of the runs here and wait longer",
    ),
    events.QueueRetriesEased: (
        INFO,
        "queue %(queue)s: retries are within their share again, they were put off %(stretched)d times",
    ),
    flow_events.QueueSettingsIgnored: (
        WARNING,
        "queue %(queue)s: what the store has of %(settings)s makes no sense, so the defaults hold",
    ),
    flow_events.RouteUnheard: (
        WARNING,
        "routes that operators have set cannot be read, so jobs go where it was known last: %(error)s",
    ),
    flow_events.SettingChanged: (INFO, "%(what)s %(which)s: %(said)s, by %(by)s"),
    flow_events.BreakerOpened: (WARNING, "breaker %(breaker)s is open for %(for_s).1f s: its jobs wait"),
    flow_events.BreakerClosed: (INFO, "breaker %(breaker)s is closed: its jobs run again"),
    events.ClockDisagrees: (
        WARNING,
        "the store's clock moved %(difference_s).1f s against this machine's: no reaping for one lease",
    ),
    events.ServiceCrashed: (ERROR, "service %(service)s crashed: %(error)s"),
}

_LOGGERS = {kind: logging.getLogger("holdfast." + kind.name.partition(".")[0]) for kind in EVENTS}


def attach_logs(telemetry: Telemetry) -> Callable[[], None]:
    """Log the events of an app from now on; returns what detaches it.

    Events of level DEBUG come with every job, so they are attached only where their logger is at DEBUG now.
    """
    wanted = (kind for kind in EVENTS if _LINES[kind][0] > DEBUG or _LOGGERS[kind].isEnabledFor(DEBUG))
    return telemetry.attach(log_event, only=tuple(wanted))


def log_event(event: Event) -> None:
    """Write one event to its logger."""
    level, text = _LINES[type(event)]
    logger = _LOGGERS[type(event)]
    if logger.isEnabledFor(level):
        values = {f.name: getattr(event, f.name) for f in fields(event)}
        shown = {name: _shown(value) for name, value in values.items()}
        logger.log(level, text, shown, extra={"event": event.name, **values})


def _shown(value: Any) -> Any:
    """The value as it goes into one line of text: what a task raised must not forge a second line."""
    match value:
        case str():
            return value if value.isprintable() else repr(value)[1:-1]
        case tuple():
            return ", ".join(str(_shown(item)) for item in value) or "all"  # no queues means every one
        case dict():
            return ", ".join(f"{_shown(name)} {count}" for name, count in value.items())
        case _:
            return value
