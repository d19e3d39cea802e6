"""The table of errors: who belongs where, what follows, and what a policy of the task's says before it."""

from __future__ import annotations

import asyncio
import errno
import socket
import sqlite3
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock
from urllib.error import URLError

import aiohttp
import asyncpg
import httpx
import psycopg
import psycopg.errors
import pytest
import requests
import sqlalchemy.exc
import urllib3
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.unit.core.test_http_answer import NOW, of_aiohttp, of_httpx, of_requests

from holdfast import (
    Breaker,
    ErrorClass,
    HardTimeout,
    Holdfast,
    InvalidOptions,
    KeyHeld,
    QueueFull,
    RetryPolicy,
    SoftTimeout,
    StoreUnavailable,
)
from holdfast.core.blame import failed
from holdfast.core.error_classes import BUILT_IN_CLASSES, ErrorClasses, Judgement, check_classes
from holdfast.core.outcome import Failed

FIXED = RetryPolicy(max_attempts=5, base=3.0, backoff="fixed", jitter="none")


def judge(
    exc: BaseException, *rows: ErrorClass, attempt: int = 1, policy: RetryPolicy = FIXED, drawn: float = 0.0
) -> Judgement:
    return ErrorClasses(rows).judge(exc, attempt, policy, rng=lambda: drawn, now=lambda: NOW)


def invalid() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(int).validate_python("five")
    return caught.value


def full() -> QueueFull:
    return QueueFull("mail", depth=10, high=10, low=4, retry_after=7.0)


def no_host() -> Exception:
    key: Any = None
    return aiohttp.ClientConnectionError(key)


@pytest.mark.parametrize(
    ("exc", "name"),
    [
        (ConnectionResetError(), "transient"),
        (BrokenPipeError(), "transient"),
        (TimeoutError(), "transient"),
        (asyncio.IncompleteReadError(b"", 2), "transient"),
        (SoftTimeout(), "transient"),
        (HardTimeout(), "transient"),
        (httpx.ReadTimeout(""), "transient"),
        (httpx.RemoteProtocolError(""), "transient"),
        (requests.ReadTimeout(), "transient"),
        (no_host(), "transient"),
        (aiohttp.ServerDisconnectedError(), "transient"),
        (of_httpx(408, {}), "transient"),
        (sqlite3.OperationalError("database is locked"), "transient"),
        (psycopg.errors.DeadlockDetected(), "transient"),
        (asyncpg.DeadlockDetectedError(), "transient"),
        (asyncpg.SerializationError(), "transient"),
        (asyncpg.LockNotAvailableError(), "transient"),
        (ConnectionRefusedError(), "downstream"),
        (socket.gaierror(), "downstream"),
        (httpx.ConnectError(""), "downstream"),
        (requests.ConnectionError(), "downstream"),
        (of_requests(502, {}), "downstream"),
        (of_aiohttp(504, {}), "downstream"),
        (of_httpx(429, {}), "rate_limited"),
        (of_requests(503, {}), "unavailable"),
        (full(), "rate_limited"),
        (httpx.PoolTimeout(""), "pool_exhausted"),
        (sqlalchemy.exc.TimeoutError(), "pool_exhausted"),
        (psycopg.errors.TooManyConnections(), "pool_exhausted"),
        (asyncpg.TooManyConnectionsError(), "pool_exhausted"),
        (invalid(), "validation"),
        (InvalidOptions(), "validation"),
        (of_httpx(422, {}), "validation"),
        (of_httpx(404, {}), "other"),
        (of_httpx(500, {}), "other"),
        (sqlite3.OperationalError("no such table: t"), "other"),
        (ValueError(), "other"),
        (KeyError(), "other"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_every_error_has_its_class(exc: BaseException, name: str) -> None:
    assert BUILT_IN_CLASSES.find(exc).name == name


def of_sqlalchemy(inside: BaseException, *, kind: type[sqlalchemy.exc.DBAPIError] | None = None) -> Exception:
    made = (kind or sqlalchemy.exc.OperationalError)("SELECT locked, busy", {}, inside)
    assert made.orig is inside
    return made


def of_django(inside: BaseException) -> Exception:
    """Django need not be there: it is known by name."""
    made = type("OperationalError", (type("Error", (Exception,), {"__module__": "django.db.utils"}),), {})()
    made.__cause__ = inside
    assert isinstance(made, Exception)
    return made


class PgCode(Exception):
    """As psycopg2 has it, which knows codes only of errors that a server sent."""

    __module__, __qualname__ = "psycopg2", "Error"

    def __init__(self, pgcode: str) -> None:
        self.pgcode = pgcode


class Adapted(Exception):
    """As SQLAlchemy's dialects of asyncpg raise it."""

    def __init__(self, sqlstate: str) -> None:
        self.sqlstate = sqlstate


POOL = urllib3.HTTPConnectionPool("bank")
LOCKED = sqlite3.OperationalError("database is locked")


@pytest.mark.parametrize(
    "exc",
    [
        LOCKED,
        sqlite3.OperationalError("database table is locked: jobs"),
        psycopg.errors.SerializationFailure(),
        psycopg.errors.DeadlockDetected(),
        psycopg.errors.LockNotAvailable(),
        asyncpg.SerializationError(),
        asyncpg.DeadlockDetectedError(),
        asyncpg.LockNotAvailableError(),
        PgCode("40P01"),
        of_sqlalchemy(psycopg.errors.DeadlockDetected()),
        of_sqlalchemy(LOCKED),
        of_sqlalchemy(Adapted("40001"), kind=sqlalchemy.exc.DBAPIError),
        of_django(psycopg.errors.LockNotAvailable()),
        of_django(LOCKED),
        StoreUnavailable("locked"),
        KeyHeld("held"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_lock_of_a_database_is_transient_and_no_fault_of_a_service(exc: Exception) -> None:
    row = BUILT_IN_CLASSES.find(exc).row
    assert row is not None
    assert (row.name, row.then, row.breaker) == ("transient", "backoff", False)
    assert failed(Failed(exc), Breaker("stripe"), BUILT_IN_CLASSES) is None
    named = Breaker("db", on=[StoreUnavailable, "OperationalError", "DBAPIError", "PostgresError", "psycopg2.Error"])
    assert failed(Failed(exc), named, BUILT_IN_CLASSES) is True, "unless it says so itself"


@pytest.mark.parametrize(
    ("exc", "name"),
    [
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "transient"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "transient"),
        (OSError(errno.ENETDOWN, "Network is down"), "transient"),
        (OSError(errno.EHOSTDOWN, "Host is down"), "transient"),
        (OSError(errno.ECONNRESET, "Connection reset by peer"), "transient"),
        (OSError(errno.ECONNABORTED, "Software caused connection abort"), "transient"),
        (OSError(errno.ETIMEDOUT, "Connection timed out"), "transient"),
        (OSError(errno.ECONNREFUSED, "Connection refused"), "downstream"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 101] Connect call failed"), "transient"),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), "downstream"),
        (URLError(ConnectionRefusedError()), "downstream"),
        (URLError(socket.gaierror(socket.EAI_AGAIN, "Temporary failure")), "downstream"),
        (URLError(TimeoutError()), "transient"),
        (URLError(OSError(errno.EHOSTUNREACH, "No route to host")), "transient"),
        (urllib3.exceptions.ReadTimeoutError(POOL, "/", "timed out"), "transient"),
        (urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError()), "transient"),
        (urllib3.exceptions.ProxyError("no way", TimeoutError()), "transient"),
        (urllib3.exceptions.ConnectTimeoutError(), "downstream"),
        (urllib3.exceptions.NewConnectionError(Mock(host="bank"), "refused"), "downstream"),
        (urllib3.exceptions.MaxRetryError(POOL, "/", urllib3.exceptions.ConnectTimeoutError()), "downstream"),
        (urllib3.exceptions.MaxRetryError(POOL, "/", urllib3.exceptions.ReadTimeoutError(POOL, "/", "")), "transient"),
        (of_sqlalchemy(psycopg.OperationalError("server closed the connection unexpectedly")), "transient"),
        (psycopg.OperationalError("connection refused"), "transient"),
        (asyncpg.ConnectionDoesNotExistError(), "transient"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_the_network_does_counts_against_a_breaker(exc: Exception, name: str) -> None:
    row = BUILT_IN_CLASSES.find(exc).row
    assert row is not None
    assert (row.name, row.then, row.breaker) == (name, "backoff", True)
    assert failed(Failed(exc), Breaker("bank"), BUILT_IN_CLASSES) is True


@pytest.mark.parametrize(
    "exc",
    [
        OSError(errno.EMFILE, "Too many open files"),
        FileNotFoundError(errno.ENOENT, "no such file"),
        OSError("no route to host"),
        OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 13] Permission denied"),
        OSError("Multiple exceptions: none of them with a number"),
        URLError("unknown url type: gopher"),
        URLError(PermissionError()),
        urllib3.exceptions.MaxRetryError(POOL, "/", None),
        urllib3.exceptions.LocationParseError("bank:x"),
        sqlite3.OperationalError("no such column: unlockd"),
        of_sqlalchemy(sqlite3.OperationalError("no such table: t"), kind=sqlalchemy.exc.DBAPIError),
        psycopg.errors.UniqueViolation(),
        asyncpg.UniqueViolationError(),
        PgCode("23505"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_only_looks_alike_is_neither(exc: Exception) -> None:
    assert BUILT_IN_CLASSES.find(exc).row is None


def test_a_wrapper_with_nothing_inside_or_itself_is_what_it_is() -> None:
    endless = URLError("loop")
    endless.reason = endless
    assert BUILT_IN_CLASSES.find(endless).name == "other"

    class Hostile(URLError):
        @property
        def reason(self) -> Any:
            raise SystemExit

        @reason.setter
        def reason(self, value: Any) -> None: ...

    assert BUILT_IN_CLASSES.find(Hostile("x")).name == "other"


def test_own_rows_and_breakers_may_name_what_is_inside() -> None:
    row = ErrorClass(name="busy", then="fixed", delay=10, exceptions=["psycopg.errors.DeadlockDetected"], breaker=True)
    exc = of_sqlalchemy(psycopg.errors.DeadlockDetected())
    assert judge(exc, row)[:2] == ("busy", 5.0)
    assert failed(Failed(exc), Breaker("db"), ErrorClasses([row])) is True
    assert failed(Failed(exc), Breaker("db", on="psycopg.errors.DeadlockDetected"), BUILT_IN_CLASSES) is True
    assert failed(Failed(URLError(TimeoutError())), Breaker("db", on=TimeoutError), BUILT_IN_CLASSES) is True


@pytest.mark.parametrize("exc", [ConnectionResetError(), ConnectionRefusedError(), KeyError(), of_httpx(429, {})])
def test_most_classes_follow_the_policys_backoff(exc: BaseException) -> None:
    assert judge(exc).delay_s == 3.0
    assert judge(exc, attempt=5)[1:3] == (None, "exhausted")


def test_validation_is_dead_at_once() -> None:
    assert judge(invalid()) == Judgement("validation", None, "not_retried")


def test_an_exhausted_pool_gets_few_tries_after_a_short_delay_that_does_not_bring_all_back_together() -> None:
    exc = httpx.PoolTimeout("")
    assert [judge(exc, drawn=drawn).delay_s for drawn in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]
    assert judge(exc, attempt=3)[1:3] == (None, "exhausted")
    assert judge(exc, attempt=2, policy=RetryPolicy(max_attempts=2))[1:3] == (None, "exhausted")


@pytest.mark.parametrize("made_by", [of_httpx, of_requests, of_aiohttp])
def test_retry_after_is_honoured_charged_and_never_sooner_than_the_backoff(made_by: Callable[..., Exception]) -> None:
    assert judge(made_by(429, {"Retry-After": "30"})) == Judgement("rate_limited", 30.0)
    assert judge(made_by(503, {"Retry-After": "30"}), drawn=1.0).delay_s == pytest.approx(33.0)
    assert judge(made_by(429, {"Retry-After": "1"})).delay_s == 3.0
    assert judge(made_by(429, {"Retry-After": "30"}), attempt=5)[1:3] == (None, "exhausted")


def test_a_wait_is_a_day_at_most() -> None:
    assert judge(of_httpx(429, {"Retry-After": "999999999"})).delay_s == 86_400.0


def test_a_full_queue_says_itself_when_to_come_again() -> None:
    assert judge(full()).delay_s == 7.0


def test_a_row_may_leave_such_waits_uncharged_but_only_where_the_other_side_named_a_time() -> None:
    patient = ErrorClass(name="patient", then="retry_after", statuses=[429], charge=False)
    asked = of_httpx(429, {"Retry-After": "30"})
    assert judge(asked, patient, attempt=5) == Judgement("patient", 30.0, "", charged=False)
    assert judge(of_httpx(429, {}), patient, attempt=5)[1:3] == (None, "exhausted")


def test_own_rows_are_asked_first_and_in_order() -> None:
    rows = (
        ErrorClass(name="gone", then="dead", statuses=[404, 410]),
        ErrorClass(name="odd", then="fixed", delay=10, when=lambda exc: "odd" in str(exc)),
        ErrorClass(name="keys", then="dead", exceptions=KeyError),
    )
    assert judge(of_httpx(404, {}), *rows)[:2] == ("gone", None)
    assert judge(KeyError("odd"), *rows)[:2] == ("odd", 5.0)
    assert judge(KeyError("k"), *rows)[:2] == ("keys", None)
    assert judge(TimeoutError(), *rows)[:2] == ("transient", 3.0)
    assert [row.name for row in Holdfast(":memory:", errors=rows).errors][:4] == ["gone", "odd", "keys", "rate_limited"]


def test_when_has_to_agree_with_the_types_that_stand_beside_it() -> None:
    row = ErrorClass(name="mine", then="dead", exceptions=["KeyError"], when=lambda exc: exc.args == ("k",))
    assert judge(KeyError("k"), row).error_class == "mine"
    assert judge(KeyError("other"), row).error_class == "other"
    assert judge(ValueError("k"), row).error_class == "other"


def test_a_when_that_raises_does_not_match_and_is_told_of() -> None:
    row = ErrorClass(name="mine", then="dead", when=lambda exc: exc.args[0] == "x")
    assert judge(KeyError(), row) == Judgement("other (when= of class mine raised IndexError)", 3.0)


VALIDATING = RetryPolicy(retry_on=[ValueError], base=3.0, backoff="fixed", jitter="none")


@pytest.mark.parametrize(
    ("policy", "exc", "attempt", "verdict"),
    [
        (VALIDATING, invalid(), 1, (3.0, "")),
        (RetryPolicy(delays={ValueError: 9}), invalid(), 1, (9.0, "")),
        (RetryPolicy(give_up_on=["HTTPError"]), of_httpx(429, {"Retry-After": "30"}), 1, (None, "not_retried")),
        (RetryPolicy(retry_on=[KeyError]), TimeoutError(), 1, (None, "not_retried")),
        (RetryPolicy(delays={"HTTPError": 2}), of_httpx(429, {"Retry-After": "30"}), 1, (2.0, "")),
        (RetryPolicy(retry_on=["HTTPError"]), of_httpx(429, {"Retry-After": "30"}), 1, (30.0, "")),
        (RetryPolicy(retry_on=["PoolTimeout"]), httpx.PoolTimeout(""), 4, (1.0, "")),
    ],
)
def test_what_the_tasks_policy_names_goes_before_the_table(
    policy: RetryPolicy, exc: BaseException, attempt: int, verdict: tuple[float | None, str]
) -> None:
    assert judge(exc, policy=policy, attempt=attempt)[1:3] == verdict


@given(
    st.sampled_from([TimeoutError(), KeyError(), full(), httpx.PoolTimeout(""), of_httpx(503, {"Retry-After": "1"})]),
    st.integers(1, 12),
    st.integers(1, 12),
    st.floats(0, 1),
)
def test_no_class_gives_more_attempts_than_the_policy_or_a_negative_delay(
    exc: BaseException, attempt: int, most: int, drawn: float
) -> None:
    judgement = judge(exc, attempt=attempt, policy=RetryPolicy(max_attempts=most), drawn=drawn)
    assert (judgement.delay_s is None) == bool(judgement.reason)
    assert judgement.delay_s is None or judgement.delay_s >= 0
    assert judgement.delay_s is None or attempt < most


REFUSED: list[tuple[Callable[[], object], str]] = [
    (
        lambda: ErrorClass(name="No!", then="dead", statuses=[404]),
        "ErrorClass: name='No!' must be 1 to 40 small letters, digits and '_', beginning with a letter",
    ),
    (
        lambda: ErrorClass(name="x", then="die", statuses=[404]),  # type: ignore[arg-type]
        "ErrorClass 'x': then='die' must be one of backoff, retry_after, fixed, dead",
    ),
    (
        lambda: ErrorClass(name="x", then="dead"),
        "ErrorClass 'x': no exception belongs to it; give exceptions=, statuses= or when=",
    ),
    (
        lambda: ErrorClass(name="x", then="dead", exceptions=[int]),  # type: ignore[list-item]
        "ErrorClass 'x': exceptions=<class 'int'> must be an exception type or the name of one",
    ),
    (
        lambda: ErrorClass(name="x", then="dead", exceptions=5),  # type: ignore[arg-type]
        "ErrorClass 'x': exceptions=5 must be a list of exception types or names",
    ),
    (
        lambda: ErrorClass(name="x", then="dead", statuses=[42]),
        "ErrorClass 'x': statuses=42 must be a whole number from 100 to 599",
    ),
    (
        lambda: ErrorClass(name="x", then="dead", statuses="429"),  # type: ignore[arg-type]
        "ErrorClass 'x': statuses='429' must be a list of HTTP statuses",
    ),
    (
        lambda: ErrorClass(name="x", then="dead", when=5),  # type: ignore[arg-type]
        "ErrorClass 'x': when=5 must be a function (def or lambda) of the exception",
    ),
    (
        lambda: ErrorClass(name="x", then="fixed", statuses=[404]),
        "ErrorClass 'x': then='fixed' needs delay=, in seconds",
    ),
    (
        lambda: ErrorClass(name="x", then="dead", statuses=[404], delay=1),
        "ErrorClass 'x': delay=1 is for then='fixed', and this one has then='dead'",
    ),
    (
        lambda: ErrorClass(name="x", then="fixed", statuses=[404], delay=-1),
        "ErrorClass 'x': delay=-1 must be from 0 seconds to ten years",
    ),
    (
        lambda: ErrorClass(name="x", then="retry_after", statuses=[404], longest=float("nan")),
        "ErrorClass 'x': longest=nan must be from 0 seconds to ten years",
    ),
    (
        lambda: ErrorClass(name="x", then="backoff", statuses=[404], max_attempts=0),
        "ErrorClass 'x': max_attempts=0 must be a whole number from 1 on",
    ),
    (
        lambda: ErrorClass(name="x", then="dead", statuses=[404], max_attempts=2),
        "ErrorClass 'x': max_attempts=2 has no meaning with then='dead'",
    ),
    (
        lambda: ErrorClass(name="x", then="backoff", statuses=[404], charge=False),
        (
            "ErrorClass 'x': charge=False is for then='retry_after': without a time from the other side, a job would "
            "come back without end"
        ),
    ),
    (lambda: check_classes("transient"), "errors='transient': needs a list of ErrorClass(…)"),
    (lambda: check_classes([KeyError]), "errors: <class 'KeyError'> is not an ErrorClass(…) but type"),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED, ids=[sentence[:60] for _, sentence in REFUSED])
def test_senseless_rows_are_refused_in_a_sentence(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InvalidOptions) as caught:
        make()
    assert str(caught.value) == sentence
