"""Asks a person before something that touches much; refuses where there is nobody to ask."""

from __future__ import annotations

import os
import select
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
        sys.stderr.write(f"{what}: go on? [y/N]: ")
        sys.stderr.flush()
        _await_input()
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        raise typer.Abort from None
    finally:
        signal.signal(signal.SIGINT, old)
    if not answer:
        raise typer.Abort
    return answer.strip().lower() in ("y", "yes")


def _await_input() -> None:
    """Wait for a line, or for Ctrl-C, also one that comes between the question and the waiting: `input` misses that."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    old = signal.set_wakeup_fd(waking)
    try:
        select.select([sys.stdin, woken], [], [])
    finally:
        signal.set_wakeup_fd(old)
        os.close(woken)
        os.close(waking)
