"""The servers of `holdfast dev`, in a directory each, and the tables in whatever store the app has."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from holdfast.app import Holdfast
from holdfast.cli.exits import Refused
from holdfast.config import Config
from holdfast.core.urls import mask
from holdfast.local import LocalPostgres, LocalRedis

#: How `dev` tells the worker it starts that there is a server which the app is to use; anything else: its own store.
ON_SERVER = "server"
_OWN_PLACE = Path(".holdfast")


@contextlib.contextmanager
def dev_server(directory: Path | None, *, port: int | None, say: Callable[[str], None]) -> Iterator[str]:
    """A server for as long as the block lasts; its URL, which finds the password in a file and does not contain it."""
    if importlib.util.find_spec("asyncpg") is None:
        raise Refused(
            "a PostgreSQL store needs asyncpg, which is not installed", hint="pip install 'holdfast[postgres]'"
        )
    server = LocalPostgres(directory or _own_directory("postgres"), port=port)
    say(f"dev: PostgreSQL is starting in {server.directory}")
    with server:
        passfile = quote(str(server.directory / "pgpass"), safe="/")
        yield f"postgresql://postgres@127.0.0.1:{server.port}/postgres?passfile={passfile}"
        _stop_undisturbed()
        say("dev: stopping PostgreSQL; its data stays")


@contextlib.contextmanager
def dev_redis(*, say: Callable[[str], None]) -> Iterator[str]:
    """A Redis for as long as the block lasts; its URL, without the password."""
    if importlib.util.find_spec("hiredis") is None:
        raise Refused("Redis needs hiredis, which is not installed", hint="pip install 'holdfast[redis]'")
    server = LocalRedis(_own_directory("redis"))
    say(f"dev: Redis is starting in {server.directory}")
    with server:
        yield server.passfile_url
        _stop_undisturbed()
        say("dev: stopping Redis")


def _stop_undisturbed() -> None:
    """It has been asked to stop, and does."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def own_place() -> Path:
    """A directory of our own, which goes into no repository."""
    _OWN_PLACE.mkdir(exist_ok=True)
    ignore = _OWN_PLACE / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", "utf-8")
    return _OWN_PLACE


def _own_directory(server: str) -> Path:
    return own_place() / server


async def prepare_store(hf: Holdfast, *, name: str, on_server: bool) -> None:
    """Bring the tables up to date; where there is a server for the app, it has to be on that."""
    if on_server and hf.config.url != Config.load().url:
        raise Refused(
            f"{name} stores its jobs at {mask(hf.config.url)} ({hf.config.origin('url')}), and not on the server that "
            "`dev` has started",
            hint="make the app without a URL, as `Holdfast()`: then HOLDFAST_URL holds, which `dev` sets",
        )
    await hf.migrate()
