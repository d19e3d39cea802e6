"""A Redis Cluster: each queue on its node, redirections followed, a fail-over survived, and the wrong URL refused."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import pytest
from tests.contract.test_transports import make
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until
from tests.redis.cluster import RedisCluster, cluster_port
from tests.redis.fixtures import StartRedis
from tests.redis.test_connection import Watched, refusal

from holdfast import ConfigError
from holdfast.local import LocalRedis
from holdfast.telemetry.transport_events import TransportDown, TransportUp
from holdfast.testing.contracts.transports import TRANSPORT_CHECKS, Two
from holdfast.transports.redis_streams import parse_address
from holdfast.transports.redis_streams.slots import slot_of

LONG_S = 60.0


@pytest.fixture
def cluster(start_redis: StartRedis) -> RedisCluster:
    return RedisCluster(start_redis)


@pytest.fixture
def shop(postgres_tables: PostgresSchema, cluster: RedisCluster) -> Any:
    return lambda **settings: Shop(postgres_tables, cluster.url, **settings)


def test_a_slot_is_that_of_the_part_in_braces() -> None:
    assert slot_of("123456789") == 0x31C3  # as the specification of Redis Cluster has it
    assert slot_of("holdfast:x:{mail}:meta") == slot_of("holdfast:y:{mail}:5") == slot_of("mail")
    assert slot_of("a{}b") != slot_of("")
    assert slot_of("a{b") == slot_of("a{b")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis+cluster://host:6379/1", "a Redis Cluster has only the first"),
        ("redis://a:1,b:2", "names several hosts"),
        ("redis+cluster://host:x", "a port that is not a number"),
    ],
)
def test_an_address_that_no_cluster_has_gets_a_sentence(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_address(url)


def test_the_address_of_a_cluster_is_taken_apart() -> None:
    address = parse_address("rediss+cluster://us:pw@a,b:7000/0?cafile=/ca.pem")
    assert (address.hosts, address.is_cluster, address.tls) == ((("a", 6379), ("b", 7000)), True, True)
    assert (address.username, address.password, address.cafile) == ("us", "pw", "/ca.pem")
    assert "pw" not in address.place


@scene
async def test_a_cluster_and_a_plain_server_are_not_taken_for_each_other(
    own_redis: LocalRedis, start_redis: StartRedis
) -> None:
    said = await refusal(own_redis.url.replace("redis://", "redis+cluster://"))
    assert f"is no node of a cluster: write redis://127.0.0.1:{own_redis.port}/0" in said
    node = start_redis(settings={"cluster-enabled": "yes"}, port=cluster_port())
    said = await refusal(node.url)
    assert "is a node of a cluster: write redis+cluster://" in said


@scene
async def test_what_a_person_has_to_change_about_a_cluster_is_refused(cluster: RedisCluster) -> None:
    assert "does not let us in" in await refusal(cluster.url.replace(cluster.replica.password, "hunter2"))
    cluster.masters[1].ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    assert "maxmemory-policy is allkeys-lru" in await refusal(cluster.url)


@scene
async def test_a_cluster_without_all_its_slots_is_waited_for(start_redis: StartRedis) -> None:
    node = start_redis(settings={"cluster-enabled": "yes"}, port=cluster_port())
    transport = Watched(node.url.replace("redis://", "redis+cluster://"))
    await transport.open()
    assert not transport.is_up
    assert "slots have no master" in transport.told[0].error  # type: ignore[union-attr]
    node.ask("CLUSTER", "ADDSLOTS", *map(str, range(16_384)))
    await until(lambda: transport.is_up, "the cluster to be whole")
    await transport.close()


@scene
async def test_the_contract_is_kept_in_a_cluster(cluster: RedisCluster) -> None:
    for name, check in TRANSPORT_CHECKS.items():
        prefix = f"holdfast-test:{secrets.token_hex(6)}"
        two = Two(*(make(cluster.url, prefix) for _ in range(2)))
        for each in two:
            await each.open()
            assert each.is_up, name
        await check(two)
        for each in two:
            await each.close()
            assert len(each._connection._lines) == 3, "no connection is left of a consumer"


@scene
async def test_queues_on_every_node_are_served_by_redis_alone(shop: Any, cluster: RedisCluster) -> None:
    queues = [cluster.queue_of(master) for master in cluster.masters]
    here = shop(poll_s=LONG_S, pooled=True, queues=queues)
    async with here.hf, here.hf.worker():
        for n in range(15):
            await here.enqueue(n, queue=queues[n % 3])
            await here.until_ran(n + 1)
        await here.hf.enqueue_many([here.sell.options(queue=queues[n % 3]).request(n) for n in range(15, 300)])
        await here.until_ran(300)
    assert here.told(TransportDown) == []
    assert sorted(here.ran) == list(range(300))
    for master, queue in zip(cluster.masters, queues, strict=True):
        found = [key for key in master.list_keys() if key.startswith(await here.prefix())]
        assert found
        assert all(f"{{{queue}}}" in key for key in found)


@scene
async def test_a_slot_that_moves_is_followed(shop: Any, cluster: RedisCluster) -> None:
    source, target, _ = cluster.masters
    queue = cluster.queue_of(source)
    here = shop(poll_s=LONG_S, pooled=True, queues=[queue])
    async with here.hf, here.hf.worker():
        await here.enqueue(0, queue=queue)
        await here.until_ran(1)
        await until(lambda: len(source.list_keys()) == 11, "all keys of the queue")
        end = cluster.move(queue, source, target)
        await here.enqueue(1, queue=queue)  # the keys are still where they were
        await here.until_ran(2)
        end()
        for n in range(2, 10):
            await here.enqueue(n, queue=queue)
            await here.until_ran(n + 1)
    assert here.told(TransportDown) == []
    assert any(f"{{{queue}}}" in key for key in target.list_keys())


@scene
async def test_keys_that_are_not_yet_on_the_new_node_are_asked_for_there(cluster: RedisCluster) -> None:
    """ASK: the slot is on its way, and has no key yet; the one that takes it makes them."""
    source, target, _ = cluster.masters
    queue = cluster.queue_of(source)
    transport = Watched(cluster.url)
    await transport.open()
    end = cluster.move(queue, source, target)
    line, key = transport._connection.line(), transport._keys.meta(queue)
    for _ in range(3):
        await line.ask("HSET", key, "news", "1", key=key)
    assert target.list_keys() == [key]
    assert source.list_keys() == []
    end()
    assert await line.ask("HGET", key, "news", key=key) == b"1"
    await transport.close()


@scene
async def test_while_a_script_finds_its_keys_on_two_nodes_work_comes_from_the_store(
    shop: Any, cluster: RedisCluster
) -> None:
    source, target, _ = cluster.masters
    queue = cluster.queue_of(source)
    here = shop(queues=[queue])
    async with here.hf, here.hf.worker():
        await here.enqueue(0, queue=queue)
        await here.until_ran(1)
        await until(lambda: len(source.list_keys()) == 11, "all keys of the queue")
        end = cluster.move(queue, source, target)
        words = ("127.0.0.1", str(target.port), await here.stream(queue=queue), "0", "5000", "AUTH", target.password)
        assert source.ask("MIGRATE", *words) == b"+OK"  # one of eleven
        for n in range(1, 20):
            await here.enqueue(n, queue=queue)
            await here.until_ran(n + 1)
        await until(lambda: bool(here.told(TransportDown)), "the move to be noticed")
        assert "on its way from one node" in here.told(TransportDown)[0].error
        end()
        await until(lambda: here.hf._opened.dispatch.transport.is_up, "Redis")
        for n in range(20, 30):
            await here.enqueue(n, queue=queue)
            await here.until_ran(n + 1)
    assert sorted(here.ran) == list(range(30))


@scene
async def test_a_fail_over_is_survived_and_the_new_master_told_of_what_is_ready(
    shop: Any, cluster: RedisCluster
) -> None:
    queue = cluster.queue_of(cluster.masters[0])
    here = shop(queues=[queue])
    async with here.hf, here.hf.worker():
        for n in range(5):
            await here.enqueue(n, queue=queue)
            await here.until_ran(n + 1)
        assert here.told(TransportDown) == []
        cluster.masters[0].kill()
        await here.enqueue(5, queue=queue)
        await here.until_ran(6)
        await until(lambda: bool(here.told(TransportUp)), "the replica to be master")
        assert b"role:master" in cluster.replica.ask("INFO", "replication")
        for n in range(6, 20):
            await here.enqueue(n, queue=queue)
            await here.until_ran(n + 1)
        await until(lambda: _is_served_by(cluster.replica), "entries to be read there")
        # The old one comes back as a replica; whoever asks it is sent on.
        await asyncio.to_thread(cluster.masters[0].start)
        await until(lambda: b"role:slave" in cluster.masters[0].ask("INFO", "replication"), "the old one")
        for n in range(20, 25):
            await here.enqueue(n, queue=queue)
            await here.until_ran(n + 1)
    assert sorted(here.ran) == list(range(25))
    assert [type(event) for event in here.told(TransportDown, TransportUp)] == [TransportDown, TransportUp]


def _is_served_by(node: LocalRedis) -> bool:
    return b"cmdstat_xreadgroup" in node.ask("INFO", "commandstats")


@scene
async def test_a_master_that_answers_nothing_any_more_is_done_without_until_another_has_its_place(
    shop: Any, cluster: RedisCluster
) -> None:
    frozen, *_ = cluster.masters
    queues = [cluster.queue_of(master) for master in cluster.masters]
    here = shop(queues=queues)
    async with here.hf, here.hf.worker():
        await here.enqueue(0, queue=queues[0])
        await here.until_ran(1)
        with frozen.frozen():
            for n in range(1, 10):
                await here.enqueue(n, queue=queues[n % 3])
            await here.until_ran(10)
            await until(lambda: bool(here.told(TransportUp)), "the replica to be master")
            for n in range(10, 20):
                await here.enqueue(n, queue=queues[n % 3])
                await here.until_ran(n + 1)
    assert sorted(here.ran) == list(range(20))


@scene
async def test_a_master_that_is_asked_to_hand_over_is_left_without_a_loss(shop: Any, cluster: RedisCluster) -> None:
    queue = cluster.queue_of(cluster.masters[0])
    here = shop(queues=[queue])
    async with here.hf, here.hf.worker():
        await here.enqueue(0, queue=queue)
        await here.until_ran(1)
        assert cluster.replica.ask("CLUSTER", "FAILOVER") == b"+OK"
        for n in range(1, 50):
            await here.enqueue(n, queue=queue)
        await here.until_ran(50)
        await until(lambda: b"role:master" in cluster.replica.ask("INFO", "replication"), "the hand-over")
        await until(lambda: here.hf._opened.dispatch.transport.is_up, "Redis")
        for n in range(50, 60):
            await here.enqueue(n, queue=queue)
            await here.until_ran(n + 1)
    assert sorted(here.ran) == list(range(60))
