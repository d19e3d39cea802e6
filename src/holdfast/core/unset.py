"""`UNSET`: an option that was not given, which is not the same as one given as None."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeVar

T = TypeVar("T")


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET
"""An option that was not given, where None would be a value: `timeout=None` is no limit."""


def given(value: T | Unset, otherwise: T) -> T:
    """The value, or what applies when it was not given."""
    return otherwise if isinstance(value, Unset) else value
