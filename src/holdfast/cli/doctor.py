"""`holdfast doctor`: looks at everything that could be wrong, and says what to do about what is."""

from __future__ import annotations

import typer

from holdfast.cli.examination import examine
from holdfast.cli.exits import Exit
from holdfast.cli.finding import Finding
from holdfast.cli.output import Column
from holdfast.cli.session import Session, command

_COLUMNS = (
    Column[Finding]("", lambda finding: finding.verdict),
    Column[Finding]("what", lambda finding: finding.subject),
    Column[Finding]("found", lambda finding: finding.found),
    Column[Finding]("what to do", lambda finding: finding.remedy or None, rank=1),
)


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root)(doctor)


async def doctor(session: Session) -> Exit:
    """Say what is wrong here, and what to do.

    Checks the installation, the settings, the app, the store and the Redis beside it, and changes nothing.

    Each line is ok, warn or fail, with what to do. The settings are shown with where each came from, passwords masked.
    The exit code is 1 if anything failed.

    \b
    holdfast doctor
    holdfast doctor -A shop.jobs:hf --json | jq 'select(.verdict != "ok")'
    """
    findings = await examine(session)
    out = session.out
    out.items(findings, _COLUMNS, lambda finding: finding._asdict(), none="")
    if out.terminal:
        bad = [finding for finding in findings if finding.verdict != "ok"]
        for finding in bad:
            out.line(f"{finding.verdict}: {finding.subject}: {finding.found}; {finding.remedy}")
        if not bad:
            out.line("all is well")
    return Exit.FAILED if any(finding.verdict == "fail" for finding in findings) else Exit.OK
