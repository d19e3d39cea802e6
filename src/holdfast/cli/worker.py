"""`holdfast worker`: one process that runs jobs until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.app_loading import check_name
from holdfast.cli.dev_store import ON_SERVER, prepare_store
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.reloading import work_reloading
from holdfast.cli.session import Session, command
from holdfast.cli.sources import Sources

AppArgument = Annotated[str | None, typer.Argument(metavar="MODULE:APP", help="The app, as in shop.jobs:hf.")]
QueuesOption = Annotated[
    list[str] | None,
    typer.Option("--queue", "-q", metavar="QUEUE", help="Serve only this queue; may be given several times."),
]
ConcurrencyOption = Annotated[
    int | None,
    typer.Option("--concurrency", "-c", metavar="N", min=1, max=10_000, help="Jobs at once; a setting by default."),
]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Log every job, not only what went wrong.")]


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root, without=("url", "as_json"))(worker)


def worker(
    session: Session,
    name: AppArgument = None,
    queues: QueuesOption = None,
    concurrency: ConcurrencyOption = None,
    verbose: VerboseOption = False,
    reload: Annotated[
        bool, typer.Option("--reload", help="For development: drain and restart when a source file changes.")
    ] = False,
    reload_dirs: Annotated[
        list[Path] | None,
        typer.Option(
            "--reload-dir", metavar="DIR", help="With --reload: watch this directory; may be given several times."
        ),
    ] = None,
    of_dev: Annotated[str | None, typer.Option("--of-dev", hidden=True)] = None,
) -> int:
    """Run jobs of an app in this process, until SIGTERM or Ctrl-C.

    The first signal drains: nothing more is claimed, what runs may end within the setting grace_s, and the rest is
    handed back uncharged. A second signal hands back at once. Either way the exit code is 0.

    The current directory is searched for the module first. Logs go to standard error, unless the app has set up
    logging of its own.

    With --reload, the worker runs in a process of its own, which is drained and started again when a .py file,
    holdfast.toml or pyproject.toml changes in the current directory or in the app's package.

    \b
    holdfast worker shop.jobs:hf
    holdfast worker shop.jobs:hf --reload --verbose
    holdfast worker shop.jobs:hf -q mail -q default --concurrency 20
    HOLDFAST_APP=shop.jobs:hf holdfast worker
    """
    named = app_to_run(session, name, command="worker")
    if reload:
        sources = Sources.of(named, named=reload_dirs or ())
        words = words_of_worker(session, queues=queues, concurrency=concurrency, verbose=verbose)
        return asyncio.run(work_reloading(words, sources, say=session.out.note))
    if reload_dirs:
        raise Refused("--reload-dir is for --reload", hint="add `--reload`, or leave it out")
    log = logging.getLogger("holdfast")
    log.setLevel(logging.DEBUG if verbose else logging.INFO)  # before the app is made: it looks at it then
    hf = session.load()
    if not log.hasHandlers():
        logging.basicConfig(format="%(asctime)s %(levelname)-7s %(message)s")
    if of_dev is not None:
        asyncio.run(prepare_store(hf, name=named, on_server=of_dev == ON_SERVER))
    if not hf.tasks.names():
        log.warning("app %s has no tasks: are the modules that define them imported where it is made?", session.app)
    hf.run_worker(queues=queues or None, concurrency=concurrency)
    return Exit.OK


def app_to_run(session: Session, name: str | None, *, command: str) -> str:
    """The one app that was named, in whatever way; nothing is imported."""
    if name is not None and session.app is not None:
        raise Refused("two apps were named", hint="give `-A` or MODULE:APP, not both")
    session.app = session.app or name
    named = session.named_app()
    if named is None:
        raise Refused("which app?", hint=f"`holdfast {command} MODULE:APP`, or the setting app (HOLDFAST_APP)")
    check_name(named)
    return named


def words_of_worker(session: Session, *, queues: list[str] | None, concurrency: int | None, verbose: bool) -> list[str]:
    """The command that runs the worker itself."""
    words = ["worker", session.app or ""]
    words += [word for queue in queues or () for word in ("--queue", queue)]
    words += [] if concurrency is None else ["--concurrency", str(concurrency)]
    words += ["--verbose"] if verbose else []
    return words + (["--debug"] if session.debug else [])
