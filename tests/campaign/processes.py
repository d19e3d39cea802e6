"""Looks at processes of this machine: whose children they are, and what they take."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


class Seen(NamedTuple):
    """A process that cannot be taken for a later one with its pid."""

    pid: int
    parent: int
    started: int


def seen(pid: int) -> Seen | None:
    """None: there is none, or it has ended and is only waited for."""
    try:
        state, parent, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else Seen(pid, int(parent), int(rest[17]))


def children_of(pid: int) -> list[int]:
    """The processes that it has now."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [each.pid for each in map(seen, pids) if each and each.parent == pid]


def memory_mb(pid: int) -> float:
    """What it has in memory; 0 for one that is gone."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_MB
    return 0.0


def open_files(pid: int) -> tuple[int, int]:
    """How many descriptors it has: of sockets, and of everything else."""
    sockets = others = 0
    with contextlib.suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed since
                is_socket = str(each.readlink()).startswith("socket:")
                sockets, others = sockets + is_socket, others + (not is_socket)
    return sockets, others


def most(values: Iterable[float]) -> float:
    return max(values, default=0.0)
