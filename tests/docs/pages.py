"""The pages of the documentation as the tests see them: fenced blocks, links, generated parts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?$")


class Block(NamedTuple):
    """One fenced block."""

    language: str
    text: str
    line: int
    """Of its first line of content, counted from 1."""
    last_line: int
    """Of the closing fence."""
    title: str = ""
    """The file that it is, or the terminal that it is typed into."""


def pages() -> list[Path]:
    """Every page that users read."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert len(found) > 5, "the documentation has gone: the tests would check nothing"
    return found


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    inside: tuple[str, str, int] | None = None
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if inside is None:
            inside = (fence[1], fence[2] or "", number)
            continue
        language, title, opened = inside
        found.append(Block(language, "\n".join(lines[opened : number - 1]) + "\n", opened + 1, number, title))
        inside = None
    assert inside is None, f"the block that begins in line {inside and inside[2]} is never closed"
    return found


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    lines = text.splitlines()
    for block in blocks(text):
        for number in range(block.line - 2, block.last_line):
            lines[number] = ""
    return "\n".join(lines)


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the table whose first row begins with `heading`."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith(f"| {heading} |")), None)
    assert start is not None, f"there is no table that begins with {heading!r}"
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    assert rows
    return [[cell.strip(" |") for cell in row] for row in rows]
