"""Reads what recorders append to the files of a directory while they do it: every line once, sorted by its job."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from tests.history.records import job_of


class Tails:
    """All `*.jsonl` of one directory, also those that come later."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}
        self.torn = 0
        """Files whose last line was unfinished at the last look: final when nobody writes any more."""

    def new(self) -> Iterator[tuple[str, bytes]]:
        """Lines that were finished since the last look, each with its job."""
        self.torn = 0
        for path in sorted(self._directory.glob("*.jsonl")):
            at = self._read.get(path, 0)
            if path.stat().st_size == at:
                continue
            with path.open("rb") as file:
                file.seek(at)
                data = file.read()
            whole, newline, rest = data.rpartition(b"\n")
            self.torn += rest != b""
            self._read[path] = at + len(whole) + len(newline)
            for line in whole.split(b"\n") if newline else ():
                yield job_of(line), line

    def all_of(self, jobs: Collection[str]) -> dict[str, list[bytes]]:
        """Every finished line of these jobs so far, by reading everything again."""
        found: dict[str, list[bytes]] = {job: [] for job in jobs}
        for path in self._read:
            for line in path.read_bytes().split(b"\n")[:-1]:
                if (lines := found.get(job_of(line))) is not None:
                    lines.append(line)
        return found
