"""Options of a queue: one set over another, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.errors import InvalidOptions
from holdfast.core.queue_options import NO_QUEUE_OPTIONS, OPTION_NAMES, QueueOptions, check_options, told

HUGE = 10**5000
NONE_OF_THEM = dict.fromkeys(OPTION_NAMES, "none")
KEPT = {"concurrency": 10_000, "retry_budget": 1.0, "bypass_priority": 10}


def test_one_set_goes_over_another_field_by_field() -> None:
    configured = QueueOptions(concurrency=3, retry_budget=0.5)
    assert NO_QUEUE_OPTIONS.over(configured) == configured
    assert configured.over(NO_QUEUE_OPTIONS) == configured
    assert QueueOptions(concurrency=1, bypass_priority=0).over(configured) == QueueOptions(
        concurrency=1, retry_budget=0.5, bypass_priority=0
    )
    assert QueueOptions(bypass_priority="bulk").given == {"bypass_priority": 0}, "0 is said, too"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("concurrency", value) for value in (0, -1, True, 1.5, "5", 10_001, HUGE, float("nan"), [])),
        *(("retry_budget", value) for value in (0, 1, 0.0, 1.0, -0.1, True, "0.2", HUGE, float("nan"), float("inf"))),
        *(("bypass_priority", value) for value in (-1, 10, True, "urgent", 5.0, HUGE, [], float("nan"))),
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_nonsense_is_refused_in_a_sentence_that_names_the_queue(name: str, value: Any) -> None:
    with pytest.raises(InvalidOptions, match=r"^queue 'mail': "):
        check_options("mail", {name: value})


def test_none_is_a_word_that_goes_over_what_is_configured_and_bounds_nothing() -> None:
    configured = QueueOptions(concurrency=3, retry_budget=0.5, bypass_priority=9)
    said = check_options("mail", NONE_OF_THEM).over(configured)
    assert said.said == NONE_OF_THEM
    assert (said.bound, said.budget) == (None, None)
    assert (configured.bound, configured.budget) == (3, 0.5)
    assert NO_QUEUE_OPTIONS.said == dict.fromkeys(OPTION_NAMES)
    assert told({"paused": False, "weight": 1.0, **KEPT}) == {"paused": False, "weight": 1.0, **NONE_OF_THEM}


def test_what_is_kept_of_it_is_read_back_and_said_by_nobody() -> None:
    kept = check_options("mail", NONE_OF_THEM)
    assert kept.given == KEPT
    assert QueueOptions(**KEPT) == kept
    for name in ("retry_budget", "bypass_priority"):
        with pytest.raises(InvalidOptions):
            check_options("mail", {name: KEPT[name]})
    assert check_options("mail", {"concurrency": 10_000}).said["concurrency"] == "none", "no worker has more slots"
