"""A peer on the same store, where it is installed (`pip install huey`): its drain of no-op tasks."""

from __future__ import annotations

import importlib
import tempfile
import time
from pathlib import Path
from typing import Any


def huey_drain(jobs: int) -> float | None:
    """Jobs per second of Huey's SQLite queue in one process; it is not fenced and loses what a kill interrupts."""
    try:
        api: Any = importlib.import_module("huey")
    except ImportError:
        return None
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as directory:
        huey = api.SqliteHuey(filename=str(Path(directory) / "huey.db"), fsync=True)
        noop = huey.task()(_noop)
        for number in range(jobs):
            noop(number)
        began = time.perf_counter()
        while (task := huey.dequeue()) is not None:
            huey.execute(task)
        return jobs / (time.perf_counter() - began)


def _noop(number: int) -> None:
    return None
