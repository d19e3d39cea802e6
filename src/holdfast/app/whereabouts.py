"""Where an app and all that belongs to it can be imported from, so that another process can have the same.

The way of `multiprocessing`'s spawn, but for one thing: a script is imported under the name that others import it by,
so that its tasks are called there what they are called here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.core.errors import ConfigError

_MAIN = "__main__"


class Whereabouts(NamedTuple):
    """What to import, in this order, and then where the app is."""

    script: tuple[str, str] | None
    """A module's name and its file, where that is the program that runs here; it comes first."""
    modules: list[str]
    app: str
    """As `module:attribute`."""


def find_app(
    app: object, parts: Iterable[Callable[..., Any]], *, made_in: str = "", named: str | None = None
) -> Whereabouts:
    """Where the app and its parts (tasks, hooks) are; ConfigError where another process could not import it.

    `named` is `module:attribute`, where that is known. Else it is taken from the module in which it was made, or from
    the first that has it. All modules are imported in the order in which they were here: they may need each other.
    """
    module, attribute = _holder(app, made_in) if named is None else named.split(":")
    wanted = {module, *(getattr(part, "__module__", None) for part in parts)}
    modules = [name for name in list(sys.modules) if name in wanted]
    names = {name: name for name in modules}
    script: tuple[str, str] | None = None
    if _MAIN in modules:
        names[_MAIN], file = _main()
        if file is not None:
            script = (names[_MAIN], file)
            modules.remove(_MAIN)
    return Whereabouts(script, [names[name] for name in modules], f"{names[module]}:{attribute}")


def _holder(app: object, made_in: str) -> tuple[str, str]:
    for name, module in [(made_in, sys.modules.get(made_in)), *sys.modules.items()]:
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if value is app:
                return name, attribute
    raise ConfigError(
        "a task has isolate=True, and the process that it runs in has to import the app: there is no module here of "
        "which the app is an attribute. Make it one at the top of a module, as in `hf = Holdfast(…)`"
    )


def _main() -> tuple[str, str | None]:
    """The name by which the program that runs here can be imported, and its file where that is needed for it."""
    main = sys.modules[_MAIN]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return spec.name, None
    file = getattr(main, "__file__", None)
    if file is None:
        raise ConfigError(
            "a task has isolate=True, and the process that it runs in has to import the app: this one was typed in, or "
            "came from standard input or -c. Put it into a file"
        )
    path = Path(file).absolute()
    return path.name.removesuffix(".py"), str(path)
