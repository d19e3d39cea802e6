"""kill -9 at every write of a SQLite store: at each statement of its making, and at each write that the kernel sees."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from signal import SIGKILL

import pytest
from tests.campaign.child import Child, environment
from tests.faults import opener
from tests.faults.trial import PATIENCE_S

ALL = bool(os.environ.get("HOLDFAST_TEST_CAMPAIGN"))
#: More than opening takes; the last of them find nothing to kill.
STATEMENTS = range(1, 200) if ALL else range(1, 200, 9)
WRITES = range(1, 60) if ALL else (1, 2, 3, 5, 8, 13, 21, 34)


def _look(directory: Path) -> list[str]:
    """What was accepted and is not there; the file is sound, and opens as before."""
    accepted = directory / "accepted"
    said = accepted.read_text().split() if accepted.exists() else []
    asyncio.run(opener.enqueue(directory))
    with closing(sqlite3.connect(directory / "holdfast.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        there = {row[0].hex() for row in db.execute("SELECT id FROM job")}
    return [job for job in said if job.replace("-", "") not in there]


def test_a_process_killed_at_any_statement_of_the_migration_leaves_a_store_that_opens(tmp_path: Path) -> None:
    async def run() -> int:
        killed = 0
        for statement in STATEMENTS:
            directory = tmp_path / str(statement)
            directory.mkdir()
            child = Child("tests.faults.opener", directory, statement, log=directory / "log")
            code = await child.ended(within_s=PATIENCE_S)
            killed += code == -SIGKILL
            if code == 0:  # there are no more
                break
            assert code == -SIGKILL, (directory / "log").read_text()
        return killed

    assert asyncio.run(run()) > 5
    for directory in tmp_path.iterdir():
        assert _look(directory) == []


@pytest.mark.system
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_a_process_killed_at_any_write_keeps_what_it_has_accepted(call: str, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("SYSTEM TEST NOT RUN: there is no strace")
    killed = 0
    for nth in WRITES:
        directory = tmp_path / str(nth)
        directory.mkdir()
        inject = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
        inject += ["-e", f"inject={call}:signal=KILL:when={nth}"]
        command = [*inject, sys.executable, "-m", "tests.faults.opener", str(directory)]
        ended = subprocess.run(command, env=environment(), capture_output=True, timeout=PATIENCE_S)
        if b"ptrace" in ended.stderr:
            pytest.skip(f"SYSTEM TEST NOT RUN: {ended.stderr.decode()}")
        killed += ended.returncode in (-SIGKILL, 128 + SIGKILL)
        assert _look(directory) == [], f"at the {nth}. {call}"
    assert killed > 1
