"""A job that was moved after it was announced: the old announcement must not bring it where there is no room for it."""

from __future__ import annotations

from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until

from holdfast.local import LocalRedis


@scene
async def test_an_old_announcement_does_not_break_a_queues_bound(
    postgres_tables: PostgresSchema, own_redis: LocalRedis
) -> None:
    """Read together with one of the queue that it had moved to, it was claimed beside that: two, with room for one."""
    bounded = {"queues": ["default", "narrow"], "queue": {"narrow": {"concurrency": 1}}}
    here = Shop(postgres_tables, own_redis.url, concurrency=100, **bounded)
    here.hold.clear()
    async with here.hf:
        moved = await here.sell.enqueue(0)
        await until(lambda: _is_announced(here, 5), "the announcement")
        await here.hf.jobs.move([moved.id], queue="narrow")
        await here.enqueue(1, queue="narrow", priority="critical")
        await until(lambda: _is_announced(here, 9, queue="narrow"), "the other's")
        async with here.hf.worker():
            await here.until_ran(1)
            await until(lambda: _are_at_rest(here), "what is not run to be ready")
            assert len(here.ran) == 1
            here.hold.set()
            await here.until_ran(2)
    assert sorted(here.ran) == [0, 1]


async def _is_announced(here: Shop, priority: int, queue: str = "default") -> bool:
    return await here.length(queue=queue, priority=priority) > 0


async def _are_at_rest(here: Shop) -> bool:
    """One runs, one waits, and no announcement is left that could change it."""
    if await here.length() or await here.length(queue="narrow", priority=9):
        return False
    assert here.ran in ([0], [1]), "both at once"
    return here.query("SELECT (SELECT count(*) FROM active), (SELECT count(*) FROM ready)") == [(1, 1)]
