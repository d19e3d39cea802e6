"""`python -m tests.docs.generate`: writes the parts of the documentation that are made from the code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

from tests.docs.pages import ROOT

import holdfast
from holdfast.config import Config
from holdfast.core import errors

END = "<!-- end -->"


def settings_table() -> str:
    """One row per setting."""
    rows = [f"| `{each.name}` | `{each.variable}` | {each.requirement} | {each.doc} |" for each in Config.settings()]
    return "\n".join(["| setting | variable | value | meaning |", "|---|---|---|---|", *rows])


def error_tree() -> str:
    """The drawing from the module's docstring, as it is."""
    text = inspect.getdoc(errors) or ""
    lines = text.splitlines()
    first = lines.index("HoldfastError")
    last = next(n for n in range(first, len(lines)) if not lines[n])
    return "\n".join(["```text", *lines[first:last], "```"])


def error_table() -> str:
    """One row per class: what else it is, what it carries, what it means."""
    rows = ["| error | also a | attributes | meaning |", "|---|---|---|---|"]
    classes = [each for each in vars(errors).values() if inspect.isclass(each) and each.__module__ == errors.__name__]
    for each in classes:
        assert each.__name__ in holdfast.__all__, f"{each.__name__} cannot be imported from holdfast"
        bases = [base.__name__ for base in each.__bases__ if base not in (errors.HoldfastError, Exception)]
        fields = _assigned(each)
        doc = " ".join((inspect.getdoc(each) or "").split())
        rows.append(f"| `{each.__name__}` | {_code(bases)} | {_code(fields)} | {doc} |")
    return "\n".join(rows)


def _assigned(error: type) -> list[str]:
    """The attributes that its constructor sets, in order."""
    init = vars(error).get("__init__")
    names = init.__code__.co_names if init is not None else ()
    source = inspect.getsource(init) if init is not None else ""
    return [name for name in names if f"self.{name} = " in source]


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


#: (page, part, what makes it)
PARTS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("docs/configuration.md", "settings", settings_table),
    ("docs/errors.md", "tree", error_tree),
    ("docs/errors.md", "table", error_table),
)


def renewed(text: str, part: str, content: str) -> str:
    """The page with that part as the code has it now."""
    begin = f"<!-- generated {part}: python -m tests.docs.generate -->"
    head, marker, rest = text.partition(begin)
    _, end, tail = rest.partition(END)
    assert marker, f"the line {begin} is missing"
    assert end, f"the line {END} after {begin} is missing"
    return f"{head}{begin}\n{content}\n{END}{tail}"


def main() -> None:
    for page, part, make in PARTS:
        path: Path = ROOT / page
        path.write_text(renewed(path.read_text("utf-8"), part, make()), "utf-8")
        print(f"{page}: {part}")


if __name__ == "__main__":
    main()
