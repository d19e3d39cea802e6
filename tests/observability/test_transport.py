"""Redis, as metrics and health tell of it: away is worth a look, and no reason to stop."""

from __future__ import annotations

import asyncio

from tests.integration.scene import Heard, scene
from tests.observability.scraping import Scraped
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop

from holdfast.local import LocalRedis
from holdfast.observability import metrics_of, metrics_text, readiness
from holdfast.telemetry.transport_events import TransportDown, TransportUp


@scene
async def test_a_redis_that_goes_and_comes_is_told_of(postgres_schema: PostgresSchema, own_redis: LocalRedis) -> None:
    shop = Shop(postgres_schema, own_redis.url)
    await shop.hf.migrate()
    metrics_of(shop.hf)
    async with shop.hf:
        heard = Heard(shop.hf, TransportDown, TransportUp)
        assert Scraped(await metrics_text(shop.hf)).value("holdfast_transport_up") == 1
        assert (await readiness(shop.hf)).checks["transport"].reason == "Redis is used"
        own_redis.kill()
        await shop.enqueue(1)
        await heard.next(TransportDown)
        seen, found = Scraped(await metrics_text(shop.hf)), await readiness(shop.hf)
        assert [each.value for each in seen.found("holdfast_transport_up")] == [0]
        assert seen.value("holdfast_transport_lost_total") == 1
        assert (found.checks["transport"].status, found.ready) == ("degraded", True)
        await asyncio.to_thread(own_redis.start)
        await heard.next(TransportUp)
        assert Scraped(await metrics_text(shop.hf)).value("holdfast_transport_up") == 1
