"""A terminal as the reader of a page has it: a shell that is typed into, and a screen that shows what it prints."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_PATIENCE_S = 60.0
_COLUMNS = 120
#: What the shell says when it waits for a command: the exit code of the one before.
PROMPT = "<ready $?>"
_PROMPT = re.compile(r"<ready (\d+)>$")
_CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+|\x1b")


class Screen:
    """Lines of text, as far as our commands use what terminals can do: to go up a line, and to wipe one."""

    def __init__(self) -> None:
        self.lines = [""]
        self.seen: list[str] = []
        """Every line that was ever shown, also one that was overwritten."""
        self._row = 0
        self._overwrites = False
        self._noted = False

    def show(self, text: str) -> None:
        for found in _CONTROL.finditer(text):
            part, count, letter = found[0], found[1], found[2]
            if part == "\n":
                self._note()
                self._row += 1
                self._overwrites = False
                if self._row == len(self.lines):
                    self.lines.append("")
            elif part == "\r":
                self._overwrites = True
            elif letter == "A":
                self._row = max(0, self._row - int(count or 1))
            elif letter == "K":
                self._wipe()
            elif not part.startswith("\x1b"):
                if self._overwrites:
                    self._wipe()
                self.lines[self._row] += part
                self._overwrites = self._noted = False

    def _wipe(self) -> None:
        self._note()
        self.lines[self._row] = ""

    def _note(self) -> None:
        if self.lines[self._row] and not self._noted:
            self.seen.append(self.lines[self._row])
        self._noted = True


class Terminal:
    """A shell on a pseudo-terminal of its own; at the end, whatever still runs in it is ended."""

    def __init__(self, cwd: Path, environment: Mapping[str, str], *, rcfile: Path) -> None:
        self.screen = Screen()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, _COLUMNS, 0, 0))
        self._shell = subprocess.Popen(
            ["bash", "--noediting", "--rcfile", str(rcfile), "-i"],
            cwd=cwd,
            env={**environment, "TERM": "xterm", "NO_COLOR": "1"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(slave)
        self._prompted()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        """Hang up, as closing its window does: the shell passes it on to whatever still runs in it."""
        os.close(self._master)
        try:
            self._shell.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()
            raise

    def run(self, command: str) -> int:
        """Type a command and wait until it has ended; its exit code. The screen then has its output alone."""
        self.start(command)
        return self._prompted()

    def start(self, command: str) -> None:
        """Type a command and let it run, on a clean screen."""
        self.screen = Screen()
        os.write(self._master, command.encode() + b"\n")

    def interrupt(self) -> int:
        """Press Ctrl-C and wait until the command has ended; its exit code."""
        os.write(self._master, b"\x03")
        return self._prompted()

    def wait(self, until: Callable[[], bool]) -> None:
        """Take in what is printed until that is so."""
        deadline = time.monotonic() + _PATIENCE_S
        while not until():
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._master], [], [], left)[0]:
                raise TimeoutError("\n".join(self.screen.lines))
            self.screen.show(self._decoder.decode(os.read(self._master, 65536)))

    def _prompted(self) -> int:
        self.wait(lambda: _PROMPT.search(self.screen.lines[-1]) is not None)
        prompt = _PROMPT.search(self.screen.lines[-1])
        assert prompt is not None
        self.screen.lines[-1] = self.screen.lines[-1][: prompt.start()]
        return int(prompt[1])


def _own_terminal() -> None:
    """In the new process: the terminal is its own, and means something to it even where we ignore such signals."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)
