"""Starts modules of the tests, each in a process of its own that is forked after the imports: those take half a second.

`Zygote` is what tests hold; the process itself is `python -m tests.campaign.zygote`. It reads one line of JSON per
question and answers with one. It starts no thread, so that forking is safe; and it ends with whoever started it, at the
end of its input, as do its children with it (`die_with_parent`).
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: What most children import. Not the modules that are run: each of those is loaded in its own process.
COMMON = ("tests.campaign.app", "tests.faults.trial", "tests.transactions.bench", "holdfast.app")


class Zygote:
    """The process that forks, as the tests hold it; safe to ask from any thread."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.campaign.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.pid = self._process.pid
        atexit.register(self._process.communicate)

    def start(self, module: str, arguments: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> int:
        """The pid of a process that runs this module as its main program, in the directory of its log."""
        return int(self._ask("start", module, arguments, str(log), dict(environment)))

    def code(self, pid: int) -> int | None:
        """The exit code of one that has ended, negative for a signal."""
        code = self._ask("code", pid)
        return None if code is None else int(code)

    def send(self, pid: int, number: int) -> None:
        """A signal, unless it has ended; never to another process that has got its pid since."""
        self._ask("send", pid, number)

    def kill(self, pid: int) -> None:
        """kill -9; returns when it has ended."""
        self._ask("kill", pid)

    def _ask(self, verb: str, *arguments: object) -> Any:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            print(json.dumps([verb, *arguments]), file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())


class Nursery:
    """The other end: what is asked for, and the children with the codes of those that have ended."""

    def __init__(self) -> None:
        self._codes: dict[int, int | None] = {}

    def start(self, module: str, arguments: list[str], log: str, environment: dict[str, str]) -> int:
        pid = os.fork()
        if pid == 0:
            raise Born(functools.partial(_live, module, arguments, Path(log), environment))
        self._codes[pid] = None
        return pid

    def code(self, pid: int) -> int | None:
        return self._wait(pid, os.WNOHANG)

    def send(self, pid: int, number: int) -> None:
        if self.code(pid) is None:
            os.kill(pid, number)

    def kill(self, pid: int) -> None:
        self.send(pid, signal.SIGKILL)
        self._wait(pid, 0)

    def _wait(self, pid: int, options: int) -> int | None:
        if self._codes[pid] is None:
            ended, status = os.waitpid(pid, options)
            if ended:
                self._codes[pid] = os.waitstatus_to_exitcode(status)
        return self._codes[pid]


class Born(BaseException):
    """Leads the new process out of all that only its parent has to do."""

    def __init__(self, live: functools.partial[None]) -> None:
        self.live = live


def _live(module: str, arguments: list[str], log: Path, environment: dict[str, str]) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for number, file in enumerate((nothing, output, output)):
        os.dup2(file, number)
    os.close(nothing)
    os.close(output)
    os.chdir(log.parent)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = str(log.parent)  # as `python -m` has it
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main() -> None:
    for name in COMMON:
        importlib.import_module(name)
    gc.freeze()  # what is shared with the children is not to be copied by looking at it
    nursery = Nursery()
    try:
        for line in sys.stdin:
            verb, *arguments = json.loads(line)
            print(json.dumps(getattr(nursery, verb)(*arguments)), flush=True)
    except Born as birth:
        child = birth.live
    else:
        return
    child()  # here, where an end of its own, by whatever exception, is an end of a main program


if __name__ == "__main__":
    main()
