"""Starts a Python process as a user would, in a directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT


def environment() -> dict[str, str]:
    """Ours, without settings that would change what the documentation shows."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return kept | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "error"}


def run_python(*arguments: str, cwd: Path) -> str:
    """What it prints; fails the test with all that it said when it does not end well."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{' '.join(arguments)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
