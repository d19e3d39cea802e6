"""Which files `worker --reload` watches: the sources and settings that a new worker would read."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from holdfast.cli.exits import Refused

_SETTINGS = ("holdfast.toml", "pyproject.toml")
_INSTALLED = {"site-packages", "dist-packages"}
_NOT_OURS = {"__pycache__", "node_modules", "venv"} | _INSTALLED
_FEW = 3


class Sources(NamedTuple):
    """Directories, with all that is below them."""

    directories: tuple[Path, ...]

    @classmethod
    def of(cls, app: str, *, named: Sequence[Path] = ()) -> Sources:
        """Those that were named, else the current directory and where the app's outermost package is, if elsewhere."""
        if not named:
            here = Path.cwd()
            elsewhere = [each for each in _homes(app, here) if not each.is_relative_to(here)]
            return cls((here, *(each for each in elsewhere if not _INSTALLED & set(each.parts))))
        for each in named:
            if not each.is_dir():
                raise Refused(f"there is no directory {each}", hint="`--reload-dir` names one that is there")
        return cls(tuple(each.resolve() for each in named))

    def match(self, change: object, path: str) -> bool:
        """Whether a change of this file asks for a restart; in the form that watchfiles calls."""
        file = Path(path)
        if file.suffix != ".py" and file.name not in _SETTINGS:
            return False
        # Below its directory only: that one may well be in a place with such a name.
        return any(_is_ours(file.relative_to(each)) for each in self.directories if file.is_relative_to(each))

    def __str__(self) -> str:
        return ", ".join(str(each) for each in self.directories)


def shortly(paths: Iterable[str]) -> str:
    """The files as a person knows them: from here, and not too many of them."""
    here = Path.cwd()
    files = sorted(Path(path) for path in paths)
    shown = [str(file.relative_to(here) if file.is_relative_to(here) else file) for file in files[:_FEW]]
    return ", ".join(shown) + (f" and {len(files) - _FEW} more" if len(files) > _FEW else "")


def _homes(app: str, here: Path) -> list[Path]:
    """Where the app's outermost package, or the file of its module, is found, without importing either."""
    name = app.partition(":")[0].partition(".")[0]
    spec = PathFinder.find_spec(name, [str(here), *sys.path])
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [Path(each) for each in spec.submodule_search_locations]
    return [] if spec.origin is None else [Path(spec.origin).parent]


def _is_ours(path: Path) -> bool:
    return not any(part in _NOT_OURS or part.startswith(".") for part in path.parts)
