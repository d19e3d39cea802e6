"""`holdfast workers`: who is at work."""

from __future__ import annotations

import typer

from holdfast.cli.fields import worker_fields
from holdfast.cli.output import Column, age
from holdfast.cli.session import Session, command
from holdfast.core.worker import WorkerInfo

_COLUMNS = (
    Column[WorkerInfo]("id", lambda worker: worker.id),
    Column[WorkerInfo]("running", lambda worker: f"{worker.running}/{worker.concurrency}"),
    Column[WorkerInfo]("host", lambda worker: worker.host, rank=1),
    Column[WorkerInfo]("pid", lambda worker: worker.pid, rank=2),
    Column[WorkerInfo]("queues", lambda worker: ",".join(worker.queues) or "all", rank=3),
    Column[WorkerInfo]("age", lambda worker: age(worker.started_at), rank=4),
    Column[WorkerInfo]("lease until", lambda worker: worker.lease_until, rank=6),
    Column[WorkerInfo]("lag", lambda worker: f"{worker.lag_s:.1f} s" if worker.lag_s else "-", rank=5),
)


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root)(workers)


async def workers(session: Session) -> None:
    """List the workers that are registered.

    Each is shown with how much it runs of what it may, until when its lease holds, and how long its event loop lately
    took to answer: a task that blocks it holds up all the others.

    In a pipe, a line is: id, running/concurrency, host, pid, queues, age, lease until, lag.

    \b
    holdfast workers
    holdfast workers --json | jq -s 'map(.running) | add'
    """
    async with session.opened() as hf:
        found = await hf.workers.list()
    session.out.items(found, _COLUMNS, worker_fields, none="no worker is registered: `holdfast worker` starts one")
