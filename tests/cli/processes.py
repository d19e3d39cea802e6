"""Runs the command line as a user does: as a process of its own, on pipes or on a pseudo-terminal."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import holdfast

SOURCES = str(Path(holdfast.__file__).parents[1])
COMMAND = [sys.executable, "-m", "holdfast"]
PATIENCE_S = 30.0
#: A worker that stands by costs a start that hardly any test is about.
SPARELESS = {"HOLDFAST_SPARES": "0"}

SHOP = """
import asyncio
from pathlib import Path
from holdfast import Holdfast, PermanentError, current_job

hf = Holdfast("sqlite:///jobs.db", lease_s=5)
number = 5

@hf.task
async def add(a: int, b: int = 1) -> int:
    return a + b

@hf.task(queue="bank")
async def charge(customer: str, cents: int = 0) -> str:
    if cents <= 0:
        raise PermanentError(f"{cents} cents \\x1b[31m\\tcannot be charged")
    return f"{customer} paid {cents}"

@hf.task
async def rows(count: int) -> int:
    for row in range(1, count + 1):
        await current_job().progress(row, count, stage="reading")
        while not Path(f"go-{row}").exists():
            await asyncio.sleep(0.01)
    return count
"""


class Ended(NamedTuple):
    """What a process said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def environment(**more: str) -> dict[str, str]:
    """Ours, without what would change the output."""
    dropped = ("HOLDFAST_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {"PYTHONPATH": SOURCES, "PYTHONWARNINGS": "error", "TERM": "xterm-256color"} | more


def hold(*words: str, cwd: Path, **env: str) -> Ended:
    """One command, on files in place of a terminal, in a process that was forked from one with all its imports."""
    zygote = _zygote()
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    with patience(zygote):
        zygote.stdin.write(json.dumps([words, str(cwd), environment(**env)]) + "\n")
        zygote.stdin.flush()
        return Ended(*json.loads(zygote.stdout.readline()))


def hold_alone(*words: str, cwd: Path, **env: str) -> Ended:
    """One command, on pipes, in a process of its own from the start."""
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@functools.cache
def _zygote() -> subprocess.Popen[str]:
    """One per process that runs tests; it ends with that one, at the end of its input."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("zygote.py"))],
        env=environment(),
        stdin=pipe,
        stdout=pipe,
        text=True,
    )
    atexit.register(process.communicate)
    return process


@contextlib.contextmanager
def patience(process: subprocess.Popen[Any], seconds: float = PATIENCE_S) -> Iterator[None]:
    """A process that hangs is killed: its test fails by what is missing, and tells what it said until then."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def on_terminal(
    *words: str, cwd: Path, width: int = 120, answers: Sequence[tuple[str, str | Path]] = (), **env: str
) -> Ended:
    """One command on a pseudo-terminal; `answers`: wait for this text, then type that, or make that file."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=cwd,
        env=environment(**env),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        preexec_fn=_own_terminal,
    )
    os.close(slave)
    said = b""
    todo = list(answers)
    try:
        with patience(process):
            while chunk := _read(master):
                said += chunk
                if todo and todo[0][0] in said.decode("utf-8", "replace"):
                    match todo.pop(0)[1]:
                        case str() as keys:
                            os.write(master, keys.encode())
                        case Path() as file:
                            file.touch()
        return Ended(process.wait(PATIENCE_S), said.decode().replace("\r\n", "\n"), "")
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _own_terminal() -> None:
    """So that Ctrl-C, typed into the terminal, reaches the process as it does from a shell."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # Linux says so when the last user of a terminal has gone
        return b""


@contextlib.contextmanager
def working(cwd: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A worker process on the shop, ready to work; told to stop at the end."""
    with starting(cwd, "shop:hf", *words) as process:
        await_line(process, "started")
        yield process


@contextlib.contextmanager
def starting(cwd: Path, *words: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """A worker process; told to stop at the end, which it has to do well."""
    command = [*COMMAND, "worker", *words]
    with subprocess.Popen(
        command, cwd=cwd, env=environment(**SPARELESS, **env), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            with patience(process, 2 * PATIENCE_S):
                yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def await_line(process: subprocess.Popen[str], part: str) -> str:
    """The next line of its log that has this in it."""
    assert process.stderr is not None
    for line in process.stderr:
        if part in line:
            return line
    raise AssertionError(f"it ended without {part!r}")


def parent_of(pid: int) -> int:
    """The process that started this one."""
    return int(Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[1])
