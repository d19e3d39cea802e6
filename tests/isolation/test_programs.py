"""Whole programs with isolated tasks: an app in a script, in a package, in the command line; and their violent ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.cli.processes import parent_of
from tests.integration.scene import PATIENCE_S, scene, until, url_of
from tests.isolation.processes import gone

from holdfast import Holdfast
from holdfast.core.state import State

TASKS = """
import asyncio, os, re, sys
from holdfast import Holdfast, current_job

class Apps:
    hf = Holdfast("sqlite:///jobs.db", poll_s=0.05, lease_s=5)

hf = Apps.hf

@hf.task(isolate=True)
async def pid() -> list[object]:
    return [os.getpid(), os.getppid(), __name__, sys.argv[1:]]

@hf.task(isolate=True)
async def hold_the_gil() -> None:
    await current_job().progress(1, 2, str(os.getpid()))
    re.fullmatch("(a+)+b", "a" * 60)

@hf.task(isolate=True)
async def wait() -> None:
    await current_job().progress(1, 2, str(os.getpid()))
    await asyncio.Event().wait()
"""
MAIN = """
if __name__ == "__main__":
    hf.run_worker()
"""


@asynccontextmanager
async def program(directory: Path, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=directory)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize(
    ("file", "words", "task", "module"),
    [
        ("jobs.py", ["jobs.py", "a", "word"], "jobs.pid", "jobs"),
        ("more/odd-name.py", ["more/odd-name.py", "a", "word"], "odd-name.pid", "odd-name"),
        ("shop/jobs.py", ["-m", "shop.jobs", "a", "word"], "shop.jobs.pid", "shop.jobs"),
        ("shop/__main__.py", ["-m", "shop", "a", "word"], "shop.pid", "shop.__main__"),
        ("jobs.py", ["-m", "holdfast", "worker", "jobs:Apps.hf"], "jobs.pid", "jobs"),
    ],
    ids=["script", "script elsewhere", "module", "package", "command line"],
)
@scene
async def test_the_app_is_found_wherever_the_program_has_it(
    tmp_path: Path, file: str, words: list[str], task: str, module: str
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(TASKS + MAIN)
    hf = Holdfast(url_of(tmp_path / "jobs.db"), poll_s=0.05)
    async with hf, program(tmp_path, *words) as worker:
        pid, parent, name, argv = await (await hf.enqueue(task)).result(timeout=PATIENCE_S)
        is_supervised = "holdfast" in words
        assert pid != parent
        assert worker.pid == (parent_of(parent) if is_supervised else parent)
        assert name == module
        assert is_supervised or argv == words[-2:]
        worker.send_signal(signal.SIGTERM)
        assert await worker.wait() == 0
        await gone(pid)


@pytest.mark.parametrize("task", ["wait", "hold_the_gil"])
@scene
async def test_isolates_die_with_their_worker(tmp_path: Path, task: str) -> None:
    (tmp_path / "jobs.py").write_text(TASKS + MAIN)
    hf = Holdfast(url_of(tmp_path / "jobs.db"), poll_s=0.05)
    async with hf, program(tmp_path, "jobs.py") as worker:
        job = await hf.enqueue(f"jobs.{task}")
        isolate = int((await until(job, lambda info: info.stage is not None)).stage or 0)
        os.kill(worker.pid, signal.SIGKILL)
        await gone(isolate)
        assert (await job.info()).state is State.RUNNING  # its lease has to run out first


@scene
async def test_a_program_that_was_typed_in_is_told_what_to_do(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", TASKS + "hf.run_worker()", cwd=tmp_path, stderr=asyncio.subprocess.PIPE
    )
    _, said = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 1
    assert "ConfigError: a task has isolate=True" in said.decode()
    assert "Put it into a file" in said.decode()
