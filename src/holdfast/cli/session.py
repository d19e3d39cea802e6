"""What every command shares: its options, the app or store it works on, and how a coroutine becomes a command."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer

from holdfast.app import Holdfast
from holdfast.cli.app_loading import load_app
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.output import Output, close_quietly
from holdfast.client.acts import recorded_by_caller
from holdfast.config import Config
from holdfast.core.urls import is_postgres, sqlite_path

P = ParamSpec("P")
R = TypeVar("R", bound="int | Coroutine[Any, Any, Exit | None] | None")


_LIVE_S = 0.1


class Session:
    """One command at work."""

    def __init__(self, *, app: str | None, url: str | None, out: Output, debug: bool = False) -> None:
        self.app = app
        self.url = url
        self.out = out
        self.debug = debug

    def named_app(self) -> str | None:
        """The app that was named, by option or else by the settings; a store that was named goes before those."""
        if self.app is not None and self.url is not None:
            raise Refused("-A and --url were both given", hint="leave out one of them: an app has its own store")
        if self.app is None and self.url is None:
            self.app = Config.load().app or None
        return self.app

    def load(self) -> Holdfast:
        """The app that was named, or else one without tasks on the store that `--url` or the settings name."""
        name = self.named_app()
        return Holdfast(self.url) if name is None else load_app(name)

    def load_for_store(self, *, create: bool) -> Holdfast:
        """The app, once it is sure that its store can be meant; `create`: it need not be there yet."""
        hf = self.load()
        check_store(hf.config, create=create)
        return hf

    @contextlib.asynccontextmanager
    async def opened(self, *, create: bool = False, live: bool = False) -> AsyncIterator[Holdfast]:
        """The open app. Only what stores something makes a new file (`create`): a typo must not look empty.

        `live`: somebody watches, so look more often than a program would.
        """
        hf = self.load_for_store(create=create)
        if live:
            hf.config = hf.config.with_arguments(poll_s=min(_LIVE_S, hf.config.poll_s))
        async with hf:
            with recorded_by_caller():
                yield hf


def check_store(config: Config, *, create: bool) -> None:
    """Refuse what cannot be meant: a private store, or a file that is not there."""
    if is_postgres(config.url):
        return  # it says by itself what is missing
    path = sqlite_path(config.url)
    if path == ":memory:":
        raise Refused(
            "':memory:' is private to the process that opens it",
            hint="name a file, as in `--url sqlite:///jobs.db`",
        )
    if not create and not _is_there(Path(path)):
        raise Refused(
            f"there is no store at {Path(path).absolute()} ({config.origin('url')})",
            hint="name another with `--url` or `-A`; `holdfast migrate` makes a new one here",
            code=Exit.STORE,
        )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # as for a name that is too long
        return False


AppOption = Annotated[
    str | None, typer.Option("--app", "-A", metavar="MODULE:APP", help="The app, as in shop.jobs:hf.")
]
UrlOption = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="A store in place of an app: no code is imported.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, with stable names.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

_SHARED = tuple(
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    for name, default, annotation in (
        ("app", None, AppOption),
        ("url", None, UrlOption),
        ("as_json", False, JsonOption),
        ("debug", False, DebugOption),
    )
)


def noun(text: str) -> typer.Typer:
    """A group of commands, which shows its help when it is called without any."""
    return typer.Typer(help=text, invoke_without_command=True, callback=help_if_alone)


def help_if_alone(context: typer.Context) -> None:
    """Show the help, as what was missing."""
    if context.invoked_subcommand is None:
        sys.stderr.write(context.get_help() + "\n")
        raise typer.Exit(Exit.USAGE)


def command(
    group: typer.Typer, name: str | None = None, *, without: Collection[str] = ()
) -> Callable[[Callable[Concatenate[Session, P], R]], Callable[Concatenate[Session, P], R]]:
    """Make a command of a function that takes a Session first; it gets the shared options, and may be a coroutine.

    `without`: the shared options that make no sense for it.
    """

    def decorate(function: Callable[Concatenate[Session, P], R]) -> Callable[Concatenate[Session, P], R]:
        signature = inspect.signature(function, eval_str=True)

        @functools.wraps(function)
        def call(
            *, debug: bool, app: str | None = None, url: str | None = None, as_json: bool = False, **arguments: Any
        ) -> None:
            session = Session(app=app, url=url, out=Output(as_json=as_json), debug=debug)
            try:
                ending: Any = function(session, **arguments)  # type: ignore[call-arg]  # typer has matched them
                code = asyncio.run(ending) if inspect.iscoroutine(ending) else ending
            except BrokenPipeError:
                close_quietly()
                code = Exit.CLOSED_PIPE
            if code:
                raise typer.Exit(code)

        own = list(signature.parameters.values())[1:]
        by_name = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]  # read by `inspect`
            parameters=[*by_name, *(each for each in _SHARED if each.name not in without)], return_annotation=None
        )
        group.command(name)(call)
        return function

    return decorate
