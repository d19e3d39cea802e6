"""What a type checker tells users: good calls pass mypy --strict, each bad one is an error on its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
GOOD, BAD = HERE / "good_calls.py", HERE / "bad_calls.py"
EXPECTED = {
    number: (line.split("#")[0].strip(), line.split("# E: ")[1].strip())
    for number, line in enumerate(BAD.read_text("utf-8").splitlines(), 1)
    if "  # E: " in line
}
_ERROR = re.compile(r"^(?P<file>.+?):(?P<line>\d+): error: (?P<text>.*)  \[(?P<code>[\w-]+)\]$")


@pytest.fixture(scope="session")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, set[str]]]:
    """What mypy says of both files: file → line → error codes. One run for all."""
    cache = tmp_path_factory.mktemp("mypy")
    out, problem, _ = api.run(
        ["--strict", "--config-file=", "--no-pretty", "--no-error-summary", f"--cache-dir={cache}", str(GOOD), str(BAD)]
    )
    assert not problem, problem
    found: dict[str, dict[int, set[str]]] = {GOOD.name: {}, BAD.name: {}}
    for line in out.splitlines():
        if match := _ERROR.match(line):
            lines = found.setdefault(Path(match["file"]).name, {})
            lines.setdefault(int(match["line"]), set()).add(match["code"])
    return found


def test_good_calls_pass(errors: dict[str, dict[int, set[str]]]) -> None:
    assert errors[GOOD.name] == {}


@pytest.mark.parametrize("line", EXPECTED, ids=[call for call, _ in EXPECTED.values()])
def test_a_bad_call_is_an_error_on_its_line(line: int, errors: dict[str, dict[int, set[str]]]) -> None:
    assert EXPECTED[line][1] in errors[BAD.name].get(line, set())


def test_nothing_else_is_wrong(errors: dict[str, dict[int, set[str]]]) -> None:
    assert errors[BAD.name].keys() == EXPECTED.keys()
    assert errors.keys() == {GOOD.name, BAD.name}, "the library's own files are clean for its users"
