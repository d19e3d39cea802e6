"""Finds and loads the demonstration's tasks: in a clone they are in `examples/`, a wheel brings a copy of that file.

They are loaded by path and under a name that nobody imports, so users never meet them by accident.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.app import Holdfast
from holdfast.cli.exits import Exit, Refused
from holdfast.config import Config

_FILE = "demo_tasks.py"
#: The wheel's copy (see pyproject.toml; the hyphen keeps it from being importable), then the clone's original.
PLACES = (Path(__file__).parent / "as-shipped" / _FILE, Path(__file__).parents[4] / "examples" / _FILE)

#: The queue of the slow jobs, whose worker is a process of its own; all other queues are the first worker's.
SLOW_QUEUE = "imports"
QUICK_QUEUES = ("mail", "media", "payments")
#: Short, because people wait for it: a killed worker's jobs run again when this is over.
LEASE_S = 3.0
_GRACE_S = 10.0


class Demonstrated(NamedTuple):
    """What the tasks' file brings."""

    hf: Holdfast
    produce: Callable[[], Coroutine[Any, Any, None]]


def load_tasks(url: str) -> Demonstrated:
    """The demonstration's app, on this store. The user's own settings are for their own apps: none hold here."""
    path = next((each for each in PLACES if each.is_file()), None)
    if path is None:
        raise Refused(
            f"the demonstration's tasks are not there: {PLACES[0]} is missing",
            hint="install Holdfast again: its wheel has that file",
            code=Exit.BUG,
        )
    spec = importlib.util.spec_from_file_location("_holdfast_demo_tasks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where annotations of tasks are looked up
    spec.loader.exec_module(module)
    hf: Holdfast = module.hf
    hf.config = Config(url=url, lease_s=LEASE_S, grace_s=_GRACE_S)
    return Demonstrated(hf, module.produce)
