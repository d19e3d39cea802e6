"""The doors that need an open app, each with bad input and the exact sentence the user reads; see `test_bad_input`."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from holdfast import (
    Holdfast,
    HoldfastError,
    InvalidArguments,
    InvalidOptions,
    JobNotFound,
    Task,
    current_job,
)

NAMES = "critical (9), high (7), normal (5), low (2), bulk (0)"
NAIVE = datetime(2024, 2, 29)  # noqa: DTZ001
MISSING = UUID("01890a5d-ac96-774b-bcce-b302099a8057")

Door = Callable[[Holdfast, Task[..., Any]], Any]
Case = tuple[Door, type[HoldfastError], str]


def _deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


# ---------------------------------------------------------------- calls

CALLS: dict[str, Case] = {
    "wrong type": (
        lambda hf, work: work.enqueue("x"),
        InvalidArguments,
        "work: argument 'n': Input should be a valid integer, unable to parse string as an integer",
    ),
    "missing": (lambda hf, work: work.enqueue(), InvalidArguments, "work: argument 'n': Missing required argument"),
    "unknown": (
        lambda hf, work: work.enqueue(1, m=2),
        InvalidArguments,
        "work: argument 'm': Unexpected keyword argument",
    ),
    "too many": (
        lambda hf, work: work.enqueue(1, None, None, 4, 5),
        InvalidArguments,
        "work: argument 4: Unexpected positional argument; argument 5: Unexpected positional argument",
    ),
    "twice": (
        lambda hf, work: work.enqueue(1, n=2),
        InvalidArguments,
        "work: argument 'n': Got multiple values for argument",
    ),
    "inside a value": (
        lambda hf, work: work.enqueue(1, sizes={"a": "big"}),
        InvalidArguments,
        "work: argument 'sizes'['a']: Input should be a valid integer, unable to parse string as an integer",
    ),
    "several at once": (
        lambda hf, work: work.enqueue("x", sizes=5),
        InvalidArguments,
        (
            "work: argument 'n': Input should be a valid integer, unable to parse string as an integer; "
            "argument 'sizes': Input should be a valid dictionary"
        ),
    ),
    "no JSON": (
        lambda hf, work: work.enqueue(1, thing=object()),
        InvalidArguments,
        "work: argument 'thing' cannot be written as JSON: Unable to serialize unknown type: <class 'object'>",
    ),
    "no JSON, by name": (
        lambda hf, work: hf.enqueue("other", 1, object()),
        InvalidArguments,
        "other: argument 2 cannot be written as JSON: Unable to serialize unknown type: <class 'object'>",
    ),
    "NaN": (
        lambda hf, work: work.enqueue(1, thing=math.nan),
        InvalidArguments,
        "the arguments of work: NaN is not JSON; use null or a text instead",
    ),
    "NUL": (
        lambda hf, work: work.enqueue(1, thing="a\0b"),
        InvalidArguments,
        (
            "the arguments of work: the text 'a\\x00b' holds a NUL character, which not every store can keep; "
            "remove it, or encode binary data as base64"
        ),
    ),
    "half a surrogate pair": (
        lambda hf, work: work.enqueue(1, thing="\ud800"),
        InvalidArguments,
        (
            "work: argument 'thing' cannot be written as JSON: Error serializing to JSON: UnicodeEncodeError: 'utf-8' "
            "codec can't encode character '\\ud800' in position 0: surrogates not allowed"
        ),
    ),
    "too large": (
        lambda hf, work: work.enqueue(1, thing="x" * 2000),
        InvalidArguments,
        (
            "the arguments of work: takes 2,034 bytes as JSON, the limit is 1,024; keep large data elsewhere and "
            "pass a reference to it"
        ),
    ),
    "too deep": (
        lambda hf, work: work.enqueue(1, thing=_deep(100)),
        InvalidArguments,
        "the arguments of work: is nested more than 64 levels deep at byte 93; flatten it, or pass it as text",
    ),
    "by a name that is none": (
        lambda hf, work: hf.enqueue("no such task!"),
        InvalidOptions,
        (
            "task name 'no such task!' has ' ' at position 3; allowed are letters A-Z, digits and any of _ . < > : - "
            "(give the task another one with name=)"
        ),
    ),
    "by no name": (
        lambda hf, work: hf.enqueue(work),  # type: ignore[arg-type]
        InvalidOptions,
        "a task name must be text, not AsyncTask: <Task work>",
    ),
    "many, one of them a task": (
        lambda hf, work: hf.enqueue_many([work.request(1), work]),  # type: ignore[list-item]
        InvalidArguments,
        "item 1: needs a request made by task.request(…), not AsyncTask",
    ),
    "many, as a generator": (
        lambda hf, work: hf.enqueue_many(work.request(n) for n in range(3)),  # type: ignore[arg-type]
        InvalidArguments,
        "enqueue_many needs a list of requests, not generator",
    ),
    "many, one with a bad limit": (
        lambda hf, work: hf.enqueue_many([work.request(1), work.options(soft_timeout=400).request(1)]),
        InvalidOptions,
        (
            "item 1: soft_timeout=400 is not below timeout=300: the soft limit must come first, to leave the task "
            "time to tidy up"
        ),
    ),
    "metadata that is no JSON": (
        lambda hf, work: work.options(metadata={"a": object()}).enqueue(1),
        InvalidArguments,
        "metadata cannot be written as JSON: Unable to serialize unknown type: <class 'object'>",
    ),
    "metadata that is too large": (
        lambda hf, work: work.options(metadata={"a": "x" * 20_000}).enqueue(1),
        InvalidArguments,
        (
            "metadata: takes 20,008 bytes as JSON, the limit is 16,384; keep large data elsewhere and pass a "
            "reference to it"
        ),
    ),
}

# ---------------------------------------------------------------- operating

NOT_AN_ID = "is not a job id; one looks like 01890a5d-ac96-774b-bcce-b302099a8057: copy it whole"

OPERATING: dict[str, Case] = {
    "a job id cut short": (lambda hf, _: hf.jobs.get("01890a5d"), InvalidArguments, f"'01890a5d' {NOT_AN_ID}"),
    "a number as job id": (lambda hf, _: hf.jobs.cancel(17), InvalidArguments, f"17 {NOT_AN_ID}"),
    "one bad id of several": (
        lambda hf, _: hf.dead.replay([MISSING, "x"]),
        InvalidArguments,
        f"'x' {NOT_AN_ID}",
    ),
    "no ids at all": (lambda hf, _: hf.dead.purge(17), InvalidArguments, "17 is not a job id, nor a list of them"),
    "a job that is not there": (
        lambda hf, _: hf.jobs.explain(str(MISSING)),
        JobNotFound,
        f"there is no job {MISSING}; ended jobs are pruned after their retention",
    ),
    "a cursor that is no id": (lambda hf, _: hf.jobs.list(before="x"), InvalidArguments, f"'x' {NOT_AN_ID}"),
    "an unknown state": (
        lambda hf, _: hf.jobs.list(state="done"),
        InvalidOptions,
        (
            "there is no state 'done'; the states are ready, scheduled, blocked, running, parked, succeeded, dead, "
            "cancelled"
        ),
    ),
    "a limit of nought": (
        lambda hf, _: hf.jobs.list(limit=0),
        InvalidOptions,
        "limit=0: needs a whole number from 1 to 1000",
    ),
    "a limit as text": (
        lambda hf, _: hf.dead.list(limit="5"),
        InvalidOptions,
        "limit='5': needs a whole number from 1 to 1000",
    ),
    "a filter by a bad queue": (
        lambda hf, _: hf.jobs.list(queue="a b"),
        InvalidOptions,
        "queue name 'a b' has ' ' at position 2; allowed are letters A-Z, digits, '_', '.' and '-'",
    ),
    "a filter by a number": (lambda hf, _: hf.jobs.list(tag=5), InvalidOptions, "tag=5: needs a text"),
    "a filter of dead letters by a type": (
        lambda hf, _: hf.dead.list(error_type=ValueError),
        InvalidOptions,
        "error_type=<class 'ValueError'>: needs a text",
    ),
    "a filter by a time without a zone": (
        lambda hf, _: hf.jobs.list(created_after=NAIVE),
        InvalidOptions,
        "created_after=datetime.datetime(2024, 2, 29, 0, 0): needs a datetime with a time zone",
    ),
    "an unknown filter": (
        lambda hf, _: hf.dead.count(kind="x"),
        InvalidOptions,
        (
            "unknown filter 'kind'; there are created_after, created_before, error_type, fingerprint, queue, reason, "
            "tag, task, tenant, text"
        ),
    ),
    "a reason that is no text": (
        lambda hf, _: hf.jobs.cancel(MISSING, reason=5),
        InvalidOptions,
        "reason=5: needs a text",
    ),
    "a queue that is no name": (
        lambda hf, _: hf.queues.pause(5),
        InvalidOptions,
        "a queue name must be text, not int: 5",
    ),
    "a purge for no reason": (
        lambda hf, _: hf.queues.purge("mail", reason=None),
        InvalidOptions,
        "reason=None: needs a text",
    ),
    "a weight below nought": (
        lambda hf, _: hf.queues.set_weights("mail", weight=-1),
        InvalidOptions,
        "weight=-1: needs a number from 0 (only when nothing else is ready) to 1,000,000",
    ),
    "weights as a list": (
        lambda hf, _: hf.queues.set_weights("mail", priorities=[60, 30]),
        InvalidOptions,
        "priorities=[60, 30]: needs a mapping from names to weights",
    ),
    "a weight of an unknown priority": (
        lambda hf, _: hf.queues.set_weights("mail", priorities={"hihg": 1}),
        InvalidOptions,
        f"weights: there is no priority 'hihg' (did you mean 'high'?); the names are {NAMES}",
    ),
    "no weight at all": (
        lambda hf, _: hf.queues.set_weights(
            "mail", priorities=dict.fromkeys(("critical", "high", "normal", "low", "bulk"), 0)
        ),
        InvalidOptions,
        "weights: all of them are 0; give at least one priority a positive weight",
    ),
    "watermarks upside down": (
        lambda hf, _: hf.queues.set_watermarks("mail", high=5, low=10),
        InvalidOptions,
        (
            "watermarks: low=10 and high=5 need 0 <= low < high, so that the queue opens again at a lower depth "
            "than it closed at"
        ),
    ),
    "watermarks as text": (
        lambda hf, _: hf.queues.set_watermarks("mail", high="5", low=1),
        InvalidOptions,
        "watermarks: high='5' must be a whole number of jobs",
    ),
    "current_job outside of a job": (
        lambda hf, _: current_job(),
        HoldfastError,
        "current_job() was called outside of a running job; only a task that a worker runs has one",
    ),
    "an answer awaited for no time": (
        lambda hf, work: _result(work, timeout="5"),
        InvalidOptions,
        "timeout='5': needs seconds or a timedelta, not str",
    ),
    "an answer awaited for less than no time": (
        lambda hf, work: _result(work, timeout=-1),
        InvalidOptions,
        "timeout=-1: needs to be from 0 seconds to ten years",
    ),
}


async def _result(work: Task[..., Any], *, timeout: Any) -> Any:
    return await (await work.enqueue(1)).result(timeout=timeout)
