"""What the command line costs those who do not use it, what it says where its parts are missing, completion."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.architecture.sources import ROOT
from tests.cli.processes import PATIENCE_S, environment, hold_alone

from holdfast import __version__
from holdfast.cli.demo.tasks_file import PLACES
from holdfast_command import run


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


def test_the_wheel_brings_the_demonstrations_tasks_where_they_are_looked_for() -> None:
    """And both places hold what is not to be imported: one is no name, the other no package of ours."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "src/holdfast_command.py" in wheel["packages"], "the command would not be there"
    shipped, original = PLACES
    assert wheel["force-include"] == {
        original.relative_to(ROOT).as_posix(): shipped.relative_to(ROOT / "src").as_posix(),
    }
    assert not shipped.parent.name.isidentifier()
    assert original.is_file()


def test_it_tells_its_version(tmp_path: Path) -> None:
    assert hold_alone("--version", cwd=tmp_path).out == f"holdfast {__version__}\n"


#: (what stands on the command line, what can come in its last place)
COMPLETIONS = {
    "holdfast ": ["worker", "enqueue", "workers", "migrate", "doctor", "jobs", "dead", "queues"],
    "holdfast jobs ": ["list", "show", "explain", "cancel", "move", "retry", "wait"],
    "holdfast worker --rel": ["--reload", "--reload-dir"],
    "holdfast jobs list --state re": ["ready"],
}


def test_a_shell_completes_commands_options_and_states(tmp_path: Path) -> None:
    script = """
        complete_line() {
            COMP_WORDS=($1); [ "${1: -1}" = " " ] && COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _holdfast_completion holdfast; echo "${COMPREPLY[@]}"
        }
        eval "$(holdfast --show-completion)"
        for line in "$@"; do complete_line "$line"; done
    """
    ended = bash(script, *COMPLETIONS, home=tmp_path)
    found = dict(zip(COMPLETIONS, map(str.split, ended.stdout.splitlines()), strict=True))
    assert found.keys() == COMPLETIONS.keys()
    assert {line: sorted(words) for line, words in found.items() if line != "holdfast "} == {
        line: sorted(words) for line, words in COMPLETIONS.items() if line != "holdfast "
    }
    assert set(COMPLETIONS["holdfast "]) <= set(found["holdfast "])


def test_completion_is_installed_where_the_shell_finds_it(tmp_path: Path) -> None:
    ended = bash("holdfast --install-completion; . ~/.bashrc; complete -p holdfast", home=tmp_path)
    assert ended.stdout.splitlines()[-1] == "complete -o default -F _holdfast_completion holdfast", ended


def bash(script: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """A script of a shell that has `holdfast` on its path, and a home of its own."""
    command = home / "bin" / "holdfast"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m holdfast "$@"\n', "utf-8")
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *arguments],
        cwd=home,
        env=environment(HOME=str(home), PATH=path),
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,  # it starts a process for every line
    )
