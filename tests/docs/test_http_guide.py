"""The guide to the HTTP API: its lines for curl are typed, and the answers are as the page shows them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.processes import COMMAND, await_line, environment, patience
from tests.docs.pages import ROOT, blocks

PAGE = blocks((ROOT / "docs" / "http.md").read_text("utf-8"))
SHOWN = [(block, after) for block, after in itertools.pairwise(PAGE) if block.language == "sh"]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[dict[str, str]]:
    """`holdfast dev` on the app of the page: `$API` and `$KEY`."""
    place = tmp_path
    [app] = [block for block in PAGE if block.title == "shop.py"]
    (place / "shop.py").write_text(app.text, "utf-8")
    command = [*COMMAND, "dev", "shop:hf", "--api-port", "0"]
    with (
        subprocess.Popen(command, cwd=place, env=environment(), stderr=subprocess.PIPE, text=True) as process,
        patience(process),
    ):
        address = await_line(process, "is open").split()[1]
        key = await_line(process, "a key for you").split()[-1]
        try:
            yield {"API": address, "KEY": key}
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=30)


def test_the_page_shows_enough() -> None:
    assert len(SHOWN) >= 7
    assert {after.language for _, after in SHOWN} == {"json"}


def test_what_curl_prints_is_on_the_page(api: dict[str, str], tmp_path: Path) -> None:
    """From the first line to the last: later ones show what became of earlier ones."""
    for block, answer in SHOWN:
        ended = subprocess.run(
            ["bash", "-c", f"set -e\n{block.text}"], env=os.environ | api, cwd=tmp_path, capture_output=True, text=True
        )
        assert ended.returncode == 0, f"docs/http.md:{block.line}: {ended.stderr}"
        text, values = ended.stdout.strip(), []
        while text:  # one document after the other: the last is shown
            value, end = json.JSONDecoder().raw_decode(text)
            values.append(value)
            text = text[end:].strip()
        _compare(json.loads(answer.text), values[-1], at=f"docs/http.md:{answer.line}")


def _compare(shown: Any, printed: Any, *, at: str) -> None:
    """What is shown is there; what is not shown may be there; `...` stands for anything."""
    match shown:
        case dict():
            for name, value in shown.items():
                assert name in printed, f"{at}: no {name} in {printed}"
                _compare(value, printed[name], at=f"{at}: {name}")
        case list():
            assert len(shown) == len(printed), f"{at}: {printed}"
            for one, other in zip(shown, printed, strict=True):
                _compare(one, other, at=at)
        case str() if "..." in shown:
            before, _, after = shown.partition("...")
            assert printed.startswith(before), f"{at}: {printed}"
            assert printed.endswith(after), f"{at}: {printed}"
        case _:
            assert shown == printed, at
