"""What users may import is a list that changes on purpose only: `public_surface.txt`."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pytest
from tests.architecture.sources import ROOT

import holdfast
from holdfast.core import errors

EXPECTED = Path(__file__).with_name("public_surface.txt").read_text(encoding="utf-8").split()


def test_the_public_names_are_the_listed_ones() -> None:
    exported = getattr(holdfast, "__all__", [])
    assert sorted(exported) == sorted(EXPECTED)
    assert len(set(exported)) == len(exported)


def test_every_error_is_public() -> None:
    tree = [name for name, value in vars(errors).items() if inspect.isclass(value)]
    assert set(tree) <= set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_public_name_exists_and_says_what_it_is(name: str) -> None:
    value = getattr(holdfast, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert value.__doc__
        assert not value.__doc__.startswith(f"{name}("), "dataclass made this docstring up"
        for method, function in inspect.getmembers(value, inspect.isfunction):
            if not method.startswith("_") and function.__module__.startswith("holdfast"):
                assert function.__doc__, f"{name}.{method} has no docstring"


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert holdfast.__version__ == project["version"]
