"""The store verbs of `test_store_moments` on PostgreSQL: it fails at one moment and is killed at another.

All the cells are played with HOLDFAST_TEST_CAMPAIGN=1; ordinarily a choice in which every verb, every moment and every
strike occurs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from signal import SIGKILL

import pytest
from tests.campaign.where import Where
from tests.faults.postgres_scenery import PostgresStage, postgres_stage
from tests.faults.rows import TOLD_TWICE, Rows, difference, told_once_more
from tests.faults.scenarios import SCENES
from tests.faults.struck import Stage
from tests.faults.test_store_moments import MOMENTS, REFUSED_TWICE
from tests.postgres.fixtures import PostgresSchema

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.failpoints import armed
from holdfast.stores.moments import VERBS

ALL = bool(os.environ.get("HOLDFAST_TEST_CAMPAIGN"))
FAILED = list(product(VERBS, MOMENTS)) if ALL else [(verb, MOMENTS[n % 3]) for n, verb in enumerate(VERBS)]
KILLED = list(product(VERBS, MOMENTS)) if ALL else [(verb, MOMENTS[(n + 1) % 3]) for n, verb in enumerate(VERBS)]
#: Ordinary jobs in one statement, then those with something attached in a transaction: each job as a whole, and what
#: the first step has committed stays.
IN_TWO_STEPS = {"claim_jobs", "settle_jobs"}


@pytest.fixture(scope="module")
def theatre() -> Iterator[Stage]:
    with Stage() as theatre:
        yield theatre


@pytest.fixture
def stage(postgres_tables: PostgresSchema) -> Iterator[PostgresStage]:
    with postgres_stage(postgres_tables) as stage:
        yield stage


def _undisturbed(verb: str, stage: PostgresStage) -> tuple[Rows, Rows]:
    """What the verb finds and what it leaves; the stage is set again after that."""
    stage.set(verb)
    before = stage.rows()
    stage.play(SCENES[verb].act)
    after = stage.rows()
    assert before != after, f"the scene of {verb} changes nothing: it would prove nothing"
    stage.set(verb)
    return before, after


def _judge(verb: str, stage: PostgresStage, before: Rows, after: Rows, *, has_happened: bool) -> None:
    """It has happened as a whole or not at all, and its repetition makes it happen once."""
    if not (has_happened and verb in IN_TWO_STEPS):
        _assert_rows(stage, after if has_happened else before)
    if has_happened and verb in REFUSED_TWICE:
        with pytest.raises(REFUSED_TWICE[verb]):
            stage.play(SCENES[verb].act)
    else:
        stage.play(SCENES[verb].act)
    if has_happened and verb in TOLD_TWICE:
        assert told_once_more(stage.rows(), after), difference(stage.rows(), after)
    else:
        _assert_rows(stage, after)


def _assert_rows(stage: PostgresStage, expected: Rows) -> None:
    found = stage.rows()
    assert found == expected, difference(found, expected)


@pytest.mark.parametrize(("verb", "moment"), FAILED)
def test_a_verb_that_fails_happens_as_a_whole_or_not_at_all(verb: str, moment: str, stage: PostgresStage) -> None:
    before, after = _undisturbed(verb, stage)
    with armed(f"{verb}.{moment}", "fail"), pytest.raises(StoreUnavailable) as raised:
        stage.play(SCENES[verb].act)
    has_happened = moment == "committed"
    assert raised.value.unknown is has_happened
    _judge(verb, stage, before, after, has_happened=has_happened)


@pytest.mark.parametrize(("verb", "moment"), KILLED)
def test_a_killed_process_leaves_a_verb_done_or_undone(
    verb: str, moment: str, stage: PostgresStage, theatre: Stage
) -> None:
    before, after = _undisturbed(verb, stage)
    where = Where(url=stage.place.url, schema=stage.place.schema)
    assert theatre.play(verb, where, f"{verb}.{moment}=kill9") == -SIGKILL
    _judge(verb, stage, before, after, has_happened=moment == "committed")
