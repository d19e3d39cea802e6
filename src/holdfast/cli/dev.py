"""`holdfast dev`: one command to develop with: a worker that reloads and, where wanted, the servers for it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.api import DEFAULT_PORT
from holdfast.cli.dev_store import ON_SERVER, dev_redis, dev_server
from holdfast.cli.exits import Refused
from holdfast.cli.reloading import beside, work_reloading
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
    redis: Annotated[
        bool, typer.Option("--redis", help="With --postgres: start a Redis server, too, which wakes the worker.")
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
    api_port: Annotated[
        int, typer.Option("--api-port", metavar="N", min=0, max=65_535, help="The port of the HTTP API; 0: any.")
    ] = DEFAULT_PORT,
    no_api: Annotated[bool, typer.Option("--no-api", help="Without the HTTP API.")] = False,
    queues: QueuesOption = None,
    concurrency: ConcurrencyOption = None,
    verbose: VerboseOption = False,
) -> int:
    """For development: run an app's jobs, and start again when its sources change.

    The store's tables are made or brought up to date first. Without --postgres, the store is the one that the app is
    configured with. With it, a PostgreSQL server from pip (the extra holdfast[local]) is started in a directory, for as
    long as this runs, and HOLDFAST_URL is set for the worker: an app made as Holdfast(), without a URL, is on it. With
    --redis there is a Redis beside it, as in production, and HOLDFAST_REDIS is set. The lines at the start say how
    another terminal gets there.

    The HTTP API (the extra holdfast[http]) is served beside the worker, for this machine alone, and a key for it is
    made; the lines at the start say how to use it.

    Ctrl-C drains as it does in `worker`, then stops the servers. Their data stays for the next time.

    \b
    holdfast dev shop.jobs:hf
    holdfast dev shop.jobs:hf --postgres --verbose
    holdfast dev shop.jobs:hf --postgres --redis
    holdfast dev shop.jobs:hf --postgres --data /var/tmp/shop --port 20432
    """
    named = app_to_run(session, name, command="dev")
    if not postgres and (data is not None or port is not None):
        raise Refused("--data and --port are for --postgres", hint="add `--postgres`, or leave them out")
    if redis and not postgres:
        raise Refused("--redis goes with --postgres, which keeps the jobs", hint="add `--postgres`")
    words = words_of_worker(session, settings={"queues": queues, "concurrency": concurrency}, verbose=verbose)
    sources, say = Sources.of(named), session.out.note
    port_of_api = None if no_api or importlib.util.find_spec("fastapi") is None else api_port
    if not postgres:
        return asyncio.run(_develop(words, named, sources, "its own", {}, say=say, api_port=port_of_api))
    with dev_server(data, port=port, say=say) as url, dev_redis(say=say) if redis else nullcontext() as beside:
        settings = {"url": url} | ({"redis": beside} if beside else {})
        runs = " and ".join([f"PostgreSQL runs at {url.partition('?')[0]}", *_redis_runs(beside)])
        say(f"dev: {runs}; in another terminal:")
        for name, value in settings.items():
            say(f"  export HOLDFAST_{name.upper()}={shlex.quote(value)}")
        return asyncio.run(_develop(words, named, sources, ON_SERVER, settings, say=say, api_port=port_of_api))


async def _develop(
    words: Sequence[str],
    named: str,
    sources: Sources,
    store: str,
    settings: Mapping[str, str],
    *,
    say: Callable[[str], None],
    api_port: int | None,
) -> int:
    """The worker, and the API beside it."""
    async with contextlib.AsyncExitStack() as stack:
        if api_port is not None:
            serving = ["api", named, "--port", str(api_port), "--reload", "--of-dev", store]
            await stack.enter_async_context(beside(serving, settings))
        return await work_reloading([*words, "--of-dev", store], sources, say=say, settings=settings)


def _redis_runs(url: str | None) -> list[str]:
    return [f"Redis at {url.partition('?')[0]}"] if url else []
