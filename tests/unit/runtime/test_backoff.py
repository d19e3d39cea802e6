from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.backoff import Backoff, retry_transient
from holdfast.runtime.clock import ManualClock

seconds = st.floats(1e-3, 1e3)
draws = st.floats(0, 1, exclude_max=True)


@given(base_s=seconds, factor=st.floats(1, 1e4), drawn=st.lists(draws, min_size=1, max_size=60))
def test_every_wait_lies_between_a_tenth_of_the_base_and_its_ceiling(
    base_s: float, factor: float, drawn: list[float]
) -> None:
    cap_s = base_s * factor
    rng = iter(drawn)
    backoff = Backoff(base_s, cap_s, rng=lambda: next(rng))
    for n in range(len(drawn)):
        wait_s = backoff.next()
        assert base_s / 10 <= wait_s <= max(min(base_s * 2**n, cap_s), base_s / 10)


def test_the_range_doubles_up_to_the_cap_and_starts_over_after_reset() -> None:
    backoff = Backoff(1.0, 5.0, rng=lambda: 0.5)
    assert [backoff.next() for _ in range(5)] == [0.5, 1.0, 2.0, 2.5, 2.5]
    backoff.reset()
    assert backoff.next() == 0.5


def test_it_survives_any_number_of_failures() -> None:
    backoff = Backoff(1.0, 60.0, rng=lambda: 1.0)
    assert [backoff.next() for _ in range(5_000)][-1] == 60.0


@pytest.mark.parametrize(("base_s", "cap_s"), [(0, 1), (-1, 1), (2, 1), (1, float("inf")), (float("nan"), 1)])
def test_senseless_bounds_are_refused(base_s: float, cap_s: float) -> None:
    with pytest.raises(ValueError, match="0 < base_s <= cap_s"):
        Backoff(base_s, cap_s)


class Flaky:
    """Fails with the given errors, one per call, then returns "done"; every call takes `takes_s`."""

    def __init__(self, *errors: BaseException, clock: ManualClock, takes_s: float = 0.0) -> None:
        self.errors = list(errors)
        self.clock = clock
        self.takes_s = takes_s
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        self.clock.advance(self.takes_s)
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def retry(call: Flaky, **overrides: object) -> str:
    options: dict[str, object] = {
        "is_transient": lambda exc: isinstance(exc, OSError),
        "give_up_after_s": 10.0,
        "backoff": Backoff(1e-6, 1e-6),
        "clock": call.clock,
    }
    return asyncio.run(retry_transient(call, **(options | overrides)))  # type: ignore[arg-type]


def test_transient_errors_are_repeated_until_it_works() -> None:
    seen: list[tuple[str, int]] = []
    call = Flaky(OSError("a"), OSError("b"), clock=ManualClock())
    assert retry(call, on_retry=lambda exc, n: seen.append((str(exc), n))) == "done"
    assert seen == [("a", 1), ("b", 2)]


def test_other_errors_are_raised_at_once() -> None:
    call = Flaky(ValueError("no"), clock=ManualClock())
    with pytest.raises(ValueError, match="no"):
        retry(call)
    assert call.calls == 1


def test_the_last_error_is_raised_itself_when_time_is_up() -> None:
    errors = [OSError(str(n)) for n in range(9)]
    call = Flaky(*errors, clock=ManualClock(), takes_s=4.0)
    with pytest.raises(OSError, match="2") as caught:
        retry(call)
    assert caught.value is errors[2]
    assert caught.value.__context__ is None
    assert call.calls == 3


def test_a_jump_of_the_wall_clock_changes_nothing() -> None:
    clock = ManualClock()
    call = Flaky(OSError(), OSError(), clock=clock)
    assert retry(call, on_retry=lambda exc, n: clock.jump_wall(86_400)) == "done"


def test_a_success_resets_the_backoff() -> None:
    backoff = Backoff(1e-6, 1.0, rng=lambda: 1.0)
    retry(Flaky(OSError(), OSError(), clock=ManualClock()), backoff=backoff)
    assert backoff.next() == 1e-6


def test_no_wait_goes_beyond_the_deadline() -> None:
    # With waits of an hour this ends only because the wait is cut to what is left.
    call = Flaky(OSError(), OSError(), clock=ManualClock(), takes_s=5e-4)
    with pytest.raises(OSError):  # noqa: PT011
        retry(call, give_up_after_s=1e-3, backoff=Backoff(3600.0, 3600.0))
    assert call.calls == 2


def test_cancellation_is_never_retried() -> None:
    call = Flaky(asyncio.CancelledError(), clock=ManualClock())
    with pytest.raises(asyncio.CancelledError):
        retry(call, is_transient=lambda exc: True)
    assert call.calls == 1
