"""`holdfast doctor` on a Redis: what it is like, what it knows, what is in the way, and what to do about it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.processes import Ended, hold
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until
from tests.redis.cluster import RedisCluster
from tests.redis.fixtures import StartRedis

from holdfast.local import LocalRedis


@pytest.fixture
def doctor(postgres_tables: PostgresSchema, tmp_path: Path) -> Any:
    def examine(redis: str) -> Ended:
        place = {"HOLDFAST_URL": postgres_tables.url, "HOLDFAST_SCHEMA": postgres_tables.schema}
        return hold("doctor", "--json", cwd=tmp_path, HOLDFAST_REDIS=redis, **place)

    return examine


def on_redis(ended: Ended) -> dict[str, tuple[str, str, str]]:
    return {
        each["subject"]: (each["verdict"], each["found"], each["remedy"])
        for each in ended.json_lines
        if each["subject"].startswith("redis")
    }


@scene
async def test_a_sound_one_is_told_with_what_it_knows(
    postgres_tables: PostgresSchema, own_redis: LocalRedis, doctor: Any
) -> None:
    here = Shop(postgres_tables, own_redis.url)
    async with here.hf:
        async with here.hf.worker():
            await here.enqueue(0)
            await here.until_ran(1)
            await until(lambda: _is_filled(here), "all keys")
        await until(lambda: _has_one_more(here), "an announcement")
    announced = await here.length()
    ended = await asyncio.to_thread(doctor, own_redis.url)
    found = on_redis(ended)
    assert ended.code == 0
    assert found["redis"][0] == "ok"
    product = "Valkey" if b"valkey_version:" in own_redis.ask("INFO", "server") else "Redis"
    assert f"127.0.0.1:{own_redis.port}/0, {product} " in found["redis"][1]
    assert found["redis memory"][1].endswith("MiB used, without a bound")
    assert found["redis streams"][:2] == ("ok", f"{announced} announcements, 0 read and not yet dealt with")
    assert found["redis knows"][:2] == ("ok", "what is ready in 1 queue")
    assert own_redis.password not in ended.out + ended.err


async def _is_filled(here: Shop) -> bool:
    async with here.line() as ask:
        return bool(await ask("HEXISTS", f"{await here.prefix()}:{{default}}:meta", "filled"))


async def _has_one_more(here: Shop) -> bool:
    """A single announcement may get lost, and one of a job that has run may be left: nobody reads them here."""
    await here.enqueue(1, 2)
    return await here.length() > 1


@scene
async def test_one_that_knows_nothing_or_has_somebody_elses_key_is_told(
    postgres_tables: PostgresSchema, own_redis: LocalRedis, doctor: Any
) -> None:
    here = Shop(postgres_tables, own_redis.url)
    async with here.hf:
        await here.enqueue(0)
    own_redis.ask("FLUSHALL")
    own_redis.ask("SET", stream := await here.stream(), "somebody else's")
    ended = await asyncio.to_thread(doctor, own_redis.url)
    found = on_redis(ended)
    assert ended.code == 1
    assert found["redis keys"][0] == "fail"
    assert f"`DEL {stream}`" in found["redis keys"][2]
    assert found["redis knows"][:2] == ("warn", "not yet what is ready in default")


def test_one_that_is_away_is_a_warning_and_one_that_is_refused_a_failure(own_redis: LocalRedis, doctor: Any) -> None:
    own_redis.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    ended = doctor(own_redis.url)
    assert ended.code == 1
    assert on_redis(ended)["redis"][0] == "fail"
    assert "set `maxmemory-policy noeviction`" in on_redis(ended)["redis"][1]
    own_redis.stop()
    ended = doctor(own_redis.url)
    assert ended.code == 0
    verdict, said, remedy = on_redis(ended)["redis"]
    assert (verdict, "is not used" in said, "nothing is lost" in remedy) == ("warn", True, True)


def test_one_that_is_nearly_full_is_told(own_redis: LocalRedis, doctor: Any) -> None:
    own_redis.ask("SET", "ballast", "x" * 5_000_000)
    used = re.search(rb"used_memory:(\d+)", own_redis.ask("INFO", "memory"))
    assert used is not None
    own_redis.ask("CONFIG", "SET", "maxmemory", str(int(1.08 * int(used[1]))))
    verdict, said, remedy = on_redis(doctor(own_redis.url))["redis memory"]
    assert (verdict, " MiB used of " in said) == ("warn", True)
    assert "raise maxmemory" in remedy


def test_every_node_of_a_cluster_is_looked_at(start_redis: StartRedis, doctor: Any) -> None:
    cluster = RedisCluster(start_redis)
    found = on_redis(doctor(cluster.url))
    assert found["redis"][1].startswith("the cluster of ")
    assert {f"redis memory, port {master.port}" for master in cluster.masters} <= found.keys()
