"""`holdfast api`: serves the HTTP API of an app, or of a store."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from holdfast.app import Holdfast
from holdfast.app.log_output import set_up_logs
from holdfast.cli.app_loading import check_name
from holdfast.cli.dev_key import dev_key
from holdfast.cli.dev_store import ON_SERVER, own_place, prepare_store
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.http_extra import PREFIX, http_module
from holdfast.cli.reloading import work_reloading
from holdfast.cli.session import Session, command
from holdfast.cli.sources import Sources
from holdfast.cli.worker import AppArgument, VerboseOption
from holdfast.core.api_key import Scope
from holdfast.runtime.loop import run_loop
from holdfast.runtime.signals import stop_signals

DEFAULT_PORT = 8420

HostOption = Annotated[
    str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; elsewhere than here only with keys.")
]
PortOption = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65_535, help="The port; 0: any that is free.")
]


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    command(root, without=("as_json",))(api)


def api(
    session: Session,
    name: AppArgument = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = DEFAULT_PORT,
    origins: Annotated[
        list[str] | None,
        typer.Option("--origin", metavar="ORIGIN", help="Pages of this site may ask, too; may be given several times."),
    ] = None,
    proxies: Annotated[
        str, typer.Option("--behind-proxy", metavar="ADDRESSES", help="Believe these about who asks; commas between.")
    ] = "",
    unknown_tasks: Annotated[
        bool, typer.Option("--accept-unknown-tasks", help="Take jobs of tasks that only workers know.")
    ] = False,
    anyone: Annotated[
        bool,
        typer.Option(
            "--anyone-may-do-anything-without-a-key", help="Let in whoever can reach the address, for everything."
        ),
    ] = False,
    verbose: VerboseOption = False,
    reload: Annotated[
        bool, typer.Option("--reload", help="For development: start again when a source file changes.")
    ] = False,
    of_dev: Annotated[str | None, typer.Option("--of-dev", hidden=True)] = None,
) -> int:
    """Serve the HTTP API until SIGTERM or Ctrl-C.

    Every request needs a key, which `holdfast keys create` makes. Elsewhere than on this machine it listens only once
    there is one. TLS is for a proxy in front of it, whose address --behind-proxy names.

    With an app, calls are checked against its tasks. With --url no code is imported: then tasks are known by name only,
    and --accept-unknown-tasks is needed to submit anything.

    The first signal takes nothing new: requests under way end within the setting grace_s, and whoever follows a job is
    told to come again. A second one ends it now.

    \b
    holdfast api shop.jobs:hf
    holdfast api shop.jobs:hf --host 0.0.0.0 --port 80 --behind-proxy 10.0.0.7
    holdfast api --url postgresql://jobs@db/jobs --accept-unknown-tasks
    """
    _name_app(session, name)
    http_module("serving").check_proxies(proxies)  # what is missing is told before anything else is done
    logging.getLogger("holdfast").setLevel(logging.DEBUG if verbose else logging.INFO)
    if reload:
        words = ["--host", host, "--port", str(port), *(word for each in origins or () for word in ("--origin", each))]
        words += ["--behind-proxy", proxies] if proxies else []
        words += ["--accept-unknown-tasks"] if unknown_tasks else []
        words += ["--anyone-may-do-anything-without-a-key"] if anyone else []
        words += ["--verbose"] if verbose else []
        words += [] if of_dev is None else ["--of-dev", of_dev]
        return asyncio.run(_reloading(session, words))
    hf = session.load_for_store(create=of_dev is not None)
    set_up_logs(hf.config.log_format)
    options = {"origins": origins or (), "unknown_tasks": unknown_tasks, "anyone": tuple(Scope) if anyone else ()}
    if of_dev is not None:
        asyncio.run(prepare_store(hf, name=session.app or "the app", on_server=of_dev == ON_SERVER))
    run_loop(_serve(session, hf, host, port, proxies, options, is_dev=of_dev is not None))
    return Exit.OK


def _name_app(session: Session, name: str | None) -> None:
    if name is not None and session.app is not None:
        raise Refused("two apps were named", hint="give `-A` or MODULE:APP, not both")
    session.app = session.app or name
    if (named := session.named_app()) is not None:
        check_name(named)


async def _serve(
    session: Session, hf: Holdfast, host: str, port: int, proxies: str, options: Mapping[str, Any], *, is_dev: bool
) -> None:
    serving = http_module("serving")
    async with stop_signals() as signals, hf:
        now, keys = await hf.keys.now(), await hf.keys.list()
        has_keys = any(key.is_valid(now) for key in keys)
        if not serving.is_loopback(host) and not has_keys and not options["anyone"]:
            raise Refused(
                f"{host} can be reached from elsewhere, and there is no key yet that anybody could come with",
                hint="`holdfast keys create NAME --scope …` makes one",
            )
        place = bind_place(host, port, any_port=is_dev)
        app = http_module("application").asgi(hf, **options)
        address = f"{serving.address_of(place)}{PREFIX}"
        key = await dev_key(hf, own_place()) if is_dev else None
        started = _Started(session, hf, address, key=key, lonely=not has_keys and not options["anyone"])
        await serving.serve(app, place, signals, grace_s=hf.config.grace_s, proxies=proxies, started=started)


def bind_place(host: str, port: int, *, any_port: bool) -> socket.socket:
    """A socket that listens there; `any_port`: or on another port, where that one is taken."""
    try:
        place: socket.socket = http_module("serving").bind(host, port)
    except OSError as error:
        if any_port and error.errno == errno.EADDRINUSE:
            return bind_place(host, 0, any_port=False)
        why = f"{host} port {port} cannot be listened on: {error.strerror}"
        raise Refused(why, hint="give another `--port`, or another `--host`") from None
    return place


class _Started:
    """Says where it is, and how to get there."""

    def __init__(self, session: Session, hf: Holdfast, address: str, *, key: str | None, lonely: bool) -> None:
        self._say = session.out.note
        self._hf = hf
        self._address = address
        self._key = key
        self._lonely = lonely

    def __call__(self) -> None:
        self._say(f"api: {self._address} is open")
        if self._key is not None:
            self._say(f"api: a key for you: {self._key}")
            self._say(f"  curl -H 'Authorization: Bearer {self._key}' {self._address}/tasks")
        elif self._lonely:
            self._say("api: there is no key yet: `holdfast keys create NAME --scope …` makes one")


async def _reloading(session: Session, words: list[str]) -> int:
    if session.app is None:
        raise Refused("--reload is for an app", hint="name it, as MODULE:APP")
    return await work_reloading(["api", session.app, *words], Sources.of(session.app), say=session.out.note, what="API")
