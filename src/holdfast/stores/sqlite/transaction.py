"""What a verb sees of the open transaction: the connection, the clock, the hints and depths it leaves behind."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from holdfast.core.backpressure import Watermarks, gate
from holdfast.core.gates import Place
from holdfast.stores.base import Hint
from holdfast.stores.queue_rows import from_row
from holdfast.stores.sqlite.statements import load

SQL = load("transaction")

#: (queue, priority, tag, seq, job_id, attempt, losses, crashes)
ReadyRow = tuple[str, int, int, int, bytes, int, int, int]
#: (queue, priority, job_id, attempt, losses, crashes)
TailRow = tuple[str, int, bytes, int, int, int]
_queue_of = itemgetter(0)


class Judgement(NamedTuple):
    """Whether a queue is closed, and by what that was judged."""

    closed: bool
    marks: Watermarks
    age_s: float | None
    draining: bool


class Tx:
    """One verb's part of a `BEGIN IMMEDIATE … COMMIT` group; `now` is read once and holds for all of it."""

    __slots__ = ("_depth", "_parked", "db", "freed", "hints", "now", "tenanted", "watermarks")

    def __init__(self, db: sqlite3.Connection, now: float, watermarks: Watermarks, tenanted: set[str]) -> None:
        self.db = db
        self.now = now
        self.watermarks = watermarks
        self.tenanted = tenanted
        """Queues with tenants, as far as this process knows."""
        self.hints = Hint.NOTHING
        self.freed: dict[Place, None] = {}
        """Gates of which this verb has freed slots; whoever waits there is served before it ends."""
        self._depth: Counter[str] = Counter()
        self._parked: dict[str, int] = {}

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

    def entered_parked(self, queue: str, count: int) -> None:
        """Account for rows inserted into `parked`."""
        self._parked[queue] = self._parked.get(queue, 0) + count
        self._depth[queue] += 0

    def left_parked(self, queue: str, count: int) -> None:
        """Account for rows deleted from `parked`."""
        self.entered_parked(queue, -count)

    def close_verb(self) -> None:
        """Write the depths that this verb changed, and open gates that have drained; same transaction."""
        parked = self._parked
        for queue, change in self._depth.items():
            row = (queue, change, parked.get(queue, 0))
            depth, closed = self.db.execute(SQL["change_depth"], row).fetchone()
            if closed and not self.judge(queue, depth, closed=True).closed:
                self.set_gate(queue, closed=False)
                self.hints |= Hint.OPENED
        self._depth.clear()
        parked.clear()

    def judge(self, queue: str, depth: int, *, closed: bool) -> Judgement:
        """By the queue's own watermarks, or the defaults; the age is looked at only where there are marks for it."""
        high, low, *more = self.db.execute(SQL["watermarks"], (queue,)).fetchone() or (None, None, None, None, 0)
        settings = from_row(False, high, low, 1.0, None, *more)
        marks = settings.watermarks or self.watermarks
        age_s = None
        if settings.ages is not None:
            (entered_at,) = self.db.execute(SQL["oldest"], (queue,)).fetchone()
            age_s = None if entered_at is None else self.now - entered_at
        now_closed = gate(closed, depth, marks, age_s=age_s, ages=settings.ages)
        return Judgement(now_closed, marks, age_s, settings.draining)

    def depth_of(self, queue: str) -> tuple[int, bool]:
        """(ready and parked jobs, gate closed) as this transaction sees it."""
        depth, closed, tenanted = self.db.execute(SQL["depth"], (queue,)).fetchone() or (0, 0, 0)
        if tenanted:
            self.tenanted.add(queue)
        return depth + self._depth[queue] + self._parked.get(queue, 0), bool(closed)

    def parked_in(self, queue: str) -> int:
        """Those of its depth that are parked."""
        (parked,) = self.db.execute(SQL["parked"], (queue,)).fetchone() or (0,)
        return max(0, int(parked) + self._parked.get(queue, 0))

    def set_gate(self, queue: str, *, closed: bool) -> None:
        self.db.execute(SQL["set_gate"], {"queue": queue, "closed": closed})
