"""Some seeds in every run of the tests, all that ever failed, and that a seed is always the same story."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulation.many import run_seeds
from tests.simulation.nemesis import KINDS
from tests.simulation.run import simulate

HERE = Path(__file__).parent
KEPT = [int(line.split()[0]) for line in (HERE / "kept_seeds.txt").read_text().splitlines() if line[:1].isdigit()]
A_PART = 25
A_FEW = 30
#: Of faults that it takes more of, until what they would break without its safeguard shows.
MORE = {"fade": 60}
EVENTFUL = 18


@pytest.mark.parametrize("first", range(0, 200, A_PART))
def test_no_promise_is_broken_in_these_seeds(first: int) -> None:
    totals = run_seeds(range(first, first + A_PART))
    assert not totals.broken, "replay one with `python -m tests.simulation --seed …`"
    assert totals.runs > A_PART, "a world in which nothing runs shows nothing"


@pytest.mark.parametrize("kind", KINDS)
def test_no_promise_is_broken_when_one_kind_of_fault_strikes_again_and_again(kind: str) -> None:
    assert not run_seeds(range(MORE.get(kind, A_FEW)), kind).broken


@pytest.mark.parametrize("seed", KEPT)
def test_a_seed_that_once_failed_does_not_fail_again(seed: int) -> None:
    assert not simulate(seed).broken


def test_a_seed_tells_the_same_story_every_time() -> None:
    assert _story(EVENTFUL) == _story(EVENTFUL)


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_a_seed_tells_the_same_story_in_every_process(hash_seed: str) -> None:
    script = f"from tests.simulation.test_simulation import _story; print(_story({EVENTFUL}))"
    env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == _story(EVENTFUL)


def _story(seed: int) -> str:
    """Everything that happened, as a number."""
    lines: list[str] = []
    simulate(seed, trace=lines.append)
    assert len(lines) > 100
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
