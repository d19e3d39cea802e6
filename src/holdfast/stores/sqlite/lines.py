"""Lines at gates: where somebody stands who begins to wait, and who is next. Rules: `core.turns`, `core.tenancy`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.core.fairness import Lane
from holdfast.core.gates import Barrier, Candidate, Place, fresh_turns
from holdfast.core.gates_text import read_gates
from holdfast.core.queue import QueueSettings
from holdfast.core.tenancy import FURTHEST_TAG, line_tag
from holdfast.core.turns import CLOCK, LANES_AT_ONCE, NOTHING, InLine, Remembered, Turns, looked_at, remembered_of
from holdfast.stores.parking import BEHIND
from holdfast.stores.queue_rows import from_row, share_in_line
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


def tag_in_line(tx: Tx, place: tuple[str, str], lane: Lane, *, tag: int, tenant: str) -> int:
    """For a job that begins to wait there. 0 where it has no tag in its lane: those go by their places."""
    if not tag:
        return 0
    line = (*place, *lane)
    known = tx.db.execute(SQL["remembered"], line).fetchone()
    return line_tag(
        reached=remembered_of(*known).reached if known else 0,
        head=_tag(tx, "head", line),
        last=_tag(tx, "last", (*line, tenant)),
        cost=tenant_cost(tx, tenant),
    )


def _tag(tx: Tx, statement: str, which: tuple[object, ...]) -> int | None:
    tag, *_ = tx.db.execute(SQL[statement], which).fetchone() or (None,)
    return tag if type(tag) is int and 0 <= tag < FURTHEST_TAG else None


def hand_down(tx: Tx, line: tuple[str, str, str, int], tenant: str, tag: object) -> None:
    """Somebody has left without using a tag: it goes to the one of its tenant that brought the largest."""
    if type(tag) is int and 0 < tag < FURTHEST_TAG:
        last, job_id = tx.db.execute(SQL["last"], (*line, tenant)).fetchone() or (0, b"")
        if type(last) is int and last > tag:
            tx.db.execute(SQL["give_tag"], (tag, job_id))


def settings_of(tx: Tx, queue: str) -> QueueSettings:
    """Its weights, as far as they are set."""
    row = tx.db.execute(SQL["weights"], (queue,)).fetchone()
    return from_row(*row) if row else QueueSettings()


def is_lined(tx: Tx, place: tuple[str, str]) -> bool:
    """Whether anybody waits there of a lane that does not come last."""
    lanes = (row[:2] for row in tx.db.execute(SQL["lanes"], place))
    return any(share_in_line(settings_of(tx, queue), priority) > 0 for queue, priority in lanes)


class Waiter(NamedTuple):
    """One of a line."""

    standing: Standing
    lane: Lane
    """In which it waits."""
    tenant: str
    share: float | None
    """That of the lane; None: nobody comes for it."""
    brought: int
    """The tag that it came with."""
    used: int
    """The one by which it is its tenant's turn."""
    whose: bytes
    """The job of its tenant that came with that."""


class Line:
    """Those who wait at a gate, in the order of their turns. Whoever was told of leaves it, or nobody is asked for any
    more: so what is left of a lane is read from its beginning."""

    def __init__(self, tx: Tx, place: Place, share_of: Callable[[Lane], float | None]) -> None:
        self._tx = tx
        self._place = place
        lanes: dict[Lane, InLine] = {}
        remembered: dict[Lane, Remembered] = {}
        rows = tx.db.execute(SQL["lanes"], place).fetchall()
        busy = _busy_lanes(tx, place)
        coming = [row for row in rows if row[:2] not in busy or not share_of(Lane(*row[:2]))]
        if len(coming) < len(rows):  # these wait, and so those of weight 0 have to
            coming = [row for row in coming if share_of(Lane(*row[:2])) != 0]
        self.passed_over = len(rows) - len(coming)
        """Lanes that have a turn already and do not use it, and those of weight 0 because of them."""
        rows = coming
        self.cut = len(rows) > LANES_AT_ONCE
        """Whether there are lanes that are not looked at."""
        for queue, priority, due, reached in _likely(rows, share_of) if self.cut else rows:
            lane = Lane(queue, priority)
            first = tx.db.execute(SQL["place"], (*place, *lane)).fetchone()
            lanes[lane] = InLine(share_of(lane), _place(*first))
            if reached is not None:
                remembered[lane] = remembered_of(due, reached)
        if len(lanes) > 1 and (clock := tx.db.execute(SQL["remembered"], (*place, *CLOCK)).fetchone()):
            remembered[CLOCK] = remembered_of(*clock)
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
                head = self._heads[lane] = deque(self._waiters(lane, rows))
                read([waiter.standing.candidate for waiter in head])
            return head.popleft()
        return None

    def _waiters(self, lane: Lane, rows: list[tuple[Any, ...]]) -> list[Waiter]:
        share = self._turns.share(lane)
        untagged = [row for row in rows if not _line(row)]
        if untagged:
            return [_waiter(lane, share, row, by=row) for row in untagged]
        tenant = rows[0][7]
        first = self._tx.db.execute(SQL["first"], (*self._place, *lane, tenant)).fetchone()
        return [_waiter(lane, share, first or rows[0], by=rows[0])]

    def leave(self, waiter: Waiter) -> None:
        """It has to stay, and nobody else has to because of that but those of its lane."""
        self._turns.leave(waiter.lane)

    def took(self, waiter: Waiter) -> None:
        """It was let go, by a tag that another of its tenant may have brought; that one has its own for it."""
        self._turns.took(waiter.lane, waiter.used)
        if waiter.whose != waiter.standing.job_id:
            self._tx.db.execute(SQL["give_tag"], (waiter.brought, waiter.whose))

    def went(self, waiter: Waiter) -> None:
        """It has left without using a tag: there is one less to come of its tenant, and its own is for others."""
        hand_down(self._tx, (*self._place, *waiter.lane), waiter.tenant, waiter.brought)

    def keep(self) -> None:
        """Write down whose turn it is now."""
        for lane, known in self._turns.changes().items():
            which = (*self._place, *lane)
            if known == NOTHING:
                self._tx.db.execute(SQL["forget"], which)
            else:
                self._tx.db.execute(SQL["keep"], (*which, *known))


def _busy_lanes(tx: Tx, place: Place) -> set[tuple[str, int]]:
    """Nobody has come for whom was let go of them: all who would run his job are busy."""
    if place.barrier is not Barrier.RATE:
        return set()
    return {*tx.db.execute(SQL["overdue"], (place.key, *fresh_turns(tx.now)))}


def _likely(rows: list[tuple[Any, ...]], share_of: Callable[[Lane], float | None]) -> list[tuple[Any, ...]]:
    """Of many lanes, those that are looked at."""
    return sorted(rows, key=lambda row: looked_at(share_of(Lane(row[0], row[1])), row[2]))[:LANES_AT_ONCE]


def _place(seq: object, job_id: bytes) -> int:
    """Where that makes no sense, somewhere behind the others."""
    return seq % BEHIND if type(seq) is int else int.from_bytes(job_id[:7], "big")


def _line(row: tuple[Any, ...]) -> int:
    tag = row[6]
    return tag if type(tag) is int and 0 < tag < FURTHEST_TAG else 0


def _waiter(lane: Lane, share: float | None, row: tuple[Any, ...], *, by: tuple[Any, ...]) -> Waiter:
    """Without a task where its body is gone. Where programs of earlier versions have parked it, its priority is only in
    its body."""
    job_id, tag, seq, attempt, losses, crashes, _, whose, priority, task, tenant, gates = row
    candidate = Candidate(task or "", lane.queue, tenant or "", read_gates(gates))
    priority = lane.priority if priority is None else priority
    standing = Standing(
        job_id, lane.queue, priority, tag, _place(seq, job_id), attempt, losses, crashes, candidate, parked=True
    )
    return Waiter(standing, lane, whose, share, _line(row), _line(by), by[0])
