"""The app of these tests, as worker processes import it: tasks that hang, crash, block and wait to be let go.

It stays in one place; where its store is and where it writes what happened comes by the environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

from holdfast import Breaker, Holdfast, RetryPolicy, current_job

HERE = Path(os.environ["MANNED_PLACE"])
hf = Holdfast(**json.loads(os.environ["MANNED_SETTINGS"]))
ONCE = RetryPolicy(max_attempts=1)
AGAIN = RetryPolicy(max_attempts=2, base=0.0, cap=0.0)


def note(what: str) -> None:
    """One line that is there also when this process dies right after it."""
    line = json.dumps({"job": str(current_job().id), "pid": os.getpid(), "what": what, "at_s": time.monotonic()}) + "\n"
    with (HERE / "runs").open("a", encoding="utf-8") as file:
        file.write(line)


def runs(what: str) -> int:
    """How often that was noted so far, by anybody."""
    path = HERE / "runs"
    return path.read_text("utf-8").count(f'"what": "{what}"') if path.exists() else 0


async def told(name: str) -> None:
    """Until the test has made this file."""
    while not (HERE / name).exists():
        await asyncio.sleep(0.05)


@hf.on_startup
def fail_to_start() -> None:
    if (HERE / "broken").exists():
        sys.exit("it is broken")


@hf.task
async def add(a: int, b: int) -> int:
    note("added")
    return a + b


@hf.task(timeout=None)
async def hold(name: str) -> int:
    """Runs until it is let go; says in which process it was then."""
    note(f"holds {name}")
    await told(name)
    return os.getpid()


@hf.task(timeout=None)
async def die(how: str) -> None:
    """Kills its process, the first time: `exit`, `segfault` or the name of a signal."""
    note("dies")
    if runs("dies") > 1:
        return
    match how:
        case "exit":
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case _:
            os.kill(os.getpid(), signal.Signals[how])
            time.sleep(60)


@hf.task(timeout=None)
async def hold_alone(name: str) -> int:
    """Kills its process twice, so that it has to run alone; then it runs until it is let go."""
    note("comes")
    if runs("comes") <= 2:
        os._exit(1)
    note(f"holds {name}")
    await told(name)
    return os.getpid()


@hf.task(timeout=None)
async def poison(neighbours: int) -> None:
    """Kills its process every time, the first two times together with all its neighbours."""
    note("poison")
    times = runs("poison")
    while times <= 2 and runs("innocent") < neighbours * times:
        await asyncio.sleep(0.05)
    (HERE / f"poison-{times}").touch()
    os._exit(1)


@hf.task(timeout=None)
async def innocent() -> str:
    """Runs beside the poison until that has killed its process twice."""
    note("innocent")
    await told("poison-2")
    return "well"


@hf.task(timeout=None)
def hold_a_thread(name: str) -> None:
    """Runs in a thread until it is let go."""
    note("holds a thread")
    while not (HERE / name).exists():
        time.sleep(0.01)


@hf.task(timeout=0.2, retry=AGAIN)
async def blocks() -> None:
    """Blocks the event loop."""
    note("blocks")
    time.sleep(3600)


BANK = Breaker("bank", failures=1, window=60, open_for=3600)


@hf.task(timeout=0.2, retry=ONCE, breaker=BANK)
async def waits_for_the_bank() -> None:
    """Blocks the event loop until its process is killed for it."""
    time.sleep(3600)


@hf.task(timeout=0.2, retry=ONCE, breaker=BANK)
def waits_for_the_bank_in_a_thread() -> None:
    """The same in a thread, out of reach of any interruption."""
    ctypes.PyDLL(None).sleep(3600)


@hf.task(timeout=60, retry=ONCE, breaker=BANK)
async def dies_at_the_bank() -> None:
    """Dies, which says nothing about the bank."""
    os.kill(os.getpid(), signal.SIGKILL)


@hf.task(timeout=None)
async def blocks_until(name: str) -> None:
    """The same, until it is let go."""
    while not (HERE / name).exists():
        time.sleep(0.01)


@hf.task(timeout=0.2, retry=AGAIN)
async def swallows() -> None:
    """Does not let itself be cancelled."""
    note("swallows")
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


@hf.task(timeout=0.2, retry=AGAIN)
async def keeps_the_gil() -> None:
    """A loop in C that lets no other thread run."""
    note("keeps_the_gil")
    re.fullmatch("(a*)*b", "a" * 40)


@hf.task(timeout=0.2, retry=AGAIN)
def sticks() -> None:
    """A thread in a call that nothing interrupts."""
    note("sticks")
    ctypes.CDLL(None).sleep(3600)


@hf.task(timeout=None, retry=ONCE)
async def keeps_the_gil_for_ever() -> None:
    """The same without a limit, once."""
    note("keeps_the_gil_for_ever")
    if runs("keeps_the_gil_for_ever") == 1:
        re.fullmatch("(a*)*b", "a" * 40)
