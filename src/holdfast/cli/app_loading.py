"""Finds the app that `module:attribute` names; every way in which that fails is a sentence of its own."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from holdfast.app import Holdfast
from holdfast.cli.exits import Refused

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def names_an_app(text: str) -> bool:
    """Whether it has the form `module:attribute`."""
    return _NAME.fullmatch(text) is not None


def check_name(name: str) -> None:
    """Refuse what cannot name an app."""
    if not names_an_app(name):
        raise Refused(f"{name!r} does not name an app", hint=_meant(name))


def load_app(name: str) -> Holdfast:
    """The app of that name; its module is looked for in the current directory first."""
    check_name(name)
    module_name, _, attribute = name.partition(":")
    module = _imported(module_name)
    value: object = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise Refused(f"module {module_name!r} has no {attribute!r}", hint=_apps_of(module))
        value = getattr(value, part)
    if not isinstance(value, Holdfast):
        raise Refused(f"{name} is not a Holdfast app but of type {type(value).__name__}", hint=_apps_of(module))
    value.loaded_as = name
    return value


def _imported(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise Refused(
                f"there is no module {error.name!r}, neither in {here} nor among the installed ones",
                hint=_meant(name)
                if name.endswith(".py")
                else "go to the directory in which it can be imported, or name that in PYTHONPATH",
            ) from error
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> Refused:
    """The module's own code failed: say with what, and in which line of it."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "importlib" not in each.filename]
    last = frames[-1] if frames else None
    where = "" if last is None or last.filename == __file__ else f" ({last.filename}, line {last.lineno})"
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({error.filename}, line {error.lineno})"
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    return Refused(
        f"module {name!r} cannot be imported: {type(error).__name__}: {reason}{where}",
        hint="mend the module; `--debug` shows the whole traceback",
    )


def _meant(name: str) -> str:
    """What to write in place of a file, or of a module without an attribute."""
    path, _, attribute = name.partition(":")
    module = path.removesuffix(".py").removeprefix("./").replace("/", ".")
    if module and (Path.cwd() / Path(*module.split("."))).with_suffix(".py").is_file():
        return f"write module:attribute, as in `{module}:{attribute or 'hf'}` for {attribute or 'hf'} in {path}"
    return "write module:attribute, as in `shop.jobs:hf` for hf in shop/jobs.py"


def _apps_of(module: ModuleType) -> str:
    apps = [name for name, value in vars(module).items() if isinstance(value, Holdfast)]
    if not apps:
        return f"{module.__name__} holds no app; one is made by `hf = Holdfast()`"
    return f"its apps are {', '.join(f'`{module.__name__}:{name}`' for name in apps)}"
