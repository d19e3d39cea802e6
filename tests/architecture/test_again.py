"""A test that failed is asked once more, alone; what that can hide is bounded, and named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNSTEADY = """
from pathlib import Path

def test_passes_the_second_time():
    seen = Path("seen")
    assert seen.exists() or seen.touch()
"""
BROKEN = "\ndef test_fails_{n}():\n    assert False\n"


def _run(here: Path, *command: str) -> subprocess.CompletedProcess[str]:
    # Whatever else is installed for pytest: importing it is most of such a run, and nothing here needs it.
    alone = {"PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | alone
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=here, env=environment, capture_output=True, text=True, check=False
    )


def _whole_run(here: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (here / "pytest.ini").write_text("[pytest]\n")
    (here / "test_it.py").write_text(tests)
    first = _run(here, "pytest", "-q", "--cache-clear", "test_it.py")
    return _run(here, "tests.again", str(first.returncode))


def test_one_that_passes_alone_is_named_and_stops_nothing(tmp_path: Path) -> None:
    ended = _whole_run(tmp_path, UNSTEADY)
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[-2].startswith("UNSTEADY")
    assert ended.stdout.splitlines()[-1] == "  test_it.py::test_passes_the_second_time"


def test_one_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    ended = _whole_run(tmp_path, UNSTEADY + BROKEN.format(n=1))
    assert ended.returncode == 1
    assert "UNSTEADY" not in ended.stdout


def test_many_are_not_asked_again(tmp_path: Path) -> None:
    ended = _whole_run(tmp_path, "".join(BROKEN.format(n=n) for n in range(4)))
    assert (ended.returncode, ended.stdout) == (1, "")


@pytest.mark.parametrize("code", [2, 3, 4, 5])
def test_a_run_that_did_not_end_is_not_repeated(tmp_path: Path, code: int) -> None:
    _run(tmp_path, "pytest", "-q", "--rootdir=.", "--cache-clear", ".")
    assert _run(tmp_path, "tests.again", str(code)).returncode == code
