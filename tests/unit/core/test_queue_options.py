"""Options of a queue: one set over another, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.errors import InvalidOptions
from holdfast.core.queue_options import NO_QUEUE_OPTIONS, QueueOptions, check_options

HUGE = 10**5000


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
