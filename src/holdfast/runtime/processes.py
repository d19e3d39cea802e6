"""Processes of ours: that a child ends with its parent, and how an end is told in words. Not about jobs."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, however that ends. Linux only; elsewhere it does nothing.

    `parent` is its pid, as the parent itself knows it: it may have gone before we asked.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def exit_words(code: int) -> str:
    """The end of a process, as `waitpid` tells it, in words that fit after “it”."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # real-time signals have no name
        return f"was killed by signal {-code}"
    return f"was killed by signal {-code} ({name})"
