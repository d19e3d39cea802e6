"""What a type checker tells users: good calls pass mypy --strict, each bad one is an error on its line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
GOOD, BAD = HERE / "good_calls.py", HERE / "bad_calls.py"
_ERROR = re.compile(r"^(?P<file>.+?):(?P<line>\d+): error: .*  \[(?P<code>[\w-]+)\]$", re.MULTILINE)


def test_good_calls_pass_and_bad_ones_are_errors_where_they_stand(tmp_path: Path) -> None:
    """One test, because one run of mypy answers for all.

    In a process of its own: here, mypy would leave millions of objects behind, and every later test that collects
    garbage would look at all of them, for a second each.
    """
    options = ["--strict", "--config-file=", "--no-pretty", f"--cache-dir={tmp_path}"]
    mypy = [sys.executable, "-m", "mypy", *options, GOOD, BAD]
    ended = subprocess.run(mypy, capture_output=True, text=True, timeout=100)
    said = ended.stdout
    assert not ended.stderr
    bad = BAD.read_text("utf-8").splitlines()
    wanted = {(BAD.name, f"{n}: {line}"): line.split("# E: ")[1] for n, line in enumerate(bad, 1) if "  # E: " in line}
    found = {
        (Path(error["file"]).name, f"{error['line']}: {_line(error)}"): error["code"] for error in _ERROR.finditer(said)
    }
    assert len(wanted) > 40
    assert found == wanted, said


def _line(error: re.Match[str]) -> str:
    return Path(error["file"]).read_text("utf-8").splitlines()[int(error["line"]) - 1]
