"""What guides show outside of their code blocks holds, too."""

from __future__ import annotations

import builtins

import pytest
from tests.docs.pages import ROOT, table_rows

from holdfast import RetryPolicy

RETRIES = (ROOT / "docs" / "guides" / "retries.md").read_text("utf-8")
POLICIES = {wish: code.strip("`") for wish, code in table_rows(RETRIES, "you want")}


@pytest.mark.parametrize("wish", POLICIES)
def test_every_policy_of_the_guide_can_be_made(wish: str) -> None:
    assert isinstance(_made(wish), RetryPolicy)


def test_an_outage_of_an_hour_is_outlasted() -> None:
    policy = _made("to outlast an outage of an hour")
    delays = [policy.decide(ConnectionError(), attempt, rng=lambda: 0.5) for attempt in range(1, policy.max_attempts)]
    assert sum(delays) > 3600, "with the average luck of its jitter"


def _made(wish: str) -> RetryPolicy:
    return eval(POLICIES[wish], vars(builtins) | {"RetryPolicy": RetryPolicy})
