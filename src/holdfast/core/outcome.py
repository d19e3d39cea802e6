"""What happened in one run of a task, as one frozen value; `settlement.decide` turns it into what is written."""

from __future__ import annotations

import traceback as tb
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

from holdfast.core.job import CLASS_LINE, ErrorInfo

_NAME_LIMIT = 200
_MESSAGE_LIMIT = 4_000
_TRACEBACK_LIMIT = 32_000


class Succeeded(NamedTuple):
    """The task returned; its result is encoded already."""

    result: bytes | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The task raised."""

    exception: BaseException


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The run was ended at its hard limit."""

    limit_s: float


@dataclass(frozen=True, slots=True)
class Rejected:
    """It can never run as it is, or its effect is done but its result cannot be kept: dead, no retry."""

    reason: str
    exception: BaseException


@dataclass(frozen=True, slots=True)
class Unknown:
    """This worker does not know the task."""

    task: str


@dataclass(frozen=True, slots=True)
class CancelHonoured:
    """The run ended because its job was asked to be cancelled."""

    reason: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The worker stopped the run for reasons of its own: the job goes back, uncharged."""

    why: str


@dataclass(frozen=True, slots=True)
class ProcessDied:
    """The process in which it ran alone died without a word: what ran there is the cause."""

    why: str


Outcome = Succeeded | Failed | TimedOut | Rejected | Unknown | CancelHonoured | Interrupted | ProcessDied


def describe(exception: BaseException, *, error_class: str = "") -> ErrorInfo:
    """An exception as text; one whose `str()` raises is still told apart by its type.

    Its class is kept as the last line of the traceback, as a note to an exception is.
    """
    kind = type(exception)
    name = _name_of(kind)
    try:
        message = str(exception)
    except BaseException as broken:  # users' code: even SystemExit must not get out of here
        message = f"<str() of this error raised {type(broken).__name__}>"
    try:
        trace = "".join(tb.format_exception(kind, exception, _users_part(exception.__traceback__)))
    except BaseException as broken:
        trace = f"<the traceback could not be formatted: {type(broken).__name__}>\n"
    if error_class:
        trace = f"{trace}{CLASS_LINE}{error_class}\n"
    return ErrorInfo(
        storable(name, _NAME_LIMIT), storable(message, _MESSAGE_LIMIT), storable(trace, _TRACEBACK_LIMIT, keep_end=True)
    )


def _name_of(kind: type[BaseException]) -> str:
    """The name under which users know an exception's class."""
    module: object = kind.__module__
    if module == "builtins" or not isinstance(module, str):  # a class made by hand may say anything of itself
        return kind.__qualname__
    # Ours are known by the package's name, wherever they are defined in it.
    return f"{'holdfast' if module.startswith('holdfast.') else module}.{kind.__qualname__}"


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the user's code on: the frames through which we came to it tell nobody anything."""
    ours = trace
    while ours is not None and str(ours.tb_frame.f_globals.get("__name__")).startswith("holdfast."):
        ours = ours.tb_next
    return trace if ours is None else ours


def storable(text: str, limit: int, *, keep_end: bool = False) -> str:
    """Text that every store takes: no NUL, no lone surrogate, bounded (a traceback keeps its end)."""
    text = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) <= limit:
        return text
    return f"… {text[-limit:]}" if keep_end else f"{text[:limit]} …"
