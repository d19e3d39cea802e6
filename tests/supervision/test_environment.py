"""A system without processes, threads or room for temporary files to give: it degrades, says so, and recovers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.integration.scene import scene
from tests.supervision.crew import PATIENCE_S, Crew, manned

from holdfast import JobInfo

MakeCrew = Callable[..., Crew]

PIDS = Path("/sys/fs/cgroup/pids")


class Interpreter:
    """A Python of this test's own, that can be taken away from those who want to start it."""

    def __init__(self, place: Path) -> None:
        self.path = place / "own" / "bin" / "python"
        self.path.parent.mkdir(parents=True)
        (place / "own" / "lib").symlink_to(Path(sys.prefix) / "lib")
        home = f"home = {Path(sys._base_executable).parent}\n"  # type: ignore[attr-defined]
        (place / "own" / "pyvenv.cfg").write_text(home)
        self.give_back()

    def give_back(self) -> None:
        self.path.symlink_to(sys._base_executable)  # type: ignore[attr-defined]

    def take_away(self) -> None:
        self.path.unlink()


@scene
async def test_while_no_process_can_be_started_it_goes_on_with_those_it_has(make_crew: MakeCrew) -> None:
    crew = make_crew()
    python = Interpreter(crew.place)
    crew.program = (str(python.path), "-m", "holdfast")
    async with manned(crew, "--processes", "2"):
        job = await crew.enqueue("hold", "go")
        [busy] = await crew.until_noted("holds go")
        await crew.until_logged("started, ", 2)
        [other] = set(crew.children()) - {busy.pid}
        python.take_away()
        crew.kill(other)
        first, second = [await crew.until_logged("another one is started in", times) for times in (1, 2)]
        assert "no process could be started: [Errno 2]" in first
        assert _pause_s(second) > 0
        assert await crew.result(await crew.enqueue("add", 1, 2)) == 3, "the other process works"
        python.give_back()
        await crew.until(lambda: len(crew.children()) == 2)
        crew.let_go("go")
        assert await crew.result(job) == busy.pid


@scene
async def test_while_no_isolate_can_be_started_its_jobs_wait_and_others_run(make_crew: MakeCrew) -> None:
    crew = make_crew()
    python = Interpreter(crew.place)
    crew.program, crew.app = (str(python.path), "-m", "holdfast"), "manned_isolated"
    async with manned(crew):
        isolate = await crew.result(await crew.enqueue("pid_of_isolate"))
        python.take_away()
        os.kill(isolate, signal.SIGKILL)
        job = await crew.enqueue("pid_of_isolate")
        assert "could not be started: [Errno 2]" in await crew.until_logged("no process for isolated tasks could be")
        assert await crew.result(await crew.enqueue("add", 1, 2)) == 3, "what needs none runs"
        python.give_back()
        assert await crew.result(job) != isolate
        _only_handed_back(await job.info())


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A group of processes whose number can be limited."""
    place = PIDS / f"holdfast-test-{uuid4().hex[:8]}"
    try:
        place.mkdir()
    except OSError as error:
        pytest.skip(f"SYSTEM TEST NOT RUN: cannot make a cgroup of the controller pids: {error}")
    yield place
    deadline = time.monotonic() + PATIENCE_S
    while (place / "cgroup.procs").read_text() and time.monotonic() < deadline:
        time.sleep(0.02)  # until the last of its processes has been collected
    place.rmdir()


@pytest.mark.system
@pytest.mark.parametrize(
    ("room", "says"),
    [
        (0, "no process could be started: "),
        (1, "exited with code 70 before it was ready"),  # nobody needs a thread to wait for it
    ],
    ids=["no process", "a process without threads"],
)
@scene
async def test_where_the_system_forks_no_more_it_says_so_and_recovers(
    make_crew: MakeCrew, cgroup: Path, room: int, says: str
) -> None:
    async with manned(make_crew(), "--processes", "2") as crew:
        job = await crew.enqueue("hold", "go")
        [busy] = await crew.until_noted("holds go")
        await crew.until_logged("started, ", 2)
        (cgroup / "cgroup.procs").write_text(str(crew.pid))
        [other] = set(crew.children()) - {busy.pid}
        (cgroup / "pids.max").write_text(str(int((cgroup / "pids.current").read_text()) + room))
        crew.kill(other)
        told = await crew.until_logged("another one is started in", 2)
        assert says in told
        assert await crew.result(await crew.enqueue("add", 1, 2)) == 3, "the other process works"
        (cgroup / "pids.max").write_text("max")
        await crew.until(lambda: len(crew.children()) == 2)
        crew.let_go("go")
        assert await crew.result(job) == busy.pid
        crew.send(signal.SIGTERM)
        assert await crew.ended() == 0


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory in which nothing more can be written."""
    disk = tmp_path / "full"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"SYSTEM TEST NOT RUN: cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.system
@scene
async def test_a_full_temporary_directory_keeps_nobody_from_working(make_crew: MakeCrew, full_disk: Path) -> None:
    """Boards are memory without a file, and nothing else of a worker needs temporary files: deaths and isolates too."""
    crew = make_crew()
    crew.variables = dict.fromkeys(("TMPDIR", "TEMP", "TMP", "SQLITE_TMPDIR"), str(full_disk))
    crew.app = "manned_isolated"
    async with manned(crew):
        first = await crew.result(await crew.enqueue("pid_of_isolate"))
        os.kill(first, signal.SIGKILL)
        job = await crew.enqueue("hold", "go")
        [holder] = await crew.until_noted("holds go")
        crew.kill(holder.pid)
        [_, again] = await crew.until_noted("holds go", 2)
        crew.let_go("go")
        assert await crew.result(job) == again.pid != holder.pid
        assert await crew.result(await crew.enqueue("pid_of_isolate")) != first
        crew.send(signal.SIGTERM)
        assert await crew.ended() == 0


def _pause_s(line: str) -> float:
    return float(line.partition("another one is started in ")[2].split()[0])


def _only_handed_back(info: JobInfo) -> None:
    assert info.attempt == 1, "not charged"
    assert {each.cause for each in info.attempts} <= {"handed_back"}
