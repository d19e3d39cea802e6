"""When a failed attempt is followed by another: delays, jitter, exceptions by type and by name, storage."""

from __future__ import annotations

import json
import math
import pickle
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidOptions
from holdfast.core.retry import RetryPolicy

HERE = __name__


class Flaky(ConnectionError):
    pass


class Nested:
    class Error(Exception):
        pass


def half() -> float:
    return 0.5


def delays_of(policy: RetryPolicy, exc: BaseException | None = None) -> list[float | None]:
    return [policy.decide(exc or ValueError("x"), attempt, rng=half) for attempt in range(1, policy.max_attempts + 1)]


def test_by_default_five_attempts_with_doubling_full_jitter() -> None:
    assert delays_of(RetryPolicy()) == [0.5, 1.0, 2.0, 4.0, None]


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        ("exponential", [3, 6, 12, 20, 20, None]),
        ("linear", [3, 6, 9, 12, 15, None]),
        ("fixed", [3, 3, 3, 3, 3, None]),
        ([1, 100], [1, 100, 100, 100, 100, None]),
        ((7,), [7, 7, 7, 7, 7, None]),
    ],
)
def test_backoffs_without_jitter(backoff: Any, delays: list[float | None]) -> None:
    assert delays_of(RetryPolicy(6, base=3, cap=20, backoff=backoff, jitter="none")) == delays


def test_a_growing_backoff_is_capped_and_a_stated_one_is_not() -> None:
    assert RetryPolicy(9, base=10, cap=25, backoff="linear", jitter="none").decide(ValueError(), 8) == 25
    assert RetryPolicy(9, base=90, backoff="fixed", jitter="none").decide(ValueError(), 8) == 90
    assert RetryPolicy(9, backoff=[90], jitter="none").decide(ValueError(), 8) == 90


@pytest.mark.parametrize("attempt", [5, 6, 10**30])
def test_the_last_attempt_is_the_last(attempt: int) -> None:
    assert RetryPolicy(5).decide(ValueError(), attempt) is None
    assert RetryPolicy(1).decide(ValueError(), 1) is None


@given(
    policy=st.builds(
        RetryPolicy,
        max_attempts=st.just(1_000_000),
        base=st.floats(0, 60),
        cap=st.floats(60, 1e8),
        backoff=st.sampled_from(["exponential", "linear", "fixed"]),
        jitter=st.sampled_from(["full", "none"]),
    ),
    attempt=st.integers(0, 999_999),
    drawn=st.floats(0, 1, exclude_max=True),
)
def test_delays_stay_between_zero_and_the_cap_for_every_attempt(
    policy: RetryPolicy, attempt: int, drawn: float
) -> None:
    delay = policy.decide(ValueError(), attempt, rng=lambda: drawn)
    assert delay is not None
    assert 0 <= delay <= policy.cap


def test_full_jitter_is_spread_evenly() -> None:
    policy = RetryPolicy(20, base=2, cap=40)
    rng = random.Random(20_260_101).random
    drawn = sorted(policy.decide(ValueError(), 10, rng=rng) or 0.0 for _ in range(20_000))
    assert sum(drawn) / len(drawn) == pytest.approx(20, abs=0.4)
    for tenth in range(1, 10):
        assert drawn[len(drawn) * tenth // 10] == pytest.approx(4 * tenth, abs=0.6)
    assert drawn[0] < 0.1
    assert 39.9 < drawn[-1] < 40


@pytest.mark.parametrize(
    "ref", [ConnectionError, "ConnectionError", "builtins.ConnectionError", OSError, "OSError", Flaky, "Flaky"]
)
def test_an_exception_is_recognised_by_its_type_its_bases_and_their_names(ref: Any) -> None:
    assert RetryPolicy(retry_on=[ref]).decide(Flaky(), 1, rng=half) == 0.5
    assert RetryPolicy(retry_on=ref).decide(Flaky(), 1, rng=half) == 0.5
    assert RetryPolicy(retry_on=[ref]).decide(KeyError(), 1, rng=half) is None
    assert RetryPolicy(give_up_on=(ref,)).decide(Flaky(), 1, rng=half) is None
    assert RetryPolicy(give_up_on=(ref,)).decide(KeyError(), 1, rng=half) == 0.5


def test_qualified_names_tell_classes_of_one_name_apart() -> None:
    assert RetryPolicy(retry_on=[f"{HERE}.Nested.Error"]).decide(Nested.Error(), 1, rng=half) == 0.5
    assert RetryPolicy(retry_on=["Error"]).decide(Nested.Error(), 1, rng=half) == 0.5
    assert RetryPolicy(retry_on=["elsewhere.Nested.Error"]).decide(Nested.Error(), 1, rng=half) is None
    assert RetryPolicy(retry_on=["elsewhere.Flaky"]).decide(Flaky(), 1, rng=half) is None


def test_giving_up_is_stronger_than_retrying() -> None:
    policy = RetryPolicy(retry_on=[OSError], give_up_on=[Flaky], delays={Flaky: 3})
    assert policy.decide(Flaky(), 1) is None
    assert policy.decide(OSError(), 1, rng=half) == 0.5


def test_an_empty_retry_on_retries_nothing() -> None:
    assert RetryPolicy(retry_on=()).decide(ValueError(), 1) is None


def test_the_delay_of_the_most_specific_class_wins_and_has_no_jitter() -> None:
    policy = RetryPolicy(delays={OSError: 1, "Flaky": 3, ConnectionError: 2, f"{HERE}.Other": 9})
    assert [policy.decide(exc, 4) for exc in (Flaky(), ConnectionResetError(), FileNotFoundError())] == [3, 2, 1]
    assert policy.decide(KeyError(), 1, rng=half) == 0.5
    assert policy.decide(Flaky(), 5) is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_attempts": 0}, "max_attempts=0 must be 1"),
        ({"max_attempts": True}, "max_attempts=True must be a whole number"),
        ({"max_attempts": 2.0}, "max_attempts=2.0 must be a whole number"),
        ({"max_attempts": 10**7}, "to 1,000,000"),
        ({"base": -1}, "base=-1 must be from 0 seconds"),
        ({"base": math.nan}, "base=nan must be"),
        ({"cap": math.inf}, "cap=inf must be"),
        ({"cap": "1"}, "cap='1' must be a number of seconds"),
        ({"base": 100}, "base=100.0 is above cap=60"),
        ({"base": 100, "backoff": "linear"}, "base=100.0 is above cap=60"),
        ({"backoff": "exponental"}, "did you mean 'exponential'"),
        ({"backoff": 7}, "backoff=7 must be one of"),
        ({"backoff": []}, "empty list"),
        ({"backoff": [1, -2]}, r"backoff\[1\]=-2 must be"),
        ({"backoff": [1, None]}, r"backoff\[1\]=None must be"),
        ({"jitter": "some"}, "jitter='some' must be 'full' or 'none'"),
        ({"jitter": True}, "jitter=True"),
        ({"retry_on": [int]}, "retry_on=<class 'int'> must be an exception type"),
        ({"retry_on": [ValueError("x")]}, "must be an exception type"),
        ({"retry_on": 17}, "retry_on=17 must be a list"),
        ({"give_up_on": [""]}, "give_up_on=''"),
        ({"give_up_on": None}, "give_up_on=None must be a list"),
        ({"delays": [ValueError]}, "must map exception types to seconds"),
        ({"delays": {ValueError: -1}}, r"delays\[builtins.ValueError\]=-1 must be"),
        ({"delays": {17: 1}}, "delays=17 must be an exception type"),
    ],
)
def test_senseless_policies_are_refused_in_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidOptions, match=sentence) as caught:
        RetryPolicy(**options)
    assert str(caught.value).startswith("RetryPolicy: ")


refs = st.sampled_from([ValueError, OSError, Flaky, Nested.Error, "Flaky", "shop.errors.Busy"])
seconds = st.floats(0, 60) | st.integers(0, 60)
policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 50),
    base=seconds,
    cap=st.floats(60, 1e6),
    backoff=st.sampled_from(["exponential", "linear", "fixed"]) | st.lists(seconds, min_size=1, max_size=5),
    jitter=st.sampled_from(["full", "none"]),
    retry_on=st.none() | st.lists(refs, max_size=3),
    give_up_on=st.lists(refs, max_size=2),
    delays=st.dictionaries(refs, seconds, max_size=3),
)


@given(
    policies,
    st.sampled_from([ValueError(), OSError(), Flaky(), Nested.Error(), KeyError()]),
    st.integers(1, 60),
)
def test_a_stored_policy_decides_as_the_original(policy: RetryPolicy, exc: Exception, attempt: int) -> None:
    stored = RetryPolicy.from_data(json.loads(json.dumps(policy.to_data())))
    assert stored == policy
    assert hash(stored) == hash(policy)
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert stored.decide(exc, attempt, rng=half) == policy.decide(exc, attempt, rng=half)


def test_stored_data_may_be_partial_or_newer_but_not_wrong() -> None:
    assert RetryPolicy.from_data({}) == RetryPolicy()
    assert RetryPolicy.from_data({"base": 2, "added_later": 1}) == RetryPolicy(base=2)
    with pytest.raises(InvalidOptions, match="jitter"):
        RetryPolicy.from_data({"jitter": "wild"})
    with pytest.raises(InvalidOptions, match="must be an object, not list"):
        RetryPolicy.from_data([])  # type: ignore[arg-type]


def test_a_policy_does_not_follow_later_changes_of_what_it_was_made_from() -> None:
    delays: dict[Any, float] = {ValueError: 1}
    steps = [5.0]
    policy = RetryPolicy(backoff=steps, delays=delays, jitter="none")
    delays[ValueError] = 9
    steps[0] = 9
    assert (policy.decide(ValueError(), 1), policy.decide(KeyError(), 1)) == (1, 5)
