"""What may be said about a task and about one call; the sentences of what may not are in `test_bad_input`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.defaults import TaskDefaults, resolve_options
from holdfast.core.errors import InvalidOptions
from holdfast.core.options import (
    CallOptions,
    TaskOptions,
    call_options,
    check_limits,
    limit_s,
    seconds,
)
from holdfast.core.retry import RetryPolicy
from holdfast.core.unset import UNSET, Unset
from holdfast.core.unset import given as otherwise

TEN_YEARS_S = 10 * 365 * 86_400


def checked(**more: Any) -> TaskOptions:
    return resolve_options(TaskDefaults(**more))


def test_a_task_without_options_has_the_documented_defaults() -> None:
    assert checked() == TaskOptions() == TaskOptions("default", 5, RetryPolicy(), 300.0, None)


def test_a_task_takes_names_and_timedeltas() -> None:
    options = checked(priority="critical", timeout=timedelta(minutes=1), soft_timeout=30)
    assert (options.priority, options.timeout_s, options.soft_timeout_s) == (9, 60.0, 30.0)


@pytest.mark.parametrize(("soft_s", "hard_s"), [(None, None), (5.0, None), (None, 5.0), (4.9, 5.0)])
def test_a_soft_limit_comes_before_the_hard_one(soft_s: float | None, hard_s: float | None) -> None:
    check_limits(soft_s, hard_s)


def test_only_what_was_given_is_set() -> None:
    assert call_options() == {}
    assert call_options(delay=5, tags=["b", "a", "b"]) == {"delay_s": 5.0, "tags": ("b", "a")}


def test_none_takes_an_option_back() -> None:
    fields = call_options(delay=None, run_at=None, expires=None, key=None, metadata=None, timeout=None)
    assert fields == dict.fromkeys(
        ("delay_s", "run_at", "expires_at", "expires_in_s", "key", "metadata", "timeout_s"), None
    )


def test_a_deadline_is_a_moment_or_a_time_from_now_and_never_both() -> None:
    noon = datetime(2024, 2, 29, 12, tzinfo=UTC)
    assert call_options(expires=noon) == {"expires_at": noon.timestamp(), "expires_in_s": None}
    assert call_options(expires=60) == {"expires_at": None, "expires_in_s": 60.0}


def test_the_callers_metadata_can_change_without_the_options() -> None:
    metadata = {"a": 1}
    fields = call_options(metadata=metadata)
    metadata["a"] = 2
    assert fields["metadata"] == {"a": 1}


def test_an_empty_tenant_is_no_tenant() -> None:
    assert call_options(tenant="") == {"tenant": ""}


def test_two_times_for_one_job_are_refused_also_one_after_the_other() -> None:
    with pytest.raises(InvalidOptions, match="two different times"):
        CallOptions(delay_s=1.0, run_at=5.0)


@given(st.floats(0, TEN_YEARS_S) | st.integers(0, TEN_YEARS_S))
def test_any_duration_up_to_ten_years_is_taken_as_it_is(value: float) -> None:
    assert seconds("delay", value) == value
    assert isinstance(seconds("delay", value), float)


@given(st.timedeltas(timedelta(0), timedelta(days=3650)))
def test_a_timedelta_is_its_seconds(value: timedelta) -> None:
    assert seconds("delay", value) == value.total_seconds()


@given(
    st.floats(max_value=0, exclude_max=True)
    | st.floats(min_value=TEN_YEARS_S, exclude_min=True)
    | st.sampled_from([float("nan"), True, "1", None, 1j, b"1"])
)
def test_anything_else_is_no_duration(value: Any) -> None:
    with pytest.raises(InvalidOptions, match=r"^delay="):
        seconds("delay", value)


def test_a_limit_may_be_absent_but_not_nought() -> None:
    assert limit_s("timeout", None) is None
    assert limit_s("timeout", 0.001) == 0.001
    with pytest.raises(InvalidOptions):
        limit_s("timeout", 0)


def test_unset_is_not_none() -> None:
    assert otherwise(UNSET, 5) == 5
    assert otherwise(None, 5) is None
    assert otherwise(0, 5) == 0
    assert repr(UNSET) == "UNSET"
    assert not UNSET
    assert isinstance(UNSET, Unset)
