"""The unit file of the guide on deploying is one that systemd takes, and fits Holdfast's own settings and commands."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs.generate import command_paths
from tests.docs.pages import ROOT, blocks

from holdfast.config import Config
from holdfast.core.urls import sqlite_path

PAGE = (ROOT / "docs" / "guides" / "deploying.md").read_text("utf-8")
FILES = {Path(block.title).name: block.text for block in blocks(PAGE) if block.title}
UNIT = FILES["shop-worker@.service"]
COMMANDS = re.findall(r"^ExecStart(?:Pre)?=/srv/shop/\.venv/bin/holdfast (.+)$", UNIT, re.MULTILINE)


def service() -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))  # systemd lets a key come several times
    parser.read_string(UNIT)
    return parser["Service"]


def settings() -> Config:
    """What the worker reads: the environment file over the defaults."""
    lines = FILES["holdfast.env"].splitlines()
    return Config.load(environ=dict(line.split("=", 1) for line in lines))


def test_a_worker_has_time_to_drain_and_then_to_hand_back_and_shut_down() -> None:
    grace_s = settings().grace_s
    assert service().getfloat("TimeoutStopSec") >= grace_s + 10
    assert f"get grace_s ({grace_s:g} s) to end" in UNIT


def test_a_worker_is_asked_to_stop_and_comes_back() -> None:
    unit = service()
    assert (unit["KillSignal"], unit["KillMode"], unit["Restart"]) == ("SIGTERM", "mixed", "always")


def test_the_store_is_where_the_unit_may_write() -> None:
    assert Path(sqlite_path(settings().url)).parent == Path("/var/lib", service()["StateDirectory"])
    assert settings().app


def test_the_commands_exist() -> None:
    assert COMMANDS == ["migrate", "doctor", "worker"]
    assert all(command.split() in command_paths() for command in COMMANDS)
    shown = re.findall(r"^holdfast ([a-z ]+[a-z])", PAGE, re.MULTILINE)
    assert len(shown) >= 4
    assert all(command.split() in command_paths() for command in shown)


@pytest.mark.system
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("SYSTEM TEST NOT RUN: there is no systemd-analyze")
    # It looks whether programs exist, and ours does not, here.
    (tmp_path / "shop-worker@.service").write_text(UNIT.replace("/srv/shop/.venv/bin/holdfast", "/bin/true"))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "shop-worker@.service")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
