"""Processes that we start: how they end together with the one that started them, and how their end is told."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel SIGKILL this process when its parent, whose process id is `parent`, has died; Linux only.

    Two things to know. The signal comes when the *thread* that started this process ends, so start it from one that
    lasts as long as the parent does. And it is lost when the parent has died before this call, so that is looked at
    afterwards.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def told_end(code: int) -> str:
    """How a process ended, from its exit code (below 0: the signal that killed it), in words."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:  # a real-time signal, which has no name
        return f"was killed by signal {-code}"
