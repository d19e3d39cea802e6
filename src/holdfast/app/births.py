"""How an isolate of an app is started: the command, and what it is told first. What it then does is in `isolate`."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import Any, Protocol

from holdfast.app.whereabouts import find_app
from holdfast.config import Config
from holdfast.core.task import Registry
from holdfast.worker.isolation.isolate import Birth
from holdfast.worker.lifecycle import Hooks

# Not `-m`, which would look for modules in the current directory first, wherever the worker found its own.
_BEGIN = "import sys; sys.path[:] = sys.argv[2:-1]; from holdfast.app.isolate import main; main()"


class _App(Protocol):
    loaded_as: str | None
    made_in: str


def birth_of(app: _App, tasks: Registry, hooks: Hooks, config: Config) -> Birth:
    """What the next isolate of this app needs; ConfigError where none can have it."""
    functions = [task.function for task in tasks]
    functions += [*hooks.startup, *hooks.shutdown, *hooks.middleware]
    functions += [] if hooks.lifespan is None else [hooks.lifespan.function]
    where = find_app(app, functions, made_in=app.made_in, named=app.loaded_as)
    # The flags with which this interpreter was started, as multiprocessing passes them on.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    settings: dict[str, Any] = config.values()
    del settings["failpoints"]  # armed by the environment, there as here
    first = {
        "argv": sys.argv,
        "script": where.script,
        "modules": where.modules,
        "app": where.app,
        "tasks": [task.name for task in tasks if task.options.isolate],
        "settings": settings,
        "log_level": logging.getLogger("holdfast").getEffectiveLevel(),
    }
    return Birth((sys.executable, *flags, "-P", "-c", _BEGIN, str(os.getpid()), *sys.path), first)
