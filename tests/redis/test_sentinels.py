"""Behind Sentinels: the master is found, also when one of them does not know yet who it is."""

from __future__ import annotations

import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.redis import RedisProxy
from tests.redis.apps import Shop, until
from tests.redis.fixtures import StartRedis
from tests.redis.test_connection import Watched, refusal

from holdfast.local import LocalRedis
from holdfast.telemetry.transport_events import TransportDown, TransportUp


@scene
async def test_sentinels_say_where_the_master_is_also_after_a_fail_over(
    own_redis: LocalRedis, start_redis: StartRedis, postgres_tables: PostgresSchema
) -> None:
    shared = {"masterauth": own_redis.password, "requirepass": own_redis.password}
    replica = start_redis(settings=shared | {"replicaof": f"127.0.0.1 {own_redis.port}"})
    sentinel = start_redis(
        settings={
            "sentinel monitor": f"main 127.0.0.1 {own_redis.port} 1",
            "sentinel auth-pass": f"main {own_redis.password}",
            "sentinel down-after-milliseconds": "main 300",
            "sentinel failover-timeout": "main 2000",
        },
        sentinel=True,
    )

    def knows_replica() -> bool:
        return b"slaves=1" in sentinel.ask("INFO", "sentinel")

    await until(knows_replica, "the Sentinel to know the replica")
    nobody = "127.0.0.1:1"
    secrets = f"sentinel_password={sentinel.password}"
    url = f"redis+sentinel://:{own_redis.password}@{nobody},127.0.0.1:{sentinel.port}/main/0?{secrets}"
    here = Shop(postgres_tables, url)
    async with here.hf, here.hf.worker():
        for n in range(5):
            await here.enqueue(n)
            await here.until_ran(n + 1)
        assert here.told(TransportDown) == []
        own_redis.kill()
        await here.enqueue(5)
        await here.until_ran(6)
        await until(lambda: bool(here.told(TransportUp)), "the other one")
        for n in range(6, 10):
            await here.enqueue(n)
            await here.until_ran(n + 1)
    assert b"cmdstat_xreadgroup" in replica.ask("INFO", "commandstats")


@scene
async def test_a_master_that_no_sentinel_knows_is_waited_for(start_redis: StartRedis) -> None:
    sentinel = start_redis(sentinel=True)
    transport = Watched(f"redis+sentinel://127.0.0.1:{sentinel.port}/nobody?sentinel_password={sentinel.password}")
    await transport.open()
    assert not transport.is_up
    assert "knows no master nobody" in transport.told[0].error  # type: ignore[union-attr]
    await transport.close()


def sentinel_of(start: StartRedis, master: LocalRedis, port: int = 0) -> LocalRedis:
    """One that has no say of its own: it is told who the master is, and nobody else."""
    return start(
        settings={
            "sentinel monitor": f"main 127.0.0.1 {port or master.port} 2",
            "sentinel auth-pass": f"main {master.password}",
            "requirepass": "sesame",
        },
        sentinel=True,
    )


@pytest.mark.parametrize("deposed", ["is a replica now", "is away"])
@scene
async def test_a_sentinel_that_has_not_heard_of_the_fail_over_is_not_believed(
    own_redis: LocalRedis, start_redis: StartRedis, deposed: str
) -> None:
    old = start_redis(settings={"requirepass": own_redis.password, "masterauth": own_redis.password})
    stale, fresh = sentinel_of(start_redis, old), sentinel_of(start_redis, own_redis)
    if deposed == "is away":
        old.kill()
    else:
        old.ask("REPLICAOF", "127.0.0.1", str(own_redis.port))
    hosts = f"127.0.0.1:{stale.port},127.0.0.1:{fresh.port}"
    transport = Watched(f"redis+sentinel://:{own_redis.password}@{hosts}/main?sentinel_password=sesame")
    await transport.open()
    assert transport.is_up, transport.told
    await transport.close()
    assert b"calls=" in own_redis.ask("INFO", "commandstats").partition(b"cmdstat_set:")[2][:10]


@scene
async def test_a_master_far_away_is_reached_also_behind_many_sentinels(
    own_redis: LocalRedis, start_redis: StartRedis
) -> None:
    """Each of its answers takes a quarter of a second, and a way in takes several."""
    with RedisProxy(own_redis) as proxy:
        proxy.delay(0.25)
        sentinel = sentinel_of(start_redis, own_redis, proxy.port)
        hosts = ",".join([f"127.0.0.1:{sentinel.port}"] * 4)
        transport = Watched(f"redis+sentinel://:{own_redis.password}@{hosts}/main?sentinel_password=sesame")
        await transport.open()
        assert transport.is_up, transport.told
        await transport.close()


@scene
async def test_what_is_no_sentinel_is_told_from_one(own_redis: LocalRedis, start_redis: StartRedis) -> None:
    with RedisProxy(sentinel_of(start_redis, own_redis)) as proxy:
        proxy.answer(":7")
        transport = Watched(f"redis+sentinel://:{own_redis.password}@127.0.0.1:{proxy.port}/main")
        await transport.open()
        [down] = transport.told
        assert f"127.0.0.1:{proxy.port} answers as no Sentinel does" in down.error  # type: ignore[union-attr]
        await transport.close()


@scene
async def test_where_all_sentinels_name_a_replica_it_is_said_and_waited_for(
    own_redis: LocalRedis, start_redis: StartRedis
) -> None:
    sentinel = sentinel_of(start_redis, own_redis)
    other = start_redis(settings={"requirepass": own_redis.password, "masterauth": own_redis.password})
    own_redis.ask("REPLICAOF", "127.0.0.1", str(other.port))
    where = f"127.0.0.1:{sentinel.port}/main?sentinel_password=sesame"
    transport = Watched(f"redis+sentinel://:{own_redis.password}@{where}")
    await transport.open()
    [down] = transport.told
    assert f"says 127.0.0.1:{own_redis.port}: it is a replica" in down.error  # type: ignore[union-attr]
    own_redis.ask("REPLICAOF", "NO", "ONE")
    await until(lambda: transport.is_up, "a master")
    await transport.close()


@scene
async def test_a_wrong_password_is_refused_of_the_sentinel_and_of_the_master(
    own_redis: LocalRedis, start_redis: StartRedis
) -> None:
    sentinel = sentinel_of(start_redis, own_redis)
    where = f"127.0.0.1:{sentinel.port}/main?sentinel_password"
    said = await refusal(f"redis+sentinel://:{own_redis.password}@{where}=hunter2")
    assert f"the Sentinel at 127.0.0.1:{sentinel.port} does not let us in" in said
    assert "correct sentinel_password" in said
    assert "hunter2" not in said
    said = await refusal(f"redis+sentinel://:hunter2@{where}=sesame")
    assert "correct user and password" in said
    assert "hunter2" not in said
