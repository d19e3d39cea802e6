"""An app whose tasks run in processes of their own; tests import it, and so do those processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from holdfast import (
    PROVIDED,
    Breaker,
    Holdfast,
    PermanentError,
    Provide,
    RetryLater,
    RetryPolicy,
    SoftTimeout,
    current_job,
)
from holdfast.core.defaults import TaskDefaults
from holdfast.worker.middleware import CallNext

ONCE = RetryPolicy(max_attempts=1)


async def lifespan(app: Holdfast) -> AsyncIterator[str]:
    yield f"lived in {os.getpid()}"


hf = Holdfast(":memory:", defaults=TaskDefaults(isolate=True, retry=ONCE), lifespan=lifespan, poll_s=0.05)
started_in: list[int] = []


@hf.on_startup
def note_start() -> None:
    if broken := os.environ.get("HOLDFAST_TEST_BROKEN_START"):
        Path(broken).read_text()  # raises until a test has made the file
    started_in.append(os.getpid())


@hf.middleware
async def surround(job: Any, call_next: CallNext) -> Any:
    result = await call_next()
    return [result, os.getpid()] if job.task.endswith("surrounded") else result


def connection() -> str:
    return f"made in {os.getpid()}"


@hf.task
async def pid() -> int:
    return os.getpid()


@hf.task(isolate=False)
async def pid_of_worker() -> int:
    return os.getpid()


@hf.task
def pid_in_thread() -> tuple[int, bool]:
    return os.getpid(), threading.current_thread() is threading.main_thread()


@hf.task
async def add(a: int, b: int = 1) -> int:
    return a + b


@hf.task
async def nap(for_s: float) -> None:
    await asyncio.sleep(for_s)


@hf.task
async def surrounded() -> int:
    return os.getpid()


@hf.task
async def provided(
    made: Annotated[str, Provide(connection)] = PROVIDED, lived: Annotated[str, Provide(lifespan)] = PROVIDED
) -> list[Any]:
    return [os.getpid(), made, lived, started_in]


@hf.task
async def fail(how: str) -> None:
    match how:
        case "later":
            raise RetryLater(after=3600)
        case "permanently":
            raise PermanentError("never")
        case _:
            raise LookupError(how)


@hf.task
async def unlike_json() -> Any:
    return threading.Lock()


@hf.task
async def long_text(length: int) -> str:
    return "x" * length


async def told(stage: str | None = None) -> None:
    await current_job().progress(1, 2, stage or str(os.getpid()))


@hf.task
async def wait() -> None:
    await told()
    await asyncio.Event().wait()


@hf.task(soft_timeout=0.05, timeout=30)
async def tidy() -> str:
    try:
        await asyncio.Event().wait()
    except SoftTimeout:
        return "tidied up"
    return "not reached"


@hf.task
async def spin() -> None:
    await told()
    while True:
        pass


@hf.task
async def backtrack() -> None:
    """In C code that holds the GIL: no thread of this process does anything any more."""
    await told()
    re.fullmatch(r"(a+)+b", "a" * 60)


@hf.task
def sleep_in_thread() -> None:
    try:
        current_job().progress_from_thread(1, 2, str(os.getpid()))
        time.sleep(3600)
    except BaseException:  # interrupted before it slept: what is asked for is a call that cannot be
        time.sleep(3600)


@hf.task
def look_in_thread() -> str:
    current_job().progress_from_thread(1, 2, str(os.getpid()))
    while not current_job().cancelled:
        time.sleep(0.005)
    raise asyncio.CancelledError


@hf.task
async def swallow() -> None:
    await told()
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@hf.task
async def with_child() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    await told(f"{os.getpid()} {child.pid}")
    await asyncio.Event().wait()


@hf.task
async def die(how: str) -> None:
    match how:
        case "exit":
            os._exit(3)
        case "hang up":
            os.close(int(sys.orig_argv[-1]))
        case "babble":
            os.write(int(sys.orig_argv[-1]), b"no JSON\n")
            await asyncio.Event().wait()
        case "lie":
            os.write(int(sys.orig_argv[-1]), b'{"ended": "retry", "delay_s": "soon"}\n')
            await asyncio.Event().wait()
        case _:
            os.kill(os.getpid(), getattr(signal, how))
            await asyncio.Event().wait()


@hf.task
async def until_there(path: str) -> str:
    await told()
    while not Path(path).exists():
        await asyncio.sleep(0.005)
    return "there"


@hf.task(isolate=False)
async def until_there_in_worker(path: str) -> str:
    while not Path(path).exists():
        await asyncio.sleep(0.005)
    return "there"


@hf.task(isolate=False)
async def block_while_alive(pid: int) -> list[bool]:
    """Blocks the event loop of its worker until that process has ended: whether it was there, and whether it ended."""
    with contextlib.ExitStack() as stack:
        descriptor = os.pidfd_open(pid)
        stack.callback(os.close, descriptor)
        watch = select.poll()
        watch.register(descriptor, select.POLLIN)
        return [not watch.poll(0), bool(watch.poll(20_000))]


@hf.task
async def enqueue_more() -> str:
    return str((await add.enqueue(40, b=2)).id)


@hf.task
async def pay(then: str) -> None:
    job = current_job()
    async with job.transaction() as connection:
        await connection.execute("INSERT INTO payment VALUES ($1)", str(job.id))
        job.finish("paid")
    if then == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if then == "fail":
        raise ValueError("too late to matter")


@hf.task(breaker=Breaker("bank", failures=1, open_for=0.05))
async def charge(down: bool) -> str:
    if down:
        raise ConnectionRefusedError
    return "charged"


@hf.task(breaker=Breaker("slow bank", failures=1, open_for=3600), timeout=0.2)
def hang() -> None:
    threading.Event().wait()
