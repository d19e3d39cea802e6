"""One setting as a value: its name, default and bounds, in words for whoever has to write it. Reads nothing."""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any, Final, NamedTuple

PREFIX: Final = "HOLDFAST_"


class Table(dict[str, Any]):
    """A setting that is a table; nobody changes it, so that it can be hashed as the others can."""

    def __hash__(self) -> int:  # type: ignore[override]  # dict has none, because it may change
        return hash(json.dumps(self, sort_keys=True))


class Setting(NamedTuple):
    """One row of the table of settings, from which docs and `doctor` are made."""

    name: str
    default: Any
    doc: str
    low: float | None
    high: float | None

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    @property
    def requirement(self) -> str:
        """What a right value is, in words that fit after “is not”."""
        match self.default:
            case bool():
                return "yes or no (in a file: true or false)"
            case int():
                return f"a whole number from {self.low:,} to {self.high:,}"
            case float():
                return f"a number of seconds from {self.low:,} to {self.high:,}"
            case tuple():
                return "a list of queue names, or one text with commas between them"
            case Table():
                return "a table (in a variable: a JSON object)"
            case _:
                return "a text"


def setting(default: Any, doc: str, *, low: float | None = None, high: float | None = None) -> Any:
    """A field of a dataclass that is a setting."""
    shown = f"{default:,}" if type(default) is int else f"{default:,g}" if isinstance(default, float) else ""
    shown = "yes" if default is True else "no" if default is False else shown
    shown = shown or (f"`{default}`" if default else "none")
    return field(default=default, metadata={"doc": f"{doc} Defaults to {shown}.", "low": low, "high": high})
