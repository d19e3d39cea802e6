"""What the command line costs those who do not use it, what it says where its parts are missing, completion."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.architecture.sources import ROOT
from tests.cli.processes import PATIENCE_S, environment, hold, hold_alone

from holdfast import __version__
from holdfast.cli.main import run


def python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S)


def test_the_library_does_not_import_the_command_line(tmp_path: Path) -> None:
    ended = python(
        "import sys, holdfast; print({'typer', 'rich', 'watchfiles', 'holdfast.cli'} & set(sys.modules))", tmp_path
    )
    assert ended.stdout == "set()\n", ended


@pytest.mark.parametrize("missing", ["typer", "rich", "watchfiles"])
def test_without_the_extra_it_says_what_to_install(missing: str, tmp_path: Path) -> None:
    ended = python(f"import sys; sys.modules['{missing}'] = None; import holdfast.cli.main", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "  try: pip install 'holdfast[cli]'"
    assert "Traceback" not in ended.stderr


def test_the_entry_point_is_what_python_runs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {"holdfast": f"{run.__module__}:{run.__name__}"}


def test_it_tells_its_version(tmp_path: Path) -> None:
    assert hold_alone("--version", cwd=tmp_path).out == f"holdfast {__version__}\n"


def test_shells_are_told_how_to_complete(tmp_path: Path) -> None:
    ended = hold(cwd=tmp_path, _HOLDFAST_COMPLETE="complete_bash", COMP_WORDS="holdfast jobs ", COMP_CWORD="2")
    assert ended.out.split() == ["list", "show", "explain", "cancel", "retry", "wait"]
