"""The entry point: runs a command and turns whatever it raises into a sentence and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

try:
    from typer.exceptions import Abort, TyperException

    from holdfast.cli.commands import root
    from holdfast.cli.output import close_quietly, printable
except ModuleNotFoundError as missing:
    name = (missing.name or "").partition(".")[0]
    if name not in ("typer", "rich", "watchfiles"):
        raise
    sys.exit(f"holdfast: the command line needs {name}, which is not installed\n  try: pip install 'holdfast[cli]'")

from holdfast.cli.exits import Exit, Refused, refusal
from holdfast.core.errors import HoldfastError


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a letter is no reason to fail
    code = _run(words)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        close_quietly()
        code = Exit.CLOSED_PIPE
    sys.exit(code)


def _run(words: list[str]) -> int:
    try:
        return root(words, prog_name="holdfast", standalone_mode=False) or Exit.OK
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            close_quietly()
            return Exit.CLOSED_PIPE
        raise
    except Abort:  # Ctrl-D, or Ctrl-C, at a question
        return Exit.INTERRUPTED
    except Exception as error:
        said = _refused(error)
        if "--debug" in words:
            traceback.print_exception(error)
        hint = f"\n  try: {printable(said.hint)}" if said.hint else ""
        sys.stderr.write(f"holdfast: {printable(str(said))}{hint}\n")
        return said.code


def _refused(error: Exception) -> Refused:
    match error:
        case Refused():
            return error
        case HoldfastError():
            return refusal(error)
        case TyperException():
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "holdfast"
            message = error.format_message().rstrip(".")
            return Refused(message[:1].lower() + message[1:], hint=f"`{path} --help` explains it with examples")
        case TimeoutError():
            return Refused(str(error), hint="wait on with `holdfast jobs wait ID`", code=Exit.LATER)
        case _:
            return Refused(
                f"unexpected error: {type(error).__name__}: {error}",
                hint="the same command with `--debug` shows where",
                code=Exit.BUG,
            )
