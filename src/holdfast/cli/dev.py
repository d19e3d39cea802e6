"""`holdfast dev`: one command to develop with: a worker that reloads and, where wanted, a PostgreSQL server for it."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.dev_store import ON_SERVER, dev_server
from holdfast.cli.exits import Refused
from holdfast.cli.reloading import work_reloading
from holdfast.cli.session import Session, command
from holdfast.cli.sources import Sources
from holdfast.cli.worker import (
    AppArgument,
    ConcurrencyOption,
    QueuesOption,
    VerboseOption,
    app_to_run,
    words_of_worker,
)


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root, without=("url", "as_json"))(dev)


def dev(
    session: Session,
    name: AppArgument = None,
    postgres: Annotated[
        bool, typer.Option("--postgres", help="Start a PostgreSQL server, and run the app on it.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="DIR", help="With --postgres: where its data is; by default .holdfast/postgres."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=1, max=65_535, help="With --postgres: its port; by default a free one."
        ),
    ] = None,
    queues: QueuesOption = None,
    concurrency: ConcurrencyOption = None,
    verbose: VerboseOption = False,
) -> int:
    """For development: run an app's jobs, and start again when its sources change.

    The store's tables are made or brought up to date first. Without --postgres, the store is the one that the app is
    configured with. With it, a PostgreSQL server from pip (the extra holdfast[local]) is started in a directory, for as
    long as this runs, and HOLDFAST_URL is set for the worker: an app made as Holdfast(), without a URL, is on it. The
    lines at the start say how another terminal gets there.

    Ctrl-C drains as it does in `worker`, then stops the server. Its data stays for the next time.

    \b
    holdfast dev shop.jobs:hf
    holdfast dev shop.jobs:hf --postgres --verbose
    holdfast dev shop.jobs:hf --postgres --data /var/tmp/shop --port 20432
    """
    named = app_to_run(session, name, command="dev")
    if not postgres and (data is not None or port is not None):
        raise Refused("--data and --port are for --postgres", hint="add `--postgres`, or leave them out")
    settings = {"queues": queues, "concurrency": concurrency}
    words = words_of_worker(session, settings=settings, verbose=verbose)
    sources, say = Sources.of(named), session.out.note
    if not postgres:
        return asyncio.run(work_reloading([*words, "--of-dev", "its own"], sources, say=say))
    with dev_server(data, port=port, say=say) as url:
        say(f"dev: PostgreSQL runs at {url.partition('?')[0]}; in another terminal:")
        say(f"  export HOLDFAST_URL={shlex.quote(url)}")
        return asyncio.run(work_reloading([*words, "--of-dev", ON_SERVER], sources, say=say, settings={"url": url}))
