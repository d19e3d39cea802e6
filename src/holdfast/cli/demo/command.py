"""`holdfast demo`: workers, a producer and a live view in one command, on a store of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from holdfast.app import Holdfast
from holdfast.cli.demo.presenting import Present, presenting
from holdfast.cli.demo.serving import serving
from holdfast.cli.demo.show import Show
from holdfast.cli.demo.summary import next_lines, sum_up, summary_lines
from holdfast.cli.demo.tasks_file import load_tasks
from holdfast.cli.demo.watching import Watcher
from holdfast.cli.exits import Refused
from holdfast.cli.session import Session, command
from holdfast.core.urls import is_postgres, sqlite_path
from holdfast.runtime.signals import StopSignals, stop_signals

_REFRESH_S = 0.2
#: Also the terminal that is closed: the temporary store is to go then, too.
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root, without=("app", "url"))(demo)


async def demo(
    session: Session,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="N", min=0, help="End after so long; by default at Ctrl-C.")
    ] = None,
    kept: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="A new store, which stays; by default a temporary one.")
    ] = None,
    api_port: Annotated[
        int | None,
        typer.Option("--api-port", metavar="N", min=0, max=65_535, help="Serve the HTTP API there, too; 0: any port."),
    ] = None,
) -> None:
    """Watch jobs at work, in a live view.

    Enqueues the jobs of a small shop and runs them: quick and slow ones, urgent and bulk, delayed, flaky, and some that
    cannot succeed. After a few seconds a second worker process is killed in the middle of its jobs, and you see them
    run again.

    On a terminal there is a live view, elsewhere a line for every second and every event worth one. Ctrl-C, SIGTERM or
    --seconds drain it: what runs may end. Then it sums up, with exit code 0. A second signal hands back what runs.

    The jobs are in a temporary file that goes at the end; with --url, in a new file that stays.

    \b
    holdfast demo
    holdfast demo --api-port 8420
    holdfast demo --seconds 30 --url sqlite:///demo.db
    holdfast demo --seconds 10 --json | jq 'select(.event == "job.buried")'
    """
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)  # it would write across the picture, which says the same
    with _store(kept) as url:
        demonstrated = load_tasks(url)
        async with (
            stop_signals(*_STOPPING) as signals,
            demonstrated.hf as hf,
            serving(hf, api_port, session.out.note),
        ):
            watcher = Watcher(hf)
            hf.telemetry.attach(watcher)
            show = Show(demonstrated, watcher.tell)
            with presenting(session.out, command=_own_name()) as present:
                await _perform(show, watcher, present, signals, seconds)
            await _sum_up(session, hf, watcher, kept)


async def _perform(show: Show, watcher: Watcher, present: Present, signals: StopSignals, seconds: float | None) -> None:
    stopping: asyncio.Task[None] | None = None
    try:
        await show.start()
        while signals.count == 0 and (seconds is None or watcher.elapsed_s < seconds):
            show.check()
            present(await watcher.snapshot())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(signals.wait(1), _REFRESH_S)
        stopping = asyncio.create_task(show.stop())
        while not stopping.done():
            if signals.count > 1:
                show.stop_now()
            present(await watcher.snapshot(draining=True))
            await asyncio.wait({stopping}, timeout=_REFRESH_S)
        present(await watcher.snapshot(draining=True))
    except BaseException:
        show.stop_now()
        raise
    finally:
        await (show.stop() if stopping is None else stopping)


async def _sum_up(session: Session, hf: Holdfast, watcher: Watcher, kept: str | None) -> None:
    summary = await sum_up(hf, seconds=watcher.elapsed_s)
    if session.out.as_json:
        session.out.document(summary.fields(), indent=None)
        return
    letters = await hf.dead.list(task="charge", limit=1)
    after = next_lines(_own_name(), url=kept, letter=letters[0] if letters else None, clone=_in_a_clone())
    for line in (*summary_lines(summary, enqueued=watcher.tally.enqueued), "", *after):
        session.out.line(line)


@contextlib.contextmanager
def _store(url: str | None) -> Iterator[str]:
    """The URL of a new store: a temporary one, or the one that was named."""
    if url is None:
        with tempfile.TemporaryDirectory(prefix="holdfast-demo-", ignore_cleanup_errors=True) as directory:
            yield f"sqlite:///{directory}/demo.db"
        return
    if is_postgres(url):
        raise Refused("the demonstration makes a SQLite store of its own, and uses no server", hint=_HINT)
    path = sqlite_path(url)
    if path == ":memory:":
        raise Refused("':memory:' is private to one process, and the demonstration has two", hint=_HINT)
    # A worker that knows only the demonstration's tasks has no business among other jobs.
    if Path(path).exists():
        raise Refused(f"{path} exists already, and the demonstration makes a store of its own", hint=_HINT)
    yield url


_HINT = "name a new file, as in `--url sqlite:///demo.db`, or leave out `--url` for a temporary one"


def _in_a_clone() -> bool:
    return Path("examples/demo_tasks.py").is_file()


def _own_name() -> str:
    """How to call this command line from where the user is."""
    script = Path(sys.argv[0])
    if script.name != "holdfast":
        return "python -m holdfast"
    found = shutil.which("holdfast")
    return "holdfast" if found is not None and script.samefile(found) else str(script)
