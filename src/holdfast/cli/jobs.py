"""`holdfast jobs`: look at jobs, cancel them, move them, run them again, wait for them."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli import moving
from holdfast.cli.acts import record
from holdfast.cli.columns import JOBS
from holdfast.cli.exits import Exit
from holdfast.cli.fields import explanation_fields, job_fields
from holdfast.cli.following import ending, follow
from holdfast.cli.job_report import report_job
from holdfast.cli.session import Session, command, noun
from holdfast.cli.which_jobs import (
    BeforeOption,
    ErrorOption,
    FingerprintOption,
    LimitOption,
    QueueOption,
    ReasonOption,
    SinceOption,
    TagOption,
    TaskOption,
    TenantOption,
    TextOption,
    UntilOption,
    moment,
    note_what_is_left,
)
from holdfast.client.operator import whoami
from holdfast.core.state import State
from holdfast.stores.base import CancelAnswer

group = noun("Look at jobs, cancel them, move them, run them again, wait for them.")

JobIdArgument = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
JobIdsArgument = Annotated[list[str], typer.Argument(metavar="ID", help="The ids of the jobs.")]


@command(group, "list")
async def list_jobs(
    session: Session,
    state: Annotated[State | None, typer.Option("--state", "-s", help="Only jobs in this state.")] = None,
    queue: QueueOption = None,
    task: TaskOption = None,
    tenant: TenantOption = None,
    tag: TagOption = None,
    error_type: ErrorOption = None,
    fingerprint: FingerprintOption = None,
    text: TextOption = None,
    reason: ReasonOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 50,
    before: BeforeOption = None,
) -> None:
    """List jobs, newest first.

    In a pipe, a line is: id, state, task, queue, priority, attempt, progress, age.

    \b
    holdfast jobs list --state running
    holdfast jobs list --task shop.ship --since 2h
    holdfast jobs list -q mail -n 1000 --json | jq -r .error.message
    holdfast jobs list -s ready | cut -f1 | xargs -n1 holdfast jobs cancel
    """
    async with session.opened() as hf:
        found = await hf.jobs.list(
            state=state,
            queue=queue,
            task=task,
            tenant=tenant,
            tag=tag,
            error_type=error_type,
            fingerprint=fingerprint,
            text=text,
            reason=reason,
            created_after=moment("--since", since),
            created_before=moment("--until", until),
            limit=limit,
            before=before,
        )
    session.out.items(found, JOBS, job_fields, none="no job matches")
    note_what_is_left(session.out, found, limit)


@command(group)
async def show(session: Session, job_id: JobIdArgument) -> None:
    """Show all that is known of a job.

    Its arguments, its result, every run and how it ended, the last traceback unless it succeeded.

    \b
    holdfast jobs show 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11
    holdfast jobs show 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11 --json | jq .attempts
    """
    async with session.opened() as hf:
        job = await hf.jobs.get(job_id)
        why = await hf.jobs.explain(job.id)
    report_job(session.out, job, str(why))


@command(group)
async def explain(session: Session, job_id: JobIdArgument) -> None:
    """Say why a job is where it is.

    Where it runs, how it ended, or all that keeps it: pauses, limits, rates and breakers that are used up, missing
    or busy workers, its time; how many come first, which share its lane has, and when it may start.

    \b
    holdfast jobs explain 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11
    """
    async with session.opened() as hf:
        job = await hf.jobs.get(job_id)
        why = await hf.jobs.explain(job.id)
    session.out.done(str(why), explanation_fields(why))


@command(group)
async def cancel(
    session: Session,
    job_ids: JobIdsArgument,
    reason: Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; kept with the job.")] = "",
) -> Exit:
    """Cancel jobs.

    One that waits ends at once, one that runs is asked to stop. The reason, and who asked, are kept with the job.

    Prints what happened to each: cancelled, requested (it runs, and its worker will tell it), or ended (it had ended
    before, which is exit code 4).

    \b
    holdfast jobs cancel 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11 --reason "ordered twice"
    """
    code = Exit.OK
    async with session.opened() as hf:
        for job_id in job_ids:
            job = await hf.jobs.get(job_id)
            await record(hf, "cancel", str(job.id), reason=reason)
            answer = await hf.jobs.cancel(job_id, reason=reason, by=whoami().rpartition(":")[0])
            session.out.done(
                f"{job_id}: {_CANCELLED[answer]}", {"id": job_id, "answer": answer}, plain=(job_id, answer.value)
            )
            code = Exit.MISSING if answer is CancelAnswer.ENDED else code
    return code


_CANCELLED = {
    CancelAnswer.CANCELLED: "cancelled",
    CancelAnswer.REQUESTED: "it runs, and was asked to stop",
    CancelAnswer.ENDED: "it had ended before",
}


moving.add_to(group)


@command(group)
async def retry(session: Session, job_ids: JobIdsArgument) -> None:
    """Run dead jobs again.

    Each keeps its id and its history, and has a fresh budget of attempts. `holdfast dead replay` does it for many at
    once, by filter.

    \b
    holdfast jobs retry 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11
    """
    async with session.opened() as hf:
        for job_id in job_ids:
            job = await hf.jobs.get(job_id)
            if job.state is State.DEAD:
                await record(hf, "retry", str(job.id))
            await hf.jobs.retry(job.id)
            session.out.done(f"{job_id}: runs again", {"id": job_id, "replayed": 1}, plain=(job_id, "replayed"))


@command(group)
async def wait(
    session: Session,
    job_ids: JobIdsArgument,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Seconds to wait at most.")
    ] = None,
) -> Exit:
    """Wait for jobs to end, and show how far they are.

    Exit code 0 says that all succeeded, 1 that one ended dead or cancelled, 5 that the time was up. In a pipe, every
    change is a line: id, state, progress, stage.

    \b
    holdfast jobs wait 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11 --timeout 60 && echo done
    """
    async with session.opened(live=True) as hf:
        jobs = await follow(hf, job_ids, session.out, app=session.app, timeout_s=timeout, lines=True)
    for job in jobs:
        if session.out.as_json:
            session.out.document(job_fields(job), indent=None)
        elif session.out.terminal:
            session.out.line(f"{job.id}: {job.state}" + (f" ({job.reason})" if job.reason else ""))
    return ending(jobs)
