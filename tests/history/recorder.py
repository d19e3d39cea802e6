"""Writers of the first two histories, used inside producers and tasks; what they wrote survives `kill -9`.

Each event is one `write` to a file opened with O_APPEND: it is with the kernel when the call returns. A line is a JSON
array that begins with the job's id, made by hand: a campaign writes millions of them, and sorts them by that id alone.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from pathlib import Path

from tests.history.records import Answer, HistoryError, Op, RunEvent

#: Lines stay below a page, so that concurrent appends do not mix.
LINE_LIMIT = 4096


class _Lines:
    """An append-only file of JSON lines; in a directory, a new file of this writer's own."""

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            path = path / f"{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, line: str) -> None:
        data = line.encode() + b"\n"
        if len(data) >= LINE_LIMIT:
            raise HistoryError(f"{self.path}: a line of {len(data)} bytes is too long to be written as one")
        if os.write(self._fd, data) != len(data):
            raise HistoryError(f"{self.path}: the line was not written whole; is the disk full?")

    def close(self) -> None:
        os.close(self._fd)


class RunRecorder:
    """What a task does, told by itself: `start` before all else, `effect` after each effect, `end` at last.

    Make it in the process that writes, not before a fork.
    """

    def __init__(self, path: Path | str) -> None:
        self._lines = _Lines(Path(path))
        self._pid = os.getpid()

    def start(self, job_id: object, *, token: int, attempt: int, worker: object = "") -> None:
        self._write(RunEvent.START, job_id, token, attempt, worker)

    def effect(self, job_id: object, *, token: int, attempt: int, worker: object = "") -> None:
        self._write(RunEvent.EFFECT, job_id, token, attempt, worker)

    def end(self, job_id: object, *, token: int, attempt: int, worker: object = "", outcome: str = "ok") -> None:
        """`outcome`: "ok" if the task is about to return, else a word for how it fails."""
        self._write(RunEvent.END, job_id, token, attempt, worker, outcome)

    def close(self) -> None:
        self._lines.close()

    def _write(
        self,
        event: RunEvent,
        job_id: object,
        token: int,
        attempt: int,
        worker: object,
        outcome: str | None = None,
    ) -> None:
        ending = "null" if outcome is None else json.dumps(outcome)
        at = time.monotonic()
        self._lines.write(f'["{job_id}","{event}",{token},{attempt},"{worker}",{self._pid},{at},{ending}]')


class ClientRecorder:
    """What a producer asked and was told.

    A producer that may be killed writes ASKED before each call and the answer when it has it.
    """

    def __init__(self, path: Path | str) -> None:
        self._lines = _Lines(Path(path))

    def enqueue(
        self,
        job_id: object,
        *,
        answer: Answer,
        told: object = None,
        key: str | None = None,
        tenant: str = "",
        fingerprint: str | None = None,
    ) -> None:
        """`told`: the id in the answer, where the key belonged to another job."""
        self._write(Op.ENQUEUE, job_id, answer, told, key=key, tenant=tenant, fingerprint=fingerprint)

    def cancel(self, job_id: object, *, answer: Answer, told: str | None = None) -> None:
        """`told`: the store's word, a `CancelAnswer`."""
        self._write(Op.CANCEL, job_id, answer, told)

    def replay(self, job_id: object, *, answer: Answer) -> None:
        self._write(Op.REPLAY, job_id, answer, None)

    def close(self) -> None:
        self._lines.close()

    def _write(
        self,
        op: Op,
        job_id: object,
        answer: Answer,
        told: object,
        *,
        key: str | None = None,
        tenant: str = "",
        fingerprint: str | None = None,
    ) -> None:
        more = json.dumps([None if told is None else str(told), key, tenant, fingerprint])
        self._lines.write(f'["{job_id}","{op}","{answer}",{time.monotonic()},{more[1:]}')
