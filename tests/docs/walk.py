"""Follows a page as its reader does: writes its files, types its commands, and compares what the terminals show.

- A `python` block with a title is a file of that name.
- A `console` block holds commands, each behind `$ `, and below them what they print. A command that ends badly has to
  be shown doing so: one without output must succeed.
- The title of such a block names another terminal. There, a command that prints something goes on while the reader
  does: its lines are waited for. A block may begin with lines that have come meanwhile, or with `^C`, which ends it.

Two commands have a stand-in, because tests reach no package index: `python3 -m venv` makes an environment without pip,
and `pip install` makes the command of what is installed here already, after checking that it could be installed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.likeness import Likeness
from tests.docs.pages import ROOT, Block, blocks
from tests.docs.terminal import PROMPT, Terminal

#: Without `noflsh`, Ctrl-C throws away output that has not been read yet, at times with the prompt after it.
_SHELL = f"""
stty -echo noflsh
PS1='{PROMPT}'
VIRTUAL_ENV_DISABLE_PROMPT=1
python3() {{
    if [ "$1 $2" = "-m venv" ]; then shift 2; set -- -m venv --without-pip "$@"; fi
    command '{sys.executable}' "$@"
}}
pip() {{ command '{sys.executable}' '{Path(__file__).with_name("pip_stand_in.py")}' "$@"; }}
"""


class Typed(NamedTuple):
    """Something the reader types, and what is on the page below it."""

    command: str
    printed: list[str]


def typed(block: Block) -> list[Typed]:
    """The commands of a block."""
    found: list[Typed] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Typed(line[2:], []))
        elif line == "^C":
            found.append(Typed(line, []))
        else:
            found = found or [Typed("", [])]
            found[-1].printed.append(line)
    return found


class Walk:
    """One reader on one page."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = directory
        """Where files of the page go: into the last directory that a command changed to."""
        self._likeness = Likeness()
        self._terminals: dict[str, Terminal] = {}
        self._closing = contextlib.ExitStack()
        (directory / "terminal.rc").write_text(_SHELL)
        (directory / "holdfast").symlink_to(ROOT)

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def follow(self, page: Path) -> Iterator[str]:
        """Go through the page; what is not as it says, with the lines concerned."""
        for block in blocks(page.read_text("utf-8")):
            where = f"{page.name}:{block.line}"
            if block.language == "python" and block.title:
                (self._files / block.title).write_text(block.text)
            elif block.language == "console":
                for step in typed(block):
                    yield from (f"{where}: $ {step.command}\n{fault}" for fault in self._step(block.title, step))

    def _step(self, title: str, step: Typed) -> Iterator[str]:
        terminal = self._terminal(title)
        command = self._likeness.real(step.command)
        if command.startswith("cd "):
            self._files = self._directory / command.removeprefix("cd ")
        if command == "^C":
            code = terminal.interrupt()
        elif title and step.printed:
            if command:
                terminal.start(command)
            with contextlib.suppress(TimeoutError):
                terminal.wait(lambda: not list(self._likeness.missing(step.printed, terminal.screen.seen)))
            code = 0
        else:
            code = terminal.run(command)
        yield from self._faults(terminal, step, code, hides=not title)

    def _faults(self, terminal: Terminal, step: Typed, code: int, *, hides: bool) -> Iterator[str]:
        shown = "\n".join(terminal.screen.lines).strip("\n")
        seen = [*terminal.screen.seen, *terminal.screen.lines]
        if missing := list(self._likeness.missing(step.printed, seen)):
            yield f"the page shows {missing[0]!r}, the terminal\n{shown}"
        elif code != 0 and not step.printed:
            yield f"ended with {code} and said\n{shown}"
        elif hides and step.printed:
            for line in filter(str.strip, terminal.screen.lines):
                if not any(self._likeness.same(each, line) for each in step.printed):
                    yield f"the page does not show {line!r}"

    def _terminal(self, title: str) -> Terminal:
        if title not in self._terminals:
            kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PYTHON"))}
            terminal = Terminal(self._directory, kept, rcfile=self._directory / "terminal.rc")
            self._terminals[title] = self._closing.enter_context(terminal)
        return self._terminals[title]
