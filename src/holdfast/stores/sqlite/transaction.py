"""What a verb sees of the open transaction: the connection, the clock, the hints and depths it leaves behind."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter

from holdfast.core.backpressure import Watermarks, gate
from holdfast.stores.base import Hint
from holdfast.stores.sqlite.statements import load

SQL = load("transaction")

#: (queue, priority, tag, seq, job_id, attempt, losses, crashes)
ReadyRow = tuple[str, int, int, int, bytes, int, int, int]
#: (queue, priority, job_id, attempt, losses, crashes)
TailRow = tuple[str, int, bytes, int, int, int]
_queue_of = itemgetter(0)


class Tx:
    """One verb's part of a `BEGIN IMMEDIATE … COMMIT` group; `now` is read once and holds for all of it."""

    __slots__ = ("_depth", "db", "hints", "now", "tenanted", "watermarks")

    def __init__(self, db: sqlite3.Connection, now: float, watermarks: Watermarks, tenanted: set[str]) -> None:
        self.db = db
        self.now = now
        self.watermarks = watermarks
        self.tenanted = tenanted
        """Queues with tenants, as far as this process knows."""
        self.hints = Hint.NOTHING
        self._depth: Counter[str] = Counter()

    def take_numbers(self, counter: str, count: int) -> int:
        """Reserve `count` numbers of a counter; returns the first."""
        last: int = self.db.execute(SQL["take_numbers"], (count, counter)).fetchone()[0]
        return last - count + 1

    def enter_ready(self, rows: Sequence[ReadyRow]) -> None:
        """Insert into `ready`."""
        if rows:
            self.db.executemany(SQL["enter_ready"], [(*row, self.now) for row in rows])
            self._depth.update(map(_queue_of, rows))
            self.hints |= Hint.READY

    def left_ready(self, queue: str, count: int) -> None:
        """Account for rows deleted from `ready`."""
        self._depth[queue] -= count

    def close_verb(self) -> None:
        """Write the depths that this verb changed, and open gates that have drained; same transaction."""
        for queue, change in self._depth.items():
            ready, closed = self.db.execute(SQL["change_depth"], (queue, change)).fetchone()
            if closed and not gate(True, ready, self.marks_of(queue)):
                self.set_gate(queue, closed=False)
                self.hints |= Hint.OPENED
        self._depth.clear()

    def marks_of(self, queue: str) -> Watermarks:
        """The queue's own watermarks, else the defaults."""
        row = self.db.execute(SQL["watermarks"], (queue,)).fetchone()
        return Watermarks(row[0], row[1]) if row else self.watermarks

    def depth_of(self, queue: str) -> tuple[int, bool]:
        """(ready jobs, gate closed) as this transaction sees it."""
        ready, closed, tenanted = self.db.execute(SQL["depth"], (queue,)).fetchone() or (0, 0, 0)
        if tenanted:
            self.tenanted.add(queue)
        return ready + self._depth[queue], bool(closed)

    def set_gate(self, queue: str, *, closed: bool) -> None:
        self.db.execute(SQL["set_gate"], {"queue": queue, "closed": closed})
