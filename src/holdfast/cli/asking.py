"""Asks a person before something that touches much; refuses where there is nobody to ask."""

from __future__ import annotations

import signal
import sys

import typer

from holdfast.cli.exits import Refused


def confirmed(what: str, *, hint: str) -> bool:
    """Whether the person at the terminal agrees; `what` is a count and a verb, as in `3 dead jobs to purge`."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{what}, and nobody to ask", hint=hint)
    # A running event loop takes Ctrl-C for itself and would leave the question standing.
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(f"{what}: go on?", err=True)
    finally:
        signal.signal(signal.SIGINT, old)
