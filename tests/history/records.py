"""The three histories as frozen values, and how the first two are read from JSON lines. No judgement here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from holdfast.core.gates import Gate
from holdfast.core.state import State


class HistoryError(Exception):
    """A history cannot be read, so nothing can be concluded from it."""


# ---------------------------------------------------------------- what producers asked and were told


class Op(StrEnum):
    ENQUEUE = "enqueue"
    CANCEL = "cancel"
    REPLAY = "replay"


class Answer(StrEnum):
    ASKED = "asked"
    """About to ask. Counts as unknown unless an answer follows: the producer may be killed in between."""
    OK = "ok"
    FAIL = "fail"
    """Refused for certain: the call has had no effect."""
    UNKNOWN = "unknown"
    """No answer came: the call may have had its effect, or not."""


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call of a producer. `job_id` is the id that it asked with."""

    op: Op
    job_id: str
    answer: Answer
    at: float
    told: str | None = None
    """Enqueue: the id in the answer, if it is another one (the key was taken). Cancel: the store's word."""
    key: str | None = None
    tenant: str = ""
    fingerprint: str | None = None

    @property
    def answered_id(self) -> str:
        return self.job_id if self.op is not Op.ENQUEUE or self.told is None else self.told


# ---------------------------------------------------------------- what runs did


class RunEvent(StrEnum):
    START = "start"
    EFFECT = "effect"
    END = "end"


@dataclass(frozen=True, slots=True)
class RunLine:
    """One event of one run, written by the task itself."""

    event: RunEvent
    job_id: str
    token: int
    attempt: int
    worker: str
    pid: int
    at: float
    """Monotonic clock of the machine."""
    outcome: str | None = None
    """Only with `end`: "ok", or how the task failed."""

    @property
    def run(self) -> tuple[str, int]:
        return self.job_id, self.token


# ---------------------------------------------------------------- what the store has on record


@dataclass(frozen=True, slots=True)
class Place:
    """A row of one of the tables that make a job's state. A job has exactly one."""

    state: State
    token: int | None = None
    worker: str | None = None
    attempt: int = 0
    crashes: int = 0
    due_at: float | None = None
    reason: str | None = None
    started_at: float = 0.0


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """A run that did not succeed, with the cause on record."""

    token: int
    number: int
    cause: str
    worker: str | None = None
    started_at: float = 0.0
    ended_at: float = 0.0


@dataclass(frozen=True, slots=True)
class JobRecord:
    job_id: str
    queue: str
    places: tuple[Place, ...]
    attempts: tuple[AttemptRow, ...] = ()
    max_attempts: int | None = None
    waits_for: tuple[str, ...] = ()
    """Blocked: the jobs that have not arrived yet."""
    gates: tuple[Gate, ...] = ()
    """What each of its runs had to pass."""
    task: str = ""

    @property
    def ending(self) -> Place | None:
        return next((place for place in self.places if place.state.ended), None)


@dataclass(frozen=True, slots=True)
class KeyRow:
    tenant: str
    key: str
    job_id: str


class AuditOp(StrEnum):
    FOUND = "found"
    """The row was there when the audit was installed."""
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row that came into or left a table; `state` is None for the body itself."""

    n: int
    job_id: str
    op: AuditOp
    state: State | None
    token: int | None = None
    worker: str | None = None
    attempt: int | None = None
    crashes: int | None = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """Everything that the judge needs of a store, read in one transaction."""

    jobs: Mapping[str, JobRecord]
    depth: Mapping[str, int] = field(default_factory=dict)
    """The store's own counter of ready jobs per queue."""
    keys: tuple[KeyRow, ...] = ()
    audit: tuple[AuditRow, ...] | None = None
    """None: there was no audit."""
    removed_workers: Mapping[str, float] = field(default_factory=dict)
    """For each worker that is gone, if there was an audit: when its lease would have ended."""
    as_of: float = 0.0
    """When it was read, on the store's clock."""
    effects: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Rows that runs wrote in the transaction in which they finished: per job, the tokens."""
    ruled: frozenset[str] = frozenset()
    """Limits that operators have changed meanwhile: what jobs carry does not tell how they were."""
    orders: frozenset[str] = frozenset()
    """Jobs for which a producer wrote a row in the transaction in which it enqueued them."""


# ---------------------------------------------------------------- JSON lines

T = TypeVar("T")
# Much quicker than asking the enumerations, and there are millions of lines.
_OPS, _ANSWERS, _EVENTS = ({str(each): each for each in kind} for kind in (Op, Answer, RunEvent))


@dataclass(frozen=True, slots=True)
class History(Generic[T]):
    """What was read of one kind; `torn` counts the lines that killed writers left unfinished."""

    lines: tuple[T, ...]
    torn: int = 0


def load_client(path: Path) -> History[ClientCall]:
    """The calls in a file, or in all `*.jsonl` of a directory."""
    return _load(path, client_call)


def load_runs(path: Path) -> History[RunLine]:
    """The events in a file, or in all `*.jsonl` of a directory."""
    return _load(path, run_line)


def _load(path: Path, parse: Callable[[bytes], T]) -> History[T]:
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    lines: list[T] = []
    torn = 0
    for file in files:
        *whole, tail = file.read_bytes().split(b"\n")
        torn += tail != b""
        for number, line in enumerate(whole, start=1):
            try:
                lines.append(parse(line))
            except HistoryError as error:
                raise HistoryError(
                    f"{file}:{number}: {error}; only the last line of a file may be torn, so give each writer a file "
                    "of its own"
                ) from error
    return History(tuple(lines), torn)


def client_call(line: bytes) -> ClientCall:
    """One line that a `ClientRecorder` wrote."""
    try:
        job_id, op, answer, at, told, key, tenant, fingerprint = json.loads(line.decode())
        return ClientCall(_OPS[op], job_id, _ANSWERS[answer], at, told, key, tenant, fingerprint)
    except (ValueError, TypeError, KeyError) as error:
        raise _unreadable(line, error) from error


def run_line(line: bytes) -> RunLine:
    """One line that a `RunRecorder` wrote."""
    try:
        job_id, event, *rest = json.loads(line.decode())
        return RunLine(_EVENTS[event], job_id, *rest)
    except (ValueError, TypeError, KeyError) as error:
        raise _unreadable(line, error) from error


def job_of(line: bytes) -> str:
    """Whose line it is, without reading the rest of it."""
    return line[2 : line.index(b'"', 2)].decode()


def _unreadable(line: bytes, error: Exception) -> HistoryError:
    return HistoryError(f"not a line of this history: {line[:80]!r} ({error!r})")
