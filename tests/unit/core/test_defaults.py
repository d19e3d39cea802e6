"""How a task's options come out of four levels: the table of it is `tests/integration/test_defaults.py`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.defaults import NO_DEFAULTS, TaskDefaults, resolve_options
from holdfast.core.errors import InvalidOptions
from holdfast.core.options import TaskOptions
from holdfast.core.retry import RetryPolicy
from holdfast.core.unset import UNSET

levels = st.builds(
    TaskDefaults,
    queue=st.sampled_from([UNSET, "a", "b"]),
    priority=st.sampled_from([UNSET, 0, 9, "high"]),
    retry=st.sampled_from([UNSET, RetryPolicy(max_attempts=2)]),
    timeout=st.sampled_from([UNSET, None, 100, 200]),
    soft_timeout=st.sampled_from([UNSET, None, 1, 2]),
    isolate=st.sampled_from([UNSET, True, False]),
)


def test_without_anything_said_it_is_what_is_built_in() -> None:
    assert resolve_options(NO_DEFAULTS) == TaskOptions()


@given(levels, levels, levels)
def test_a_level_that_says_all_leaves_nothing_to_those_below(
    base: TaskDefaults, queue: TaskDefaults, app: TaskDefaults
) -> None:
    limits: dict[str, Any] = {"timeout": None, "soft_timeout": None, "isolate": True}
    own = TaskDefaults(queue="mine", priority=3, retry=RetryPolicy(max_attempts=7), **limits)
    found = resolve_options(own, base=base, queues={"mine": queue}, app=app)
    assert found == TaskOptions("mine", 3, RetryPolicy(max_attempts=7), None, None, True)


@given(levels, levels)
def test_a_level_that_says_nothing_changes_nothing(one: TaskDefaults, other: TaskDefaults) -> None:
    pairs: list[dict[str, Any]] = [
        {"own": one, "base": other},
        {"own": one, "app": other},
        {"own": NO_DEFAULTS, "base": one, "app": other},
    ]
    found = [resolve_options(pair.pop("own"), **pair) for pair in pairs]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_isolate_is_yes_or_no(value: Any) -> None:
    with pytest.raises(InvalidOptions, match=r"isolate=.*: needs True or False"):
        TaskDefaults(isolate=value)
