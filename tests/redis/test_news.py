"""Settings of queues: true in the store alone; Redis only says that they have changed, and may forget or make it up."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until

from holdfast.core.fairness import Lane
from holdfast.core.queue import QueueSettings
from holdfast.local import LocalRedis
from holdfast.worker import fetcher

LONG_S = 60.0


@pytest.fixture(autouse=True)
def no_look_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker would look at settings by itself once a second."""
    monkeypatch.setattr(fetcher, "_SETTINGS_EVERY_S", LONG_S)


@pytest.fixture
def pair(postgres_tables: PostgresSchema, redis_url: str) -> Any:
    """A worker's process and an operator's, which hear of each other by Redis alone: a pooler lets no NOTIFY pass."""
    return lambda: tuple(Shop(postgres_tables, redis_url, poll_s=LONG_S, pooled=True) for _ in range(2))


def weight_of(worker: Any) -> float:
    return float(worker.session._fetcher._weights[Lane("default", 5)])


@scene
async def test_a_change_is_taken_up_by_way_of_redis(pair: Any) -> None:
    here, operator = pair()
    async with here.hf, operator.hf, here.hf.worker() as worker:
        await operator.enqueue(0)
        await here.until_ran(1)
        usual = weight_of(worker)
        await operator.hf._opened.store.set_queue("default", QueueSettings(weight=7.0))
        await until(lambda: weight_of(worker) == 7.0 * usual, "the new weight")


@scene
async def test_a_queue_that_is_resumed_elsewhere_goes_on_at_once(pair: Any) -> None:
    here, operator = pair()
    async with here.hf, operator.hf, here.hf.worker():
        await operator.enqueue(0)
        await here.until_ran(1)
        await operator.hf.queues.pause("default")
        await operator.enqueue(*range(1, 10))
        await until(lambda: _is_read(here), "the announcements to be dealt with")
        assert here.ran == [0]
        await operator.hf.queues.resume("default")
        await here.until_ran(10)


async def _is_read(here: Shop) -> bool:
    return not (await here.length() or await here.pending())


@scene
async def test_a_redis_that_has_lost_everything_has_lost_no_setting(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    here, operator = (Shop(postgres_tables, own_redis.url, poll_s=LONG_S, pooled=True) for _ in range(2))
    async with here.hf, operator.hf, here.hf.worker() as worker:
        await operator.enqueue(0)
        await here.until_ran(1)
        usual = weight_of(worker)
        await operator.hf._opened.store.set_queue("default", QueueSettings(weight=7.0))
        await until(lambda: weight_of(worker) == 7.0 * usual, "the new weight")
        own_redis.ask("FLUSHALL")
        await operator.enqueue(1)
        await here.until_ran(2)
        assert weight_of(worker) == 7.0 * usual
    assert (await _settings(operator))["default"].weight == 7.0


@scene
async def test_what_redis_says_is_never_taken_for_a_setting(pair: Any) -> None:
    """Old, forged or repeated: it makes a worker look into the store, and what is there holds."""
    here, operator = pair()
    async with here.hf, operator.hf, here.hf.worker() as worker, here.line() as ask:
        await operator.hf._opened.store.set_queue("default", QueueSettings(weight=3.0))
        await operator.enqueue(0)
        await here.until_ran(1)
        meta = f"{await here.prefix()}:{{default}}:meta"
        old = await ask("HGET", meta, "news")
        await operator.hf._opened.store.set_queue("default", QueueSettings(weight=7.0))
        for n, said in enumerate((old, b"weight=100", b"", b"\xff" * 100), 1):
            await ask("HSET", meta, "news", said)
            await operator.enqueue(n)
            await here.until_ran(n + 1)
        usual = 10
        await until(lambda: weight_of(worker) == 7.0 * usual, "what the store says")


@scene
async def test_a_change_while_redis_is_away_is_no_error(postgres_tables: PostgresSchema, own_redis: LocalRedis) -> None:
    here, operator = (Shop(postgres_tables, own_redis.url, pooled=True) for _ in range(2))
    async with here.hf, operator.hf, here.hf.worker():
        await operator.enqueue(0)
        await here.until_ran(1)
        own_redis.kill()
        await operator.hf.queues.pause("default")
        await operator.hf.queues.resume("default")
        await operator.enqueue(1)
        await here.until_ran(2)


async def _settings(here: Shop) -> dict[str, QueueSettings]:
    async with here.hf:
        found: dict[str, QueueSettings] = await here.hf._opened.store.queue_settings()
        return found
