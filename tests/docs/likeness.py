"""Whether output is like that on a page, where ids, times and paths differ from run to run and all else must not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

#: What differs by nature, as it looks on either side.
_VARIES = (
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:,\d{3}|Z)?",  # a moment
    r"\b\d+(?:\.\d+)?[smh]\b",  # an age; a delay, as in `1.0 s`, is no such thing
    r"\b\d+:\d\d:\d\d\b",  # what a progress bar has taken
    r"(?:[━╸╺]+ *)+\d+%",  # how far it has come
    r"(?<=\")/[^\"]*/(?=\w+\.py\")",  # where a file is
)
_PARTS = re.compile("|".join([rf"(?P<id>{_ID.pattern})", *(f"(?:{each})" for each in _VARIES)]))


class Likeness:
    """Compares lines with those of a page; each id of the page stands for one real id, everywhere."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def real(self, text: str) -> str:
        """Text of the page with the real ids; one that was not shown yet stays as it is."""
        return _ID.sub(lambda found: self._real.get(found[0], found[0]), text)

    def same(self, expected: str, line: str) -> bool:
        """Whether the line is like the expected one; ids that it brings are then known."""
        expected, line = " ".join(expected.split()), " ".join(line.split())
        if _PARTS.sub("\0", expected) != _PARTS.sub("\0", line):
            return False
        pairs = list(zip(_ID.findall(expected), _ID.findall(line), strict=True))
        known = {**self._real}
        for page, real in pairs:
            if known.setdefault(page, real) != real:
                return False
        if len(set(known.values())) < len(known):
            return False  # two ids of the page would be one
        self._real = known
        return True

    def missing(self, expected: Iterable[str], lines: Iterable[str]) -> Iterator[str]:
        """Expected lines that do not come, in their order, among these."""
        rest = iter(lines)
        for each in expected:
            if not any(self.same(each, line) for line in rest):
                yield each
