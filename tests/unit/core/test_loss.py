"""What a job is charged with when its process dies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.loss import MAX_CRASHES, Losses, after_crash, after_loss, alone


def test_the_history_of_a_poison_job() -> None:
    counts = Losses()
    history = []
    dead = False
    while not dead:
        was_alone = alone(counts.losses)
        counts, dead = after_loss(counts, was_alone=was_alone)
        history.append((was_alone, counts, dead))
    assert history == [
        (False, Losses(1, 0), False),
        (False, Losses(2, 0), False),
        (True, Losses(3, 1), False),
        (True, Losses(4, 2), False),
        (True, Losses(5, 3), True),
    ]


def test_a_known_culprit_is_charged_at_once() -> None:
    assert after_loss(Losses(0, MAX_CRASHES - 1), was_alone=True) == (Losses(1, MAX_CRASHES), True)


@given(st.integers(0, 1_000), st.integers(0, MAX_CRASHES - 1))
def test_no_number_of_deaths_among_neighbours_kills_an_innocent(losses: int, crashes: int) -> None:
    assert after_loss(Losses(losses, crashes), was_alone=False) == (Losses(losses + 1, crashes), False)


def test_a_crash_of_its_own_process_is_no_reason_to_run_without_neighbours() -> None:
    counts, poison = Losses(1, 0), False
    history = []
    while not poison:
        counts, poison = after_crash(counts)
        history.append((counts, poison, alone(counts.losses)))
    assert history == [(Losses(1, 1), False, False), (Losses(1, 2), False, False), (Losses(1, 3), True, False)]
