"""The rule by which a soak fails, on made-up series."""

from __future__ import annotations

import random

import pytest
from tests.campaign.trend import Tolerance, trend

TOLERANCE = Tolerance(absolute=5.0, share=0.1)
COUNT = 120


def noise(size: float, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [chance.uniform(-size, size) for _ in range(COUNT)]


SOUND = {
    "flat": [100.0] * COUNT,
    "noisy": [100.0 + each for each in noise(30.0)],
    "warming up": [100.0 * min(1.0, n / 25) for n in range(COUNT)],
    "one step": [100.0 if n < 70 else 140.0 for n in range(COUNT)],
    "spikes": [100.0 + (500.0 if n % 17 == 0 else 0.0) for n in range(COUNT)],
    "sawtooth": [100.0 + n % 20 for n in range(COUNT)],
    "falling": [200.0 - n for n in range(COUNT)],
    "within what is tolerated": [100.0 + n * 0.05 for n in range(COUNT)],
    "too few to tell": [float(n) for n in range(8)],
}
GROWING = {
    "leaking": [100.0 + n * 0.5 for n in range(COUNT)],
    "leaking in noise": [100.0 + n * 0.5 + each for n, each in enumerate(noise(20.0))],
    "step after step": [100.0 + 10 * (n // 15) for n in range(COUNT)],
    "leaking with spikes": [100.0 + n * 0.5 + (500.0 if n % 17 == 0 else 0.0) for n in range(COUNT)],
    "faster and faster": [100.0 + n * n / 100 for n in range(COUNT)],
    "leaking beneath a sawtooth": [100.0 + n % 20 + n * 0.5 for n in range(COUNT)],
    "from nothing": [n * 0.2 for n in range(COUNT)],
}


@pytest.mark.parametrize("name", SOUND)
def test_what_does_not_grow_is_let_pass(name: str) -> None:
    found = trend(name, SOUND[name], TOLERANCE)
    assert not found.grows, found


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_is_found(name: str) -> None:
    found = trend(name, GROWING[name], TOLERANCE)
    assert found.grows, found


@pytest.mark.parametrize("seed", range(50))
def test_noise_alone_is_never_growth(seed: int) -> None:
    found = trend("noise", [100.0 + each for each in noise(30.0, seed)], TOLERANCE)
    assert not found.grows, found


def test_the_trend_says_what_it_saw() -> None:
    assert str(trend("connections", [3.0] * 40, TOLERANCE)) == "connections: 3 → 3 → 3 (line +0, tolerated 5)"
    assert "too few samples" in str(trend("connections", [3.0], TOLERANCE))
