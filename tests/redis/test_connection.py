"""What is refused at the start with the remedy, what is waited for, and that no reply ever goes to the wrong asker."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.proxies.redis import RedisProxy
from tests.redis.apps import Shop, until
from tests.redis.fixtures import StartRedis

from holdfast import ConfigError, Holdfast
from holdfast.local import LocalRedis
from holdfast.runtime.clock import SystemClock
from holdfast.telemetry.events import Event
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.transport_events import TransportDown, TransportUp
from holdfast.transports.redis_streams import RedisStreams, parse_address
from holdfast.transports.redis_streams.line import Line
from holdfast.transports.redis_streams.wire import Unreachable, connect


class Watched(RedisStreams):
    """With what it has told."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.told: list[Event] = []
        telemetry = Telemetry()
        telemetry.attach(self.told.append)
        super().__init__(
            parse_address(url), prefix="holdfast-test:x", clock=SystemClock(), telemetry=telemetry, **settings
        )


async def refusal(url: str) -> str:
    transport = Watched(url)
    with pytest.raises(ConfigError) as caught:
        await transport.open()
    await transport.close()
    return str(caught.value)


# ---------------------------------------------------------------- refused


@scene
async def test_an_eviction_policy_is_refused_with_the_remedy(start_redis: StartRedis) -> None:
    said = await refusal(start_redis(settings={"maxmemory-policy": "allkeys-lru"}).url)
    assert "maxmemory-policy is allkeys-lru" in said
    assert "set `maxmemory-policy noeviction`" in said


@scene
async def test_a_wrong_password_is_refused_and_not_shown(own_redis: LocalRedis) -> None:
    said = await refusal(own_redis.url.replace(own_redis.password, "hunter2"))
    assert "does not let us in" in said
    assert "correct user and password in the setting redis" in said
    assert "hunter2" not in said
    assert "NOAUTH" in await refusal(f"redis://127.0.0.1:{own_redis.port}")


@scene
async def test_a_user_without_the_rights_is_refused(own_redis: LocalRedis) -> None:
    own_redis.ask("ACL", "SETUSER", "weak", "on", ">secret", "+ping", "+client", "+select")
    said = await refusal(f"redis://weak:secret@127.0.0.1:{own_redis.port}/0")
    assert "NOPERM" in said


@scene
async def test_a_user_with_the_rights_that_the_docs_name_can_work(
    own_redis: LocalRedis, postgres_tables: PostgresSchema
) -> None:
    rights = re.search(r"^ACL SETUSER (.*)$", Path("docs/redis.md").read_text("utf-8"), re.MULTILINE)
    assert rights is not None
    own_redis.ask("ACL", "SETUSER", *rights[1].split())
    here = Shop(postgres_tables, f"redis://holdfast:secret@127.0.0.1:{own_redis.port}/0", poll_s=60.0, pooled=True)
    async with here.hf, here.hf.worker():
        for n in range(5):
            await here.enqueue(n)
            await here.until_ran(n + 1)
    assert here.told(TransportDown) == []


@scene
async def test_an_old_server_is_refused(own_redis: LocalRedis) -> None:
    version = re.search(rb"redis_version:(\S+)", own_redis.ask("INFO", "server"))
    assert version is not None
    with RedisProxy(own_redis) as proxy:
        proxy.rewrite(b"redis_version:" + version[1][:3], b"redis_version:5.0")
        assert "is version 5.0" in await refusal(proxy.url)


@scene
async def test_a_database_that_is_not_there_is_refused(own_redis: LocalRedis) -> None:
    assert "has no such database" in await refusal(own_redis.url[:-1] + "4711")


@scene
async def test_redis_beside_a_file_is_refused_and_left_out_in_memory(tmp_path: Path, redis_url: str) -> None:
    app = Holdfast(f"sqlite:///{tmp_path}/jobs.db", redis=redis_url)
    with pytest.raises(ConfigError, match="Redis goes with a PostgreSQL store"):
        await app.open()
    async with Holdfast(":memory:", redis=redis_url):
        pass


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://host", "is not the URL of a Redis"),
        ("redis://host:0", "a port that is not a number"),
        ("redis://host:x", "a port that is not a number"),
        ("redis://host/x", "names no database"),
        ("redis://host/0/1", "names no database"),
        ("redis://:hunter2@host?timeout=1", "has a parameter 'timeout'"),
        ("redis+sentinel://host", "does not name a master"),
        ("redis://[::1", "cannot be taken apart"),
    ],
)
def test_an_address_that_is_none_gets_a_sentence(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        parse_address(url)
    assert "hunter2" not in str(caught.value)


def test_an_address_is_taken_apart() -> None:
    plain = parse_address("redis://")
    assert (plain.hosts, plain.db, plain.password, plain.tls) == ((("localhost", 6379),), 0, None, False)
    full = parse_address("rediss://us%40er:p%3Ass@[::1]:7000/3?cafile=/ca.pem")
    assert (full.hosts, full.db, full.username, full.password) == ((("::1", 7000),), 3, "us@er", "p:ss")
    assert (full.tls, full.cafile) == (True, "/ca.pem")
    behind = parse_address("redis+sentinel://:pw@a,b:7000/main/2?sentinel_password=s")
    assert (behind.hosts, behind.master, behind.db) == ((("a", 26379), ("b", 7000)), "main", 2)
    assert "pw" not in repr(behind)


@scene
async def test_the_password_may_be_in_a_file(own_redis: LocalRedis, tmp_path: Path) -> None:
    transport = Watched(own_redis.passfile_url)
    assert own_redis.password not in own_redis.passfile_url
    await transport.open()
    assert transport.is_up
    await transport.close()
    assert "cannot be read" in await refusal(f"redis://127.0.0.1:{own_redis.port}?passfile={tmp_path}/none")


# ---------------------------------------------------------------- waited for


@scene
async def test_an_app_starts_without_its_redis_and_uses_it_later(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    own_redis.stop()
    here = Shop(postgres_tables, own_redis.url)
    async with here.hf, here.hf.worker():
        await here.enqueue(0)
        await here.until_ran(1)
        await asyncio.to_thread(own_redis.start)
        await until(lambda: bool(here.told(TransportUp)), "Redis")
        await here.enqueue(1)
        await here.until_ran(2)
    assert [type(event) for event in here.told(TransportDown, TransportUp)] == [TransportDown, TransportUp]


@scene
async def test_a_replica_is_not_written_to_until_it_is_promoted(own_redis: LocalRedis, start_redis: StartRedis) -> None:
    master = f"127.0.0.1 {own_redis.port}"
    replica = start_redis(settings={"replicaof": master, "masterauth": own_redis.password})
    transport = Watched(replica.url)
    await transport.open()
    assert not transport.is_up
    assert "replica" in transport.told[0].error  # type: ignore[union-attr]
    replica.ask("REPLICAOF", "NO", "ONE")
    await until(lambda: transport.is_up, "the promotion to be noticed")
    await transport.close()


@scene
async def test_a_redis_that_is_full_is_said_once_and_used_when_there_is_room(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    here = Shop(postgres_tables, own_redis.url)
    async with here.hf, here.hf.worker():
        await here.enqueue(0)
        await here.until_ran(1)
        own_redis.ask("CONFIG", "SET", "maxmemory", "1")
        for n in range(1, 30):
            await here.enqueue(n)
            await here.until_ran(n + 1)
        assert [type(event) for event in here.told(TransportDown, TransportUp)] == [TransportDown]
        own_redis.ask("CONFIG", "SET", "maxmemory", "0")
        await until(lambda: bool(here.told(TransportUp)), "room")
    assert "OOM" in here.told(TransportDown)[0].error


@scene
async def test_one_that_refuses_again_and_again_is_not_tried_every_moment(own_redis: LocalRedis) -> None:
    transport = Watched(own_redis.url)
    await transport.open()
    for _ in range(4):
        await until(lambda: transport.is_up, "the next try")
        own_redis.ask("SET", "holdfast-test:x:{mail}:meta", "somebody else's")
        await transport.tend(["mail"])
        assert not transport.is_up
    told = transport.told
    assert [type(event) for event in told] == [TransportDown, TransportUp] * 3 + [TransportDown]
    await transport.close()


@scene
async def test_what_answers_may_be_no_redis_at_all(tmp_path: Path) -> None:
    async def hello(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(hello, "127.0.0.1", 0) as server:
        transport = Watched(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await transport.open()
        assert not transport.is_up
        await transport.close()


# ---------------------------------------------------------------- whose reply


@scene
async def test_a_cancelled_command_leaves_no_reply_for_the_next(own_redis: LocalRedis) -> None:
    """redis-py gave strangers each other's data that way (CVE-2023-28858)."""
    with RedisProxy(own_redis) as proxy:
        line = Line(lambda: connect(parse_address(proxy.url)), answer_s=5.0)
        await line.ask("PING")
        proxy.delay(0.02)
        chance = random.Random(7)
        for n in range(60):
            asking = asyncio.create_task(line.ask("ECHO", f"lost {n}"))
            await asyncio.sleep(chance.uniform(0.0, 0.03))
            asking.cancel()
            await asyncio.wait({asking})
            assert await line.ask("ECHO", f"kept {n}") == f"kept {n}".encode()
        line.drop()


@scene
async def test_a_command_that_takes_too_long_leaves_no_reply_either(own_redis: LocalRedis) -> None:
    with RedisProxy(own_redis) as proxy:
        line = Line(lambda: connect(parse_address(proxy.url)), answer_s=5.0)
        await line.ask("PING")
        proxy.delay(0.1)
        with pytest.raises(Unreachable, match="no answer within"):
            await line.ask("ECHO", "lost", within_s=0.01)
        proxy.delay(0.0)
        assert await line.ask("ECHO", "kept") == b"kept"
        line.drop()


@scene
async def test_many_who_ask_at_once_each_get_their_own_answer(own_redis: LocalRedis) -> None:
    line = Line(lambda: connect(parse_address(own_redis.url)), answer_s=5.0)
    words = [f"word {n}" for n in range(200)]
    assert await asyncio.gather(*(line.ask("ECHO", word) for word in words)) == [word.encode() for word in words]
    line.drop()
    wire = await connect(parse_address(own_redis.url))
    wire.close()
    with pytest.raises(Unreachable):
        await wire.ask("PING", within_s=1.0)
