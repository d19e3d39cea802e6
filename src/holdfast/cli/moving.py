"""`holdfast jobs move`: waiting jobs to another queue or priority, by id or by filter."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.app import Holdfast
from holdfast.cli.acts import record
from holdfast.cli.asking import confirmed
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.session import Session, command
from holdfast.cli.which_jobs import QueueOption, SinceOption, TagOption, TaskOption, TenantOption, UntilOption, moment
from holdfast.client.acts import MOST_COUNTED, filter_words
from holdfast.client.filters import job_filter
from holdfast.client.moving import WAITING, check_place
from holdfast.core.ids import parse_job_id
from holdfast.core.shown import counted
from holdfast.core.state import State


def add_to(group: typer.Typer) -> None:
    """Add the command to the group of jobs."""
    command(group)(move)


async def move(
    session: Session,
    job_ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="The ids of the jobs.")] = None,
    to_queue: Annotated[str | None, typer.Option("--to-queue", metavar="QUEUE", help="Where to.")] = None,
    to_priority: Annotated[
        str | None, typer.Option("--to-priority", metavar="PRIORITY", help="0 to 9, or a name as `high`.")
    ] = None,
    state: Annotated[State | None, typer.Option("--state", "-s", help="Only jobs in this state.")] = None,
    queue: QueueOption = None,
    task: TaskOption = None,
    tenant: TenantOption = None,
    tag: TagOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> Exit:
    """Move waiting jobs to another queue or priority.

    Ids, or filters. Those that are ready go to the tail there, the oldest first; those that wait for a time, for other
    jobs or at a limit keep waiting. What runs or has ended stays as it is. With filters it asks before.

    \b
    holdfast jobs move 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11 --to-priority high
    holdfast jobs move --queue mail --tag newsletter --to-queue bulk --yes
    """
    filters: dict[str, Any] = {
        "state": state,
        "queue": queue,
        "task": task,
        "tenant": tenant,
        "tag": tag,
        "created_after": moment("--since", since),
        "created_before": moment("--until", until),
    }
    given = {name: value for name, value in filters.items() if value is not None}
    if bool(job_ids) == bool(given):
        raise Refused("say which jobs: either ids or filters", hint="`--queue mail`, or one id or several")
    if to_queue is None and to_priority is None:
        raise Refused("it was not said where to", hint="`--to-queue bulk`, `--to-priority high`, or both")
    check_place(queue=to_queue, priority=to_priority)  # what is refused is not on record
    job_filter(**given)
    place = " and ".join(
        [*([f"queue {to_queue}"] if to_queue else []), *([f"priority {to_priority}"] if to_priority else [])]
    )
    async with session.opened() as hf:
        count = len(job_ids) if job_ids else await _matching(hf, given)
        many = f"{counted(count, 'waiting job')}{' or more' if count >= MOST_COUNTED else ''}"
        if given and count and not yes and not confirmed(f"{many} to move to {place}", hint="add `--yes`"):
            return Exit.FAILED
        chosen = [str(parse_job_id(each)) for each in job_ids or ()]
        words = filter_words(given)
        await record(hf, "move", "jobs", ids=chosen, filter=words, queue=to_queue, priority=to_priority, count=count)
        count = await hf.jobs.move(job_ids or given, queue=to_queue, priority=to_priority)
    session.out.done(
        f"{counted(count, 'job')} moved to {place}",
        {"moved": count, "queue": to_queue, "priority": to_priority},
        plain=(count,),
    )
    return Exit.OK


async def _matching(hf: Holdfast, given: dict[str, Any]) -> int:
    """Those of them that wait, up to a limit."""
    states = (given["state"],) if "state" in given else WAITING
    return sum([await hf.jobs.count(most=MOST_COUNTED, **(given | {"state": state})) for state in states])
