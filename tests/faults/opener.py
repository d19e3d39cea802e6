"""Opens a SQLite store and enqueues, to be killed meanwhile: `python -m tests.faults.opener <directory> <statement>`.

Every id is written down when it was accepted. With a number, the process kills itself before that statement.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from holdfast import Holdfast
from holdfast.stores.sqlite import opening

JOBS = 4


class Killing(sqlite3.Connection):
    """Counts statements of all connections."""

    left = 0

    def execute(self, *args: Any, **kwargs: Any) -> sqlite3.Cursor:
        Killing.left -= 1
        if Killing.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(*args, **kwargs)


def kill_before(statement: int) -> None:
    """The n-th of what opening the store does."""
    Killing.left = statement
    plain = sqlite3.connect
    opening.sqlite3.connect = lambda *args, **kwargs: plain(*args, factory=Killing, **kwargs)  # type: ignore[attr-defined]


async def enqueue(directory: Path) -> None:
    async with Holdfast(f"sqlite:///{directory / 'holdfast.db'}") as hf:
        with (directory / "accepted").open("a") as accepted:
            for n in range(JOBS):
                handle = await hf.named("work").enqueue(n)
                accepted.write(f"{handle.id}\n")
                accepted.flush()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        kill_before(int(sys.argv[2]))
    asyncio.run(enqueue(Path(sys.argv[1])))
