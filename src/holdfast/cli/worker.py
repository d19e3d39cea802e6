"""`holdfast worker`: runs jobs until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.app.log_output import set_up_logs
from holdfast.cli.app_loading import check_name
from holdfast.cli.dev_store import ON_SERVER, prepare_store
from holdfast.cli.exits import Refused
from holdfast.cli.reloading import work_reloading
from holdfast.cli.session import Session, command
from holdfast.cli.sources import Sources
from holdfast.cli.supervising import supervise, take_post, work_at
from holdfast.config import Config

AppArgument = Annotated[str | None, typer.Argument(metavar="MODULE:APP", help="The app, as in shop.jobs:hf.")]
QueuesOption = Annotated[
    list[str] | None,
    typer.Option("--queue", "-q", metavar="QUEUE[=WEIGHT]", help="Serve only this queue; may be given several times."),
]
ConcurrencyOption = Annotated[
    int | None,
    typer.Option(
        "--concurrency", "-c", metavar="N", min=1, max=10_000, help="Jobs at once per process; a setting by default."
    ),
]
ProcessesOption = Annotated[
    int | None,
    typer.Option("--processes", "-p", metavar="N", min=1, max=1_000, help="Worker processes; a setting by default."),
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
    processes: ProcessesOption = None,
    at_least: Annotated[
        int | None, typer.Option("--min", metavar="N", min=1, max=1_000, help="With --max: the fewest processes.")
    ] = None,
    at_most: Annotated[
        int | None,
        typer.Option("--max", metavar="N", min=1, max=1_000, help="More processes, up to so many, while jobs wait."),
    ] = None,
    verbose: VerboseOption = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics-port", metavar="[HOST:]PORT", help="Serve /metrics and /health there; else by a setting."
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option("--log-format", metavar="FORMAT", help="plain, readable or json; a setting by default."),
    ] = None,
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
    post: Annotated[str | None, typer.Option("--post", hidden=True)] = None,
) -> int:
    """Run jobs of an app, in worker processes under a supervisor, until SIGTERM or Ctrl-C.

    The first signal drains: nothing more is claimed, what runs may end within the setting grace_s, and the rest is
    handed back uncharged. A second signal hands back at once. The exit code is 0 when everything that ran has ended,
    and 6 when something was handed back.

    A worker process that dies is replaced, and its jobs run again, at once. A run that does not end at its hard limit
    is killed together with its process. SIGHUP loads the code anew, one process after the other; SIGUSR1 writes to the
    log what every process is doing.

    The current directory is searched for the module first. Logs go to standard error, unless the app has set up
    logging of its own. With --metrics-port, Prometheus finds there what all processes have counted together.

    With --reload, everything is drained and started again when a .py file, holdfast.toml or pyproject.toml changes in
    the current directory or in the app's package.

    \b
    holdfast worker shop.jobs:hf
    holdfast worker shop.jobs:hf --reload --verbose
    holdfast worker shop.jobs:hf -q mail=3 -q default --processes 2 --concurrency 20
    holdfast worker shop.jobs:hf --min 1 --max 4
    holdfast worker shop.jobs:hf --metrics-port 9464 --log-format json
    HOLDFAST_APP=shop.jobs:hf holdfast worker
    """
    place = None if post is None else take_post(post)
    named = app_to_run(session, name, command="worker")
    if processes is not None and (at_least is not None or at_most is not None):
        raise Refused("--processes and --min or --max were both given", hint="give one number, or two bounds")
    settings = {
        "queues": queues or None,
        "concurrency": concurrency,
        "processes": processes if at_least is None else at_least,
        "most_processes": at_most,
        "metrics_listen": metrics,
        "log_format": log_format,
    }
    words = words_of_worker(session, settings=settings, verbose=verbose)
    if reload:
        sources = Sources.of(named, named=reload_dirs or ())
        return asyncio.run(work_reloading(words, sources, say=session.out.note))
    if reload_dirs:
        raise Refused("--reload-dir is for --reload", hint="add `--reload`, or leave it out")
    _set_up_log(verbose=verbose)  # before the app is made: it looks at it then
    if place is None:
        set_up_logs(Config.load(log_format=log_format, metrics_listen=metrics).log_format)
        return asyncio.run(supervise(words if of_dev is None else [*words, "--of-dev", of_dev]))
    hf = session.load()
    set_up_logs(log_format or hf.config.log_format)
    if not hf.tasks.names():
        logging.getLogger("holdfast").warning(
            "app %s has no tasks: are the modules that define them imported where it is made?", session.app
        )

    def prepare() -> None:
        if of_dev is not None:
            asyncio.run(prepare_store(hf, name=named, on_server=of_dev == ON_SERVER))

    return work_at(place, hf, settings, prepare=prepare)


def _set_up_log(*, verbose: bool) -> None:
    logging.getLogger("holdfast").setLevel(logging.DEBUG if verbose else logging.INFO)


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


def words_of_worker(session: Session, *, settings: Mapping[str, Any], verbose: bool) -> list[str]:
    """The command that runs the worker itself, with these settings where they were given."""
    words = ["worker", session.app or ""]
    words += [word for queue in settings.get("queues") or () for word in ("--queue", queue)]
    for option, name in _OPTIONS:
        words += [] if settings.get(name) is None else [option, str(settings[name])]
    words += ["--verbose"] if verbose else []
    return words + (["--debug"] if session.debug else [])


_OPTIONS = (
    ("--concurrency", "concurrency"),
    ("--min", "processes"),
    ("--max", "most_processes"),
    ("--metrics-port", "metrics_listen"),
    ("--log-format", "log_format"),
)
