"""The options that say which jobs, the same for every command that takes them, and how moments are written."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from holdfast.cli.exits import Refused
from holdfast.cli.output import Output
from holdfast.stores.base import JobPage

QueueOption = Annotated[str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Only jobs of this queue.")]
TaskOption = Annotated[str | None, typer.Option("--task", "-t", metavar="TASK", help="Only jobs of this task.")]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", metavar="TENANT", help="Only jobs on behalf of this tenant.")
]
TagOption = Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only jobs with this tag.")]
ErrorOption = Annotated[
    str | None, typer.Option("--error-type", "-e", metavar="TYPE", help="Only dead jobs with this type of error.")
]
FingerprintOption = Annotated[
    str | None,
    typer.Option("--fingerprint", metavar="DIGITS", help="Only dead jobs that failed alike; `dead show` tells it."),
]
TextOption = Annotated[
    str | None, typer.Option("--text", metavar="WORDS", help="Only dead jobs with all these words in their error.")
]
ReasonOption = Annotated[
    str | None,
    typer.Option("--reason", "-r", metavar="TEXT", help="exhausted, not_retried, permanent, bad_payload, poison, …"),
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="WHEN", help="Enqueued then or later: 2h, or 2026-11-16T12:00Z.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Enqueued before then: 30m, or 2026-11-16T12:00Z.")
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=1000, help="How many at most.")]
BeforeOption = Annotated[
    str | None, typer.Option("--before", metavar="ID", help="The next page: the last id of the page before.")
]

_AGO = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def moment(option: str, word: str | None) -> datetime | None:
    """A moment as people write it: so long ago, or a date with or without a time (UTC, where no zone is given)."""
    if word is None:
        return None
    if ago := _AGO.fullmatch(word):
        with contextlib.suppress(OverflowError):  # before the year 1: then it is no moment
            return datetime.now(UTC) - timedelta(seconds=float(ago[1]) * _SECONDS[ago[2]])
    try:
        at = datetime.fromisoformat(word)
    except ValueError:
        raise Refused(
            f"{option} {word!r} is not a moment", hint="write it as in `2h`, `3d`, `2026-11-16` or `2026-11-16T12:00Z`"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def note_what_is_left(out: Output, page: JobPage, limit: int) -> None:
    """A short page looks like the last one; where it is not, say so."""
    if page.next is not None and len(page) < limit:
        out.note(f"many jobs were looked at and few match; go on with `--before {page.next}`")
