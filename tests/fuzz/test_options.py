"""Options and names, from callers and from the store: a value that holds, or InvalidOptions in a sentence."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
from hypothesis import example, given
from tests.fuzz.examples import fuzzed
from tests.fuzz.outside import (
    ABYSS,
    BEYOND_FLOATS,
    UNWRITABLE,
    any_text,
    any_value,
    as_word,
    numbers,
    raw_bytes,
    scalars,
)

from holdfast import InvalidArguments, InvalidOptions, RetryPolicy
from holdfast.client.request import Request, build_job
from holdfast.config import Config
from holdfast.core.backpressure import Watermarks
from holdfast.core.breaker import BreakerGate
from holdfast.core.ids import first_id_at, parse_job_id
from holdfast.core.names import _RULES, check_name
from holdfast.core.options import CallOptions, call_options
from holdfast.core.priority import PRIORITY_NAMES, check_weights, parse_priority
from holdfast.core.queue import QueueSettings, parse_served
from holdfast.core.queue_options import OPTION_NAMES
from holdfast.stores.gate_rows import figures_of
from holdfast.stores.queue_rows import from_row, to_row
from holdfast.worker.fetcher import _weight

ZONES = st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
NOTHING: dict[str, Any] = {}

policies = st.fixed_dictionaries(
    NOTHING,
    optional={
        "max_attempts": numbers | scalars,
        "base": numbers | scalars,
        "cap": numbers | scalars,
        "backoff": st.sampled_from(["exponential", "linear", "fixed", "expo"])
        | st.lists(numbers, max_size=4)
        | any_value,
        "jitter": st.sampled_from(["full", "none"]) | any_value,
        "retry_on": st.none() | st.lists(any_text, max_size=3) | any_value,
        "give_up_on": st.lists(any_text, max_size=3) | any_value,
        "delays": st.dictionaries(any_text, numbers, max_size=3) | any_value,
        "added_by_a_newer_version": any_value,
    },
)


def _policy_or_data(data: dict[str, Any]) -> RetryPolicy | dict[str, Any]:
    try:
        return RetryPolicy.from_data(data)
    except InvalidOptions:
        return data


@fuzzed
@given(policies | any_value)
@example({"base": BEYOND_FLOATS})
@example({"max_attempts": UNWRITABLE})
@example({"jitter": []})
def test_a_stored_retry_policy_is_a_policy_or_refused(data: Any) -> None:
    try:
        policy = RetryPolicy.from_data(data)
    except InvalidOptions:
        return
    assert RetryPolicy.from_data(policy.to_data()) == policy
    for attempt in (1, 2, policy.max_attempts, 10**9):
        delay_s = policy.decide(ValueError(), attempt, rng=lambda: 1.0)
        assert delay_s is None or 0 <= delay_s < float("inf")


@fuzzed
@given(
    st.fixed_dictionaries(
        NOTHING,
        optional={
            "delay": scalars | st.timedeltas(),
            "run_at": scalars | st.datetimes(timezones=st.none() | ZONES),
            "expires": scalars | st.timedeltas() | st.datetimes(timezones=st.none() | ZONES),
            "priority": scalars,
            "queue": any_text,
            "tenant": scalars,
            "key": scalars,
            "key_window": scalars,
            "tags": any_value,
            "metadata": any_value,
            "timeout": scalars | st.timedeltas(),
            "soft_timeout": scalars,
            "retry": policies.map(_policy_or_data) | any_value,
            "wait": scalars,
        },
    )
)
@example({"run_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))})
@example({"expires": datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)})
@example({"timeout": BEYOND_FLOATS})
@example({"retry": RetryPolicy(retry_on=["\ud800"])})
@example({"retry": RetryPolicy(backoff=[1.0] * 100_000)})
@example({"key": UNWRITABLE})
def test_options_of_a_call_are_stored_or_refused(options: dict[str, Any]) -> None:
    try:
        job = build_job(Request("a.task", (), {}, CallOptions(**call_options(**options))), Config())
    except (InvalidOptions, InvalidArguments):
        return
    for moment in (job.run_at, job.expires_at):
        assert moment is None or datetime.fromtimestamp(moment, UTC), "reports say it as a datetime"
    for text in (job.options, job.metadata):
        assert text is None or isinstance(json.loads(text), dict)
    "".join((job.queue, job.tenant, *job.tags)).encode("utf-8")


@fuzzed
@given(st.sampled_from(sorted(_RULES)), scalars)
@example("queue", UNWRITABLE)
def test_a_name_that_is_accepted_can_be_stored(kind: Any, name: Any) -> None:
    try:
        accepted = check_name(kind, name)
    except InvalidOptions:
        return
    assert 0 < len(accepted) <= _RULES[kind].longest
    assert "\0" not in accepted
    accepted.encode("utf-8")


@fuzzed
@given(scalars)
@example(UNWRITABLE)
def test_a_priority_is_one_of_ten_or_refused(value: Any) -> None:
    try:
        assert parse_priority(value) in range(10)
    except InvalidOptions:
        return


@fuzzed
@given(st.dictionaries(st.sampled_from(sorted(PRIORITY_NAMES)) | any_text, scalars, max_size=5))
@example({"high": BEYOND_FLOATS})
def test_weights_of_priorities_are_shares_or_refused(weights: dict[str, Any]) -> None:
    try:
        checked = check_weights(weights)
    except InvalidOptions:
        return
    assert set(checked) == set(PRIORITY_NAMES)
    assert 0 < sum(checked.values()) < float("inf")


@fuzzed
@given(scalars, scalars)
@example(UNWRITABLE, UNWRITABLE)
@example(2**64, 0)
def test_watermarks_are_in_order_or_refused(high: Any, low: Any) -> None:
    try:
        marks = Watermarks(high, low)
    except InvalidOptions:
        return
    assert 0 <= marks.low < marks.high < 2**63, "a store keeps them as numbers of eight bytes"


@fuzzed
@given(scalars, scalars, scalars, scalars, raw_bytes | any_text | st.none(), st.lists(scalars, max_size=3))
@example(0, UNWRITABLE, UNWRITABLE, BEYOND_FLOATS, b"[" * ABYSS, [UNWRITABLE, UNWRITABLE, UNWRITABLE])
@example(0, 1, 0, True, '{"high": "x"}', [0, 0.0, -1])
@example(0, "a", "b", None, "[[1, 2]]", [True, float("nan"), "x"])
def test_settings_of_a_queue_written_by_hand_never_stop_a_worker(
    paused: Any, high: Any, low: Any, weight: Any, weights: Any, options: list[Any]
) -> None:
    settings = from_row(paused, high, low, weight, weights, None, None, 0, *options)
    assert isinstance(settings, QueueSettings)
    for priority in range(10):
        assert 0 <= _weight(settings, priority, None) < float("inf")
    for name, value in zip(OPTION_NAMES, options, strict=False):
        assert (name in settings.ignored) == (value is not None and name not in settings.options.given)
    assert from_row(*to_row(settings)) == settings


@fuzzed
@given(scalars, scalars, scalars)
@example(UNWRITABLE, UNWRITABLE, BEYOND_FLOATS)
@example(True, float("nan"), float("inf"))
@example(5, 60, 30.0)
def test_figures_of_a_breaker_written_by_hand_never_stop_a_settlement(
    failures: Any, window_s: Any, open_for_s: Any
) -> None:
    figures = figures_of(failures, window_s, open_for_s)
    assert figures.over(BreakerGate("bank", 5, 60.0, 30.0)).makes_sense
    assert figures_of(*figures) == figures


@fuzzed
@given(st.lists(any_text | st.tuples(any_text, any_text | numbers.map(as_word)).map("=".join), max_size=4))
def test_queues_to_serve_have_a_name_and_a_finite_weight_or_are_refused(entries: list[str]) -> None:
    try:
        served = parse_served(entries)
    except InvalidOptions:
        return
    assert all(name and (weight is None or 0 <= weight < float("inf")) for name, weight in served.items())


@fuzzed
@given(scalars | st.uuids() | st.uuids().map(str) | st.uuids().map(lambda each: each.hex))
@example(UNWRITABLE)
def test_an_id_is_a_uuid_or_refused(text: Any) -> None:
    try:
        parsed = parse_job_id(text)
    except InvalidArguments:
        return
    assert isinstance(parsed, UUID)
    assert parse_job_id(str(parsed)) == parsed == parse_job_id(parsed.hex)


@fuzzed
@given(st.datetimes(timezones=ZONES))
def test_every_moment_has_a_first_id(moment: datetime) -> None:
    assert 0 <= first_id_at(moment.timestamp()).int < 1 << 128
