"""What is noted beside what a command did to a queue, or sends there: a slip of the pen looks like a plan."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from holdfast.app import Holdfast
from holdfast.cli.session import Session
from holdfast.client.capacity import serving


@contextlib.asynccontextmanager
async def noting(session: Session, hf: Holdfast, queue: str) -> AsyncIterator[None]:
    """Settings may come before a queue's first job."""
    known = {each.name for each in await hf.queues.list()}
    yield
    if queue not in known:
        session.out.note(f"note: queue {queue} has had no job yet")


async def note_on_way(hf: Holdfast, queue: str) -> str | None:
    """What jobs may find that are sent to a queue, before anything has said that they are; None: nothing odd."""
    if await hf.queues.why_unknown(queue) is not None:
        return f"note: queue {queue} has had no job yet, and no worker serves it by its name"
    workers = await hf.workers.list()
    if workers and not serving(workers, queue):
        return f"note: no running worker serves queue {queue}"
    return None
