"""The generated parts of the documentation are those that today's code makes."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.generate import FILES, PARTS, renewed
from tests.docs.pages import ROOT
from tests.docs.subprocesses import environment

from holdfast.config import Config


@pytest.mark.parametrize(("page", "part", "make"), PARTS, ids=[f"{page}:{part}" for page, part, _ in PARTS])
def test_a_generated_part_is_up_to_date(page: str, part: str, make: Callable[[], str]) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert text == renewed(text, part, make()), "run `python -m tests.docs.generate`"


@pytest.mark.parametrize(("name", "make"), FILES, ids=[name for name, _ in FILES])
def test_a_generated_file_is_up_to_date(name: str, make: Callable[[], str]) -> None:
    assert (ROOT / name).read_text("utf-8") == make(), "run `python -m tests.docs.generate`"


def test_the_example_of_an_environment_holds_the_defaults(tmp_path: Path) -> None:
    lines = (ROOT / ".env.example").read_text("utf-8").splitlines()
    wanted = [line.removeprefix("#") for line in lines if line.startswith("#HOLDFAST_")]
    assert [line.partition("=")[0] for line in wanted] == [
        "HOLDFAST_CONFIG",
        *(setting.variable for setting in Config.settings()),
    ]
    (tmp_path / "holdfast.toml").touch()
    (tmp_path / ".env").write_text("\n".join(wanted), "utf-8")
    code = "from holdfast.config import Config; c = Config.load(); print(c == Config(), c.origin('lease_s'))"
    command = f'set -a; . ./.env; set +a; exec {shlex.quote(sys.executable)} -c "{code}"'
    ended = subprocess.run(["sh", "-euc", command], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert ended.stdout == "True variable HOLDFAST_LEASE_S\n", ended.stderr


def test_every_setting_is_explained() -> None:
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")
    assert not [
        setting.name for setting in Config.settings() if f"| `{setting.name}` | `{setting.variable}` |" not in text
    ]
