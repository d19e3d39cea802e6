"""A password that is changed while workers run: who is inside stays, who comes anew is told what is wrong, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until
from tests.redis.test_connection import Watched

from holdfast.core.fairness import Lane
from holdfast.local import LocalRedis
from holdfast.telemetry.transport_events import TransportDown, TransportRefused, TransportUp


def rotate(redis: LocalRedis, password: str) -> None:
    assert redis.ask("CONFIG", "SET", "requirepass", password) == b"+OK"
    redis.passfile.write_text(password)


@scene
async def test_who_is_inside_stays_and_who_comes_back_is_told_what_is_wrong(
    own_redis: LocalRedis, postgres_tables: PostgresSchema, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(own_redis.password)
    here = Shop(postgres_tables, f"redis://127.0.0.1:{own_redis.port}/0?passfile={secret}")
    changes = (TransportDown, TransportRefused, TransportUp)
    async with here.hf, here.hf.worker():
        await here.enqueue(0)
        await here.until_ran(1)
        await until(lambda: _is_tended(here), "every connection to be open")
        rotate(own_redis, "sesame")
        await here.enqueue(1)
        await here.until_ran(2)
        assert here.told(*changes) == []
        own_redis.kill()
        await until(lambda: bool(here.told(TransportDown)), "its loss to be noticed, which is no matter of passwords")
        await asyncio.to_thread(own_redis.start)
        await until(lambda: bool(here.told(TransportRefused)), "the reason")
        await here.enqueue(2)
        await here.until_ran(3)
        secret.write_text("sesame")
        await until(lambda: bool(here.told(TransportUp)), "the new password to be used")
        await here.enqueue(3)
        await here.until_ran(4)
    assert [type(event) for event in here.told(*changes)] == list(changes)
    [refused] = here.told(TransportRefused)
    assert "does not let us in" in refused.error
    assert "correct user and password in the setting redis" in refused.error


@scene
async def test_a_new_connection_that_is_refused_makes_one_line_and_comes_back_by_itself(own_redis: LocalRedis) -> None:
    before = own_redis.password
    transport = Watched(own_redis.url)
    await transport.open()
    rotate(own_redis, "sesame")
    await transport.consumer("somebody", wake=lambda: None).read({Lane("mail", 5): 1})
    [down] = transport.told
    assert "does not let us in" in down.error  # type: ignore[union-attr]
    refused = own_redis.ask("INFO", "errorstats")
    await until(lambda: own_redis.ask("INFO", "errorstats") != refused, "another try")
    rotate(own_redis, before)
    await until(lambda: transport.is_up, "the password to be right again")
    assert [type(event) for event in transport.told] == [TransportDown, TransportUp]
    await transport.close()


async def _is_tended(here: Shop) -> bool:
    """By the leader; and the idle worker waits for more."""
    async with here.line() as ask:
        filled = bool(await ask("HEXISTS", f"{await here.prefix()}:{{default}}:meta", "filled"))
        clients = (await ask("CLIENT", "LIST")).decode().splitlines()
        return filled and any(" flags=b " in client for client in clients)
