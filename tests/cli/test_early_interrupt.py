"""Ctrl-C while the command is still importing what it needs: it ends quietly, with the code that scripts know."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.processes import PATIENCE_S, SOURCES, environment

from holdfast.cli.exits import Exit
from holdfast_command import INTERRUPTED

#: The interpreter runs this first. It presses Ctrl-C at the moment when a module begins to be imported.
SITE = """
import os, signal, sys

class Finger:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            print("pressed", flush=True)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finger())
"""

#: What the installed command does.
COMMAND = "import sys; from holdfast_command import run; sys.exit(run())"

#: From the first to the last: the package itself, what it stands on, the command line and what it is made with.
MOMENTS = ["typing", "holdfast", "pydantic", "asyncio", "holdfast.cli.main", "typer", "rich", "holdfast.cli.commands"]


def interrupted(moment: str, directory: Path, *words: str, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    (directory / "sitecustomize.py").write_text(SITE, "utf-8")
    paths = {"PYTHONPATH": f"{directory}:{SOURCES}", "INTERRUPTED_AT": moment}
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        cwd=directory,
        env=environment() | paths,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignored else None,
    )


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_during_the_imports_ends_it_quietly(moment: str, tmp_path: Path) -> None:
    ended = interrupted(moment, tmp_path, "--version")
    assert (ended.returncode, ended.stdout, ended.stderr) == (Exit.INTERRUPTED, "pressed\n", "")


def test_who_ignores_ctrl_c_goes_on(tmp_path: Path) -> None:
    """As a shell starts what it puts into the background."""
    ended = interrupted("typer", tmp_path, "--version", ignored=True)
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[1].startswith("holdfast ")


def test_it_knows_the_code_before_the_list_of_codes_is_there() -> None:
    assert INTERRUPTED == Exit.INTERRUPTED
