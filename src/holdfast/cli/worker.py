"""`holdfast worker`: one process that runs jobs until it is told to stop."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from holdfast.cli.exits import Refused
from holdfast.cli.session import Session, command


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root, without=("url", "as_json"))(worker)


def worker(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="MODULE:APP", help="The app, as in shop.jobs:hf.")] = None,
    queues: Annotated[
        list[str] | None,
        typer.Option("--queue", "-q", metavar="QUEUE", help="Serve only this queue; may be given several times."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", "-c", metavar="N", min=1, max=10_000, help="Jobs at once; a setting by default."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every job, not only what went wrong.")] = False,
) -> None:
    """Run jobs of an app in this process, until SIGTERM or Ctrl-C.

    The first signal drains: nothing more is claimed, what runs may end within the setting grace_s, and the rest is
    handed back uncharged. A second signal hands back at once. Either way the exit code is 0.

    The current directory is searched for the module first. Logs go to standard error, unless the app has set up
    logging of its own.

    \b
    holdfast worker shop.jobs:hf
    holdfast worker shop.jobs:hf -q mail -q default --concurrency 20
    HOLDFAST_APP=shop.jobs:hf holdfast worker
    """
    if name is not None and session.app is not None:
        raise Refused("two apps were named", hint="give `-A` or MODULE:APP, not both")
    session.app = session.app or name
    log = logging.getLogger("holdfast")
    log.setLevel(logging.DEBUG if verbose else logging.INFO)  # before the app is made: it looks at it then
    hf = session.load()
    if session.app is None:
        raise Refused("which app?", hint="`holdfast worker MODULE:APP`, or the setting app (HOLDFAST_APP)")
    if not log.hasHandlers():
        logging.basicConfig(format="%(asctime)s %(levelname)-7s %(message)s")
    if not hf.tasks.names():
        log.warning("app %s has no tasks: are the modules that define them imported where it is made?", session.app)
    hf.run_worker(queues=queues or None, concurrency=concurrency)
