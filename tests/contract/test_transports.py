"""The suite of transports on Redis, and on the store alone."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

import pytest
import uvloop

from holdfast.runtime.clock import SystemClock
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.transports import TRANSPORT_CHECKS, TransportCheck, Two
from holdfast.transports.redis_streams import RedisStreams, parse_address
from holdfast.transports.store_alone import StoreAlone

CHECKS = [pytest.param(check, id=name) for name, check in TRANSPORT_CHECKS.items()]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("check", CHECKS)
def test_redis_streams_keep_the_contract(check: TransportCheck, redis_url: str, run: Callable[..., None]) -> None:
    run(_run(check, redis_url))


async def _run(check: TransportCheck, url: str) -> None:
    prefix = f"holdfast-test:{secrets.token_hex(6)}"
    two = Two(*(make(url, prefix) for _ in range(2)))
    for each in two:
        await each.open()
        assert each.is_up
    try:
        await check(two)
    finally:
        for each in two:
            await each.close()


def make(url: str, prefix: str) -> RedisStreams:
    return RedisStreams(
        parse_address(url), prefix=prefix, clock=SystemClock(), telemetry=Telemetry(), abandoned_s=0.0, dead_s=3600.0
    )


@pytest.mark.parametrize("check", CHECKS)
def test_the_store_alone_keeps_the_contract(check: TransportCheck) -> None:
    asyncio.run(check(Two(StoreAlone(), StoreAlone())))
