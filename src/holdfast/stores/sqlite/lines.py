"""Lines at gates: where somebody stands who begins to wait, and who is next. Rules: `core.turns`, `core.tenancy`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.core.fairness import Lane
from holdfast.core.gates import Candidate, Place
from holdfast.core.gates_text import read_gates
from holdfast.core.tenancy import line_tag
from holdfast.core.turns import InLine, Remembered, Turns, remembered_of
from holdfast.stores.parking import BEHIND
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.tenants import tenant_cost
from holdfast.stores.sqlite.transaction import ReadyRow, Tx

SQL = load("lines")

_FEW, _MANY = 2, 200  # waiters of a lane read at once: mostly one goes, and the next one stays


class Standing(NamedTuple):
    """A job before its gates, with its place in the queue. It has left `ready`, or is parked."""

    job_id: bytes
    queue: str
    priority: int
    tag: int
    seq: int
    attempt: int
    losses: int
    crashes: int
    candidate: Candidate
    parked: bool = False

    @property
    def lane(self) -> Lane:
        return Lane(self.queue, self.priority)

    @property
    def ready(self) -> ReadyRow:
        """Its old place."""
        return (*self.lane, self.tag, self.seq, *self.again)

    @property
    def again(self) -> tuple[bytes, int, int, int]:
        """What goes with it wherever it goes."""
        return self.job_id, self.attempt, self.losses, self.crashes


def tag_in_line(tx: Tx, place: tuple[str, str], lane: Lane, *, tag: int, tenant: str, seq: int) -> int:
    """For a job that begins to wait there. 0 where it has no tag in its lane: those go by their places."""
    if not tag:
        return 0
    line = (*place, *lane)
    its_own = (*line, tenant, seq)
    known = tx.db.execute(SQL["remembered"], line).fetchone()
    return line_tag(
        reached=remembered_of(*known).reached if known else 0,
        head=_tag(tx, "head", line),
        before=_tag(tx, "before", its_own),
        after=_tag(tx, "after", its_own),
        cost=tenant_cost(tx, tenant),
    )


def _tag(tx: Tx, statement: str, which: tuple[object, ...]) -> int | None:
    (tag,) = tx.db.execute(SQL[statement], which).fetchone() or (None,)
    return tag if type(tag) is int else None


class Waiter(NamedTuple):
    """One of a line."""

    standing: Standing
    lane: Lane
    """In which it waits."""
    share: float | None
    """That of the lane; None: nobody comes for it."""
    line: int


class Line:
    """Those who wait at a gate, in the order of their turns. Whoever was told of leaves it, or nobody is asked for any
    more: so what is left of a lane is read from its beginning."""

    def __init__(self, tx: Tx, place: Place, share_of: Callable[[Lane], float | None]) -> None:
        self._tx = tx
        self._place = place
        lanes: dict[Lane, InLine] = {}
        remembered: dict[Lane, Remembered] = {}
        for queue, priority, first, need, reached in tx.db.execute(SQL["lanes"], place).fetchall():
            lane = Lane(queue, priority)
            lanes[lane] = InLine(share_of(lane), first % BEHIND)
            if reached is not None:
                remembered[lane] = remembered_of(need, reached)
        self._turns = Turns(lanes, remembered)
        self._heads: dict[Lane, deque[Waiter]] = {}

    def next(self, read: Callable[[list[Candidate]], None]) -> Waiter | None:
        """None: nobody is left. `read` hears of those who are read at once."""
        while (lane := self._turns.next()) is not None:
            head = self._heads.get(lane)
            if not head:
                many = _FEW if head is None else _MANY
                rows = self._tx.db.execute(SQL["waiters"], (*self._place, *lane, many)).fetchall()
                if not rows:
                    self._turns.over(lane)
                    continue
                head = self._heads[lane] = deque(_waiter(lane, self._turns.share(lane), row) for row in rows)
                read([waiter.standing.candidate for waiter in head])
            return head.popleft()
        return None

    def took(self, waiter: Waiter) -> None:
        """It was let go."""
        self._turns.took(waiter.lane, waiter.line)

    def keep(self) -> None:
        """Write down whose turn it is now."""
        for lane, (need, reached) in self._turns.changes().items():
            known = (*self._place, *lane)
            if need is None and not reached:
                self._tx.db.execute(SQL["forget"], known)
            else:
                self._tx.db.execute(SQL["keep"], (*known, need, reached))


def _waiter(lane: Lane, share: float | None, row: tuple[Any, ...]) -> Waiter:
    """Without a task where its body is gone. Where programs of earlier versions have parked it, its priority is only in
    its body."""
    job_id, tag, seq, attempt, losses, crashes, line, priority, task, tenant, gates = row
    candidate = Candidate(task or "", lane.queue, tenant or "", read_gates(gates))
    priority = lane.priority if priority is None else priority
    standing = Standing(
        job_id, lane.queue, priority, tag, seq % BEHIND, attempt, losses, crashes, candidate, parked=True
    )
    return Waiter(standing, lane, share, line)
