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
from tests.docs.pages import ROOT, Block, blocks

PAGE = blocks((ROOT / "docs" / "http.md").read_text("utf-8"))
SHOWN = [(block, after) for block, after in itertools.pairwise(PAGE) if block.language == "sh"]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """`holdfast dev` on the app of the page: `$API` and `$KEY`."""
    place = tmp_path_factory.mktemp("shop")
    [app] = [block for block in PAGE if block.title == "shop.py"]
    (place / "shop.py").write_text(app.text, "utf-8")
    command = [*COMMAND, "dev", "shop:hf", "--api-port", "0"]
    with (
        subprocess.Popen(command, cwd=place, env=environment(), stderr=subprocess.PIPE, text=True) as process,
        patience(process),
    ):
        address = await_line(process, "is open").split()[1]
        key = await_line(process, "a key for you").split()[-1]
        variables = {"API": address, "KEY": key}
        _type(SHOWN[0][0], variables, place)  # what follows may be tried by another process than this line
        try:
            yield variables
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=30)


def test_the_page_shows_enough() -> None:
    assert len(SHOWN) >= 7
    assert {after.language for _, after in SHOWN} == {"json"}


@pytest.mark.parametrize(("block", "answer"), SHOWN, ids=[f"line {block.line}" for block, _ in SHOWN])
def test_what_curl_prints_is_on_the_page(block: Block, answer: Block, api: dict[str, str], tmp_path: Path) -> None:
    printed = json.JSONDecoder()
    text, values = _type(block, api, tmp_path).strip(), []
    while text:  # one document after the other: the last is shown
        value, end = printed.raw_decode(text)
        values.append(value)
        text = text[end:].strip()
    _compare(json.loads(answer.text), values[-1], at=f"docs/http.md:{answer.line}")


def _type(block: Block, variables: dict[str, str], place: Path) -> str:
    script = f"set -e\n{block.text}"
    ended = subprocess.run(
        ["bash", "-c", script], env=os.environ | variables, cwd=place, capture_output=True, text=True, check=True
    )
    return ended.stdout


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
