"""`holdfast dead`: the dead letters. Whatever touches many of them counts first and asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from holdfast.app import Holdfast
from holdfast.cli.acts import record
from holdfast.cli.asking import confirmed
from holdfast.cli.call_arguments import explaining_arguments, parse_call
from holdfast.cli.columns import DEAD
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.fields import job_fields
from holdfast.cli.job_report import report_job
from holdfast.cli.jobs import JobIdArgument
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
from holdfast.client.acts import filter_words
from holdfast.core.errors import NotUnique
from holdfast.core.ids import parse_job_id
from holdfast.core.job import JobId
from holdfast.core.shown import counted
from holdfast.stores.dead import Replayed

group = noun("Dead letters: list, look, mend, run again, drop.")

_PAGE = 200
_MOST_NAMED = 20

IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="ID", help="The ids; or say which by filter.")]
AllOption = Annotated[bool, typer.Option("--all", help="All dead jobs of the store.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be.")]


@command(group, "list")
async def list_dead(
    session: Session,
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
    """List dead jobs, newest first, with their errors.

    In a pipe, a line is: id, reason, task, queue, attempt, age, error.

    \b
    holdfast dead list --error-type ConnectionError
    holdfast dead list --reason poison --json
    """
    filters = _filters(
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
    )
    async with session.opened() as hf:
        found = await hf.dead.list(**filters, limit=limit, before=before)
    session.out.items(found, DEAD, job_fields, none="no dead job matches")
    note_what_is_left(session.out, found, limit)


@command(group)
async def show(session: Session, job_id: JobIdArgument) -> None:
    """Show a dead job with every attempt and its error.

    \b
    holdfast dead show 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11
    """
    async with session.opened() as hf:
        job = await hf.dead.get(job_id)
        why = await hf.jobs.explain(job.id)
    report_job(session.out, job, str(why))


@command(group)
async def edit(
    session: Session,
    job_id: JobIdArgument,
    words: Annotated[list[str] | None, typer.Argument(metavar="ARG", help="All arguments, anew.")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Run it again at once.")] = False,
) -> None:
    """Replace the arguments of a dead job.

    They are given anew, all of them, written as for `holdfast enqueue`. With an app, they are
    checked against the task's signature.

    \b
    holdfast dead edit 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11 Bob cents=700 --replay
    """
    args, kwargs = parse_call(words or [])
    async with session.opened() as hf:
        job = await hf.dead.get(job_id)
        with explaining_arguments(hf.tasks.get(job.task)):
            hf.dead.check_edit(job, args, kwargs)  # what is refused is not on record
            await record(hf, "edit", str(job.id), replayed=replay)
            await hf.dead.edit(job.id, *args, **kwargs)
        if replay:
            try:
                await hf.dead.replay(job_id)
            except NotUnique:
                session.out.note(f"note: {job_id} was edited")
                raise
    did = "edited, runs again" if replay else "edited"
    session.out.done(f"{job_id}: {did}", {"id": job_id, "edited": 1, "replayed": int(replay)}, plain=(job_id, did))


@command(group)
async def replay(
    session: Session,
    job_ids: IdsArgument = None,
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
    everything: AllOption = False,
    yes: YesOption = False,
    dry_run: DryOption = False,
) -> Exit:
    """Run dead jobs again.

    Those of these ids, or all that match. Each keeps its id and its history, and has a fresh budget of attempts.
    One that has to be unique stays dead while another one is there, and is named.

    By filter, it says how many match and asks; --yes does not ask, --dry-run only counts.

    \b
    holdfast dead replay 01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11
    holdfast dead replay --task shop.charge --error-type ConnectionError
    holdfast dead replay --all --yes
    """
    filters = _filters(
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
    )
    async with session.opened() as hf:
        many = _Many(session, hf, "replay", "replayed", hf.dead.replay)
        return await many.run(job_ids or [], filters, everything=everything, yes=yes or bool(job_ids), dry=dry_run)


@command(group)
async def purge(
    session: Session,
    job_ids: IdsArgument = None,
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
    everything: AllOption = False,
    yes: YesOption = False,
    dry_run: DryOption = False,
) -> Exit:
    """Drop dead jobs for good.

    Those of these ids, or all that match; there is no way back. It says how many and asks;
    --yes does not ask, --dry-run only counts.

    \b
    holdfast dead purge --reason permanent --dry-run
    holdfast dead purge --queue imports --yes
    """
    filters = _filters(
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
    )
    async with session.opened() as hf:
        many = _Many(session, hf, "purge", "purged", hf.dead.purge)
        return await many.run(job_ids or [], filters, everything=everything, yes=yes, dry=dry_run)


class _Many:
    """One act on many dead jobs: count, ask, do it page by page under a bar."""

    def __init__(
        self, session: Session, hf: Holdfast, verb: str, done: str, act: Callable[[list[JobId]], Awaitable[int]]
    ) -> None:
        self._session = session
        self._hf = hf
        self._verb = verb
        self._done = done
        self._act = act

    async def run(self, words: list[str], filters: dict[str, Any], *, everything: bool, yes: bool, dry: bool) -> Exit:
        if bool(words) + bool(filters) + everything != 1:
            raise Refused(
                f"say which dead jobs to {self._verb}: ids, or filters, or --all; one of these",
                hint=f"`holdfast dead {self._verb} --help` shows how",
            )
        ids = [parse_job_id(word) for word in words]
        count = len(ids) if ids else await self._hf.dead.count(**filters)
        if dry:
            self._session.out.done(f"{counted(count, 'dead job')} to {self._verb}", {"matching": count}, plain=(count,))
            return Exit.OK
        what = f"{counted(count, 'dead job')} to {self._verb}"
        if count and not yes and not confirmed(what, hint="add `--yes`, or `--dry-run` to count only"):
            return Exit.FAILED
        if count:
            chosen = [str(each) for each in ids]
            which = {"ids": chosen, "filter": filter_words(filters), "everything": everything}
            await record(self._hf, self._verb, "dead letters", **which, count=count)
        parts = await self._work(ids, filters, count) if count else []
        total = sum(parts)
        replayed = Replayed.of([part for part in parts if isinstance(part, Replayed)])
        said: dict[str, Any] = {self._done: total}
        if replayed.kept_back:
            others = {str(job_id): str(other) for job_id, other in replayed.in_the_way.items()}
            said |= {"kept_back": replayed.kept_back, "in_the_way": others}
        self._session.out.done(f"{counted(total, 'dead job')} {self._done}", said, plain=(total,))
        self._note_who_is_in_the_way(replayed)
        if ids and total + replayed.kept_back < len(ids):
            left = counted(len(ids) - total - replayed.kept_back, "job")
            why = "not dead, or not there; `holdfast jobs explain ID` says where it is"
            self._session.out.note(f"note: {left} not {self._done}: {why}")
        # Asked for by id, each of them was to be there; by filter, none is an answer like any other.
        if ids and total + replayed.kept_back < len(ids):
            return Exit.MISSING
        return Exit.FAILED if ids and replayed.kept_back else Exit.OK

    def _note_who_is_in_the_way(self, replayed: Replayed) -> None:
        for job_id, other in islice(replayed.in_the_way.items(), _MOST_NAMED):
            self._session.out.note(f"note: {job_id} stays dead: it has to be unique, and job {other} is there already")
        if replayed.kept_back > _MOST_NAMED:
            more = counted(replayed.kept_back - _MOST_NAMED, "job")
            self._session.out.note(f"note: and {more} more that stay dead, each because of another one")

    async def _work(self, ids: list[JobId], filters: dict[str, Any], count: int) -> list[int]:
        parts: list[int] = []
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
            bar = bars.add_task(self._verb, total=count)
            for start in range(0, len(ids), _PAGE):
                parts.append(await self._act(ids[start : start + _PAGE]))
                bars.update(bar, completed=start + _PAGE)
            cursor: JobId | None = None
            # By cursor, so that a job that dies again meanwhile is not taken twice.
            while not ids:
                page = await self._hf.dead.list(**filters, limit=_PAGE, before=cursor)
                if page:
                    parts.append(await self._act([job.id for job in page]))
                bars.advance(bar, len(page))
                cursor = page.next
                if cursor is None:
                    break
        return parts


def _filters(**filters: Any) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}
