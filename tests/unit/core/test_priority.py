"""Priorities by number and name, and their weights."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidOptions
from holdfast.core.priority import (
    DEFAULT_WEIGHTS,
    PRIORITY_NAMES,
    check_weights,
    name_of,
    parse_priority,
    weight_of,
)


@pytest.mark.parametrize(
    ("given_value", "number"),
    [("critical", 9), ("high", 7), ("normal", 5), ("low", 2), ("bulk", 0), ("4", 4), *((n, n) for n in range(10))],
)
def test_names_and_numbers_are_understood(given_value: int | str, number: int) -> None:
    assert parse_priority(given_value) == number


@pytest.mark.parametrize("value", [-1, 10, True, False, None, 5.0, math.nan, "", "10", "-1", "²", [5]])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(InvalidOptions, match=r"critical \(9\), high \(7\)"):
        parse_priority(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(("typo", "meant"), [("hihg", "high"), ("HIGH", "high"), ("critcal", "critical")])
def test_a_typo_is_answered_with_the_nearest_name(typo: str, meant: str) -> None:
    with pytest.raises(InvalidOptions, match=f"did you mean '{meant}'"):
        parse_priority(typo)


@pytest.mark.parametrize(
    ("priority", "name"),
    [
        (9, "critical"),
        (8, "high"),
        (7, "high"),
        (6, "normal"),
        (5, "normal"),
        (4, "low"),
        (3, "low"),
        (2, "low"),
        (1, "bulk"),
        (0, "bulk"),
    ],
)
def test_an_unnamed_priority_takes_the_weight_of_the_next_lower_name(priority: int, name: str) -> None:
    assert name_of(priority) == name
    assert weight_of(priority) == DEFAULT_WEIGHTS[name]
    assert weight_of(priority, {name: 17}) == 17


def test_there_is_nothing_below_zero() -> None:
    with pytest.raises(InvalidOptions, match="lowest is 0"):
        weight_of(-1)


def test_names_left_out_keep_their_default() -> None:
    assert check_weights({"high": 2.5}) == {**DEFAULT_WEIGHTS, "high": 2.5}
    assert weight_of(5, {"high": 2.5}) == 10


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf, -math.inf, 1_000_001, True, "10", None])
def test_senseless_weights_are_refused_by_name(weight: object) -> None:
    with pytest.raises(InvalidOptions, match="weights: low="):
        check_weights({"low": weight})  # type: ignore[dict-item]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidOptions, match="did you mean 'normal'"):
        check_weights({"norml": 3})


def test_some_weight_must_be_positive() -> None:
    assert check_weights({**dict.fromkeys(PRIORITY_NAMES, 0), "bulk": 1})["bulk"] == 1
    with pytest.raises(InvalidOptions, match="all of them are 0"):
        check_weights(dict.fromkeys(PRIORITY_NAMES, 0))


@given(st.dictionaries(st.sampled_from(list(PRIORITY_NAMES)), st.floats(0.001, 1e6)))
def test_checked_weights_are_whole_and_stay_as_given(weights: dict[str, float]) -> None:
    checked = check_weights(weights)
    assert set(checked) == set(PRIORITY_NAMES)
    assert check_weights(checked) == checked
    assert weights.items() <= checked.items()
