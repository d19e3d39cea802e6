"""Every example runs to its end by itself and says what it is there to show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import ROOT
from tests.docs.subprocesses import run_python

EXPECTED = {
    "quickstart": ["5"],
    "dead_letters": [
        "dead: the bank does not answer",
        "('Bob', -700) after 1 attempts: permanent",
        "('Ada', 700) after 2 attempts: exhausted",
        "replayed by the type of its error: 1",
        "purged: 1",
        "result: Ada paid 700 cents",
        "result: Bob paid 700 cents",
        "[('replay', '-700 cents cannot be charged')]",
    ],
    "idempotency": [
        "20 callers, 1 job, result 1",
        "the same job: True and its result: 1",
        "refused: order-17",
        "shipped: ['17', '18']",
    ],
    "isolated": [
        "in another process: True",
        "holdfast.HardTimeout - the run was ended at its hard limit of 0.5 s",
        "holdfast.Poison - its process died 3 times while it ran alone; last: its process was killed by signal 11",
        "[('worker_lost', 'its process was killed by signal 11 (SIGSEGV)')] three times",
    ],
    "backpressure": [
        "accepted 20, then: full, try again in 5 s",
        "a producer that waited got through, result 20",
        "never held more than 20: True",
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_shows_what_it_is_there_to_show(name: str, tmp_path: Path) -> None:
    printed = run_python("-m", f"examples.{name}", cwd=tmp_path)
    missing = [line for line in EXPECTED[name] if line not in printed]
    assert not missing, printed


def test_every_example_is_run_here() -> None:
    names = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"__init__"}
    assert names == {*EXPECTED, "demo_tasks", "progress"}  # the tasks are run by tests/cli/test_demo.py


def test_progress_is_seen_while_it_is_made(tmp_path: Path) -> None:
    printed = run_python("-m", "examples.progress", cwd=tmp_path)
    seen = [int(number) for number in re.findall(r"running +(\d+)%", printed)]
    assert len(seen) > 2, printed
    assert seen == sorted(set(seen))
    assert "succeeded  100%  done\nresult: 8\n" in printed
