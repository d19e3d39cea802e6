"""The way to the tail of a lane, which every job takes that comes anew: into `ready` with a fresh number, and a tag
where there are tenants. Jobs that come back to their old places do not come by here."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.stores.sqlite.tenants import give_tags
from holdfast.stores.sqlite.transaction import TailRow, Tx


def queue_up(tx: Tx, rows: Sequence[TailRow]) -> None:
    """`ready`, in this order."""
    if not rows:
        return
    seq = tx.take_numbers("seq", len(rows))
    if tx.tenanted and not tx.tenanted.isdisjoint(row[0] for row in rows):
        tags = give_tags(tx, rows)
        tx.enter_ready(
            [(*row[:2], tag, seq + n, *row[2:]) for n, (row, tag) in enumerate(zip(rows, tags, strict=True))]
        )
    else:
        tx.enter_ready([(*row[:2], 0, seq + n, *row[2:]) for n, row in enumerate(rows)])
