"""Child processes of tests: they tell how they ended, and none outlives the process that runs the tests."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.campaign.child import Child, environment, tail_of

PATIENCE_S = 30.0
SLEEPER = """
import signal, sys
from tests.campaign.child import die_with_parent

die_with_parent()
print(sys.argv[1], flush=True)
{then}
"""
#: A process that runs a test, which has a child.
RUNNER = """
from pathlib import Path
from tests.campaign.child import Child

print(Child("sleeper", "here", log=Path("child.log")).pid, flush=True)
input()
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module for children: they find it where their log is, as their own directory."""
    return tmp_path / "sleeper.py"


def start(module: Path, then: str) -> Child:
    module.write_text(SLEEPER.format(then=then))
    return Child("sleeper", "ready", log=module.parent / "child.log")


def await_end(child: Child) -> int:
    gone = os.pidfd_open(child.pid)
    try:
        assert select.select([gone], [], [], PATIENCE_S)[0], tail_of(child.log)
    finally:
        os.close(gone)
    code = child.code
    assert code is not None
    return code


@pytest.mark.parametrize(
    ("then", "code"),
    [("", 0), ("sys.exit(3)", 3), ("1 / 0", 1), ("signal.raise_signal(signal.SIGTERM)", -signal.SIGTERM)],
)
def test_it_runs_as_a_main_program_and_its_end_is_told(module: Path, then: str, code: int) -> None:
    child = start(module, then)
    assert await_end(child) == code
    assert child.code == code, "it is not forgotten"
    assert child.log.read_text().startswith("ready\n")
    child.signal(signal.SIGTERM)  # whoever has got its pid since must not have it
    child.kill()


def test_a_stopped_one_is_killed_and_collected(module: Path) -> None:
    child = start(module, "signal.pause()")
    child.signal(signal.SIGSTOP)
    child.kill()
    assert child.code == -signal.SIGKILL


def test_it_does_not_outlive_a_killed_test_run(tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER.format(then="signal.pause()"))
    command = [sys.executable, "-c", RUNNER]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runner:
        assert runner.stdout is not None
        child = os.pidfd_open(int(runner.stdout.readline()))
        try:
            runner.kill()
            assert select.select([child], [], [], PATIENCE_S)[0], "it lives on"
        finally:
            os.close(child)
