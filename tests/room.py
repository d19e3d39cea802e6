"""Says where the files of a test run are best: in memory, where there is room for them.

`python -m tests.room` prints a directory for TMPDIR, or nothing where the usual one will do. Stores sync whatever they
write, thousands of times in a run; with four tests at a time that is a tenth of it, and shows nothing: tests kill
processes and servers, whose files the kernel keeps, but none of them takes the power away.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
#: A run needs less than a tenth of the second one at its peak; a container often has 64 MB of the first.
ROOM = 8 * 1024**3


def place(memory: Path = MEMORY, room: int = ROOM) -> str:
    """The directory, or nothing: another one was asked for, or this one is small, or lets no program run."""
    if os.environ.get("TMPDIR") or not memory.is_dir() or not os.access(memory, os.W_OK | os.X_OK):
        return ""
    fits = shutil.disk_usage(memory).free >= room and _unused_memory() >= room
    return str(memory) if fits and _runs_programs(memory) else ""


def _unused_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


def _runs_programs(directory: Path) -> bool:
    with tempfile.TemporaryDirectory(dir=directory) as inside:
        program = Path(inside) / "program"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o700)
        try:
            return subprocess.run([program], check=False).returncode == 0
        except OSError:
            return False


if __name__ == "__main__":
    print(place())
