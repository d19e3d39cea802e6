"""What a worker process does now, in memory that its supervisor reads: also after a death that left no time for words.

Written by the worker process alone, without locks and without waiting; read by its supervisor alone. A run's row counts
once its token is in it, which is written last and taken out first: a process may die between any two bytes. Every run
pays for it: beginning is one write of one row, whose last field is the token, and what all runs of a task have in
common (its terms) is put together once.

    header   worker id, beat, loop lag, slots taken, jobs done, when lonely jobs were last seen, rows in use
    row      job id, began, overdue from, limit (negative: passing it counts against the task's breaker), verdict for
             that case (`core.overdue`), name of the task, token
    margin   not ours: whoever counts what happens in the process (`holdfast.observability`) counts there
"""

from __future__ import annotations

import math
import mmap
import os
import struct
import tempfile
from typing import Final, NamedTuple
from uuid import UUID

from holdfast.core.job import JobId, WorkerId

MOST_ROWS: Final = 10_000
"""As many as the setting `concurrency` allows."""

_HEADER_BYTES: Final = 128
_ROW = struct.Struct("@16sdddd72sq")
_TERMS = struct.Struct("@dd72s")
_BEGUN = struct.Struct(f"@16sdd{_TERMS.size}sq")  # a row whose terms are known
_LIMITS = struct.Struct("=ddd")
_LIMITS_AT: Final = 16 + 8
_NUMBER = struct.Struct("=q")
_TOKEN_AT: Final = _ROW.size - _NUMBER.size
_write_row = _BEGUN.pack_into
_SECONDS = struct.Struct("=d")
_ID_AT, _BEAT_AT, _LAG_AT, _TAKEN_AT, _DONE_AT, _LONELY_AT, _ROWS_AT = 0, 16, 24, 32, 40, 48, 56
_NOBODY: Final = bytes(16)
_TASK_BYTES: Final = 72
SIZE: Final = _HEADER_BYTES + MOST_ROWS * _ROW.size
MARGIN: Final = 1024 * 1024


class RunSeen(NamedTuple):
    """A run whose user code has begun and not ended. Times are of the monotonic clock, which all processes share."""

    token: int
    job_id: JobId
    began_s: float
    overdue_s: float
    """When its hard limit has passed; infinite where it has none."""
    limit_s: float
    verdict: float
    """What becomes of its job if it ends with its process at that limit, as `core.overdue` writes it."""
    task: str
    blames: bool = False
    """Whether that counts against the breaker of its task."""


class WorkerSeen(NamedTuple):
    """A worker process at a glance."""

    worker: WorkerId | None
    """None: it has no identity in the store."""
    beat_s: float
    """When it last showed that it lives; 0 while it need not."""
    lag_s: float
    taken: int
    done: int
    lonely_s: float
    """When jobs that must run alone were last seen waiting; 0 for never."""


class Board:
    """See the module's sentence; made by the supervisor, which passes the file descriptor on."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._memory = mmap.mmap(fd, 0)  # all of it: another version of us may have made it with less of a margin
        self._numbers = memoryview(self._memory)[:SIZE].cast("q")
        self._free: list[int] = []
        self._rows = 0

    @classmethod
    def make(cls) -> Board:
        """A fresh one. Its pages take memory only once they are written to."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("holdfast-board")
        else:  # not on Linux
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        try:
            os.ftruncate(fd, SIZE + MARGIN)
            return cls(fd)
        except BaseException:
            os.close(fd)
            raise

    def close(self) -> None:
        self._numbers.release()
        self._memory.close()
        os.close(self.fd)

    # ------------------------------------------------------------ the worker process writes

    @property
    def margin(self) -> memoryview:
        """To be written to as anybody likes; empty until then, and perhaps of no length."""
        return memoryview(self._memory)[SIZE:]

    def introduce(self, worker: WorkerId | None) -> None:
        """Say who this is, before the store hears of it: whoever dies in between can still be handed back.

        None: nobody any more, and nothing is left to be handed back. No beat is expected before the first one: the
        store may be out of reach for long, and there is no lease meanwhile.
        """
        self.expect_no_beat()
        self._memory[_ID_AT : _ID_AT + 16] = _NOBODY if worker is None else worker.bytes

    def beat(self, now_s: float, lag_s: float) -> None:
        _SECONDS.pack_into(self._memory, _LAG_AT, lag_s)
        _SECONDS.pack_into(self._memory, _BEAT_AT, now_s)

    def expect_no_beat(self) -> None:
        """Until the next one: nothing is claimed here, so no lease is to be kept."""
        _SECONDS.pack_into(self._memory, _BEAT_AT, 0.0)

    def count(self, *, taken: int, done: int) -> None:
        _NUMBER.pack_into(self._memory, _TAKEN_AT, taken)
        _NUMBER.pack_into(self._memory, _DONE_AT, done)

    def saw_lonely(self, now_s: float) -> None:
        """Jobs that must run alone wait."""
        _SECONDS.pack_into(self._memory, _LONELY_AT, now_s)

    def begin(self, token: int, job_id: JobId, now_s: float, terms: bytes, overdue_s: float = math.inf) -> int:
        """User code begins; returns where it stands, to be given to `limit` and `end`. For `terms` see `terms_of`."""
        at = self._free.pop() if self._free else self._new_row()
        _write_row(self._memory, at, job_id.bytes, now_s, overdue_s, terms, token)
        return at

    def limit(self, at: int, *, overdue_s: float, limit_s: float, verdict: float, blames: bool = False) -> None:
        """From then on the run is overdue, and is ended with its process if need be."""
        _LIMITS.pack_into(self._memory, at + _LIMITS_AT, overdue_s, -limit_s if blames else limit_s, verdict)

    def end(self, at: int) -> None:
        """User code has ended: whatever kills the process from here on was not this run."""
        self._numbers[(at + _TOKEN_AT) // 8] = 0
        self._free.append(at)

    def _new_row(self) -> int:
        at = _HEADER_BYTES + self._rows * _ROW.size
        self._rows += 1
        _NUMBER.pack_into(self._memory, _ROWS_AT, self._rows)
        return at

    # ------------------------------------------------------------ the supervisor reads

    def read_margin(self) -> bytes:
        """What the process has written there, as it stands now."""
        return self._memory[SIZE:]

    def worker(self) -> WorkerSeen:
        identity = self._memory[_ID_AT : _ID_AT + 16]
        beat_s, lag_s = struct.unpack_from("=dd", self._memory, _BEAT_AT)
        taken, done = struct.unpack_from("=qq", self._memory, _TAKEN_AT)
        (lonely_s,) = _SECONDS.unpack_from(self._memory, _LONELY_AT)
        return WorkerSeen(None if identity == _NOBODY else UUID(bytes=identity), beat_s, lag_s, taken, done, lonely_s)

    def runs(self) -> list[RunSeen]:
        (rows,) = _NUMBER.unpack_from(self._memory, _ROWS_AT)
        seen = []
        for row in range(min(rows, MOST_ROWS)):
            job_id, began_s, overdue_s, limit_s, verdict, task, token = _ROW.unpack_from(
                self._memory, _HEADER_BYTES + row * _ROW.size
            )
            if token:
                name = task.rstrip(b"\0").decode("utf-8", "replace")
                run = RunSeen(token, UUID(bytes=job_id), began_s, overdue_s, abs(limit_s), verdict, name, limit_s < 0)
                seen.append(run)
        return seen


def terms_of(task: str, *, limit_s: float = math.inf, verdict: float = math.nan, blames: bool = False) -> bytes:
    """What a row says of every run of a task alike. The end of a long name says more than its beginning."""
    return _TERMS.pack(-limit_s if blames else limit_s, verdict, task.encode()[-_TASK_BYTES:])
