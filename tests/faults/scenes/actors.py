"""Who does the verbs, in the process of a test or in one of its own: a worker, a producer, an operator.

`python -m tests.faults.scenes.actors <directory> <role> [<job> …]`; a worker acts until SIGTERM, the others end.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import UUID

from tests.campaign.child import die_with_parent
from tests.campaign.producer import Ledger
from tests.faults.scenes.cast import Cast, impatient_server
from tests.faults.scenes.market import LEFTOVER
from tests.history import Answer

from holdfast import JobHandle, StoreUnavailable
from holdfast.client import request
from holdfast.stores.api_keys import KeyUse

WORKER, PRODUCER, MIGRATOR = "worker", "producer", "migrator"
_AGAIN_S = 0.02


async def produce(cast: Cast) -> None:
    """By every way in; every id is written down before the store can have heard of it."""
    usual = request.new_job_id
    ledger = Ledger(cast.client)
    try:
        for n in range(2):
            await _single(cast, ledger, n, key=None)
            await _single(cast, ledger, n, key=f"asked-{n}")
            await _bulk(cast, ledger)
    finally:
        request.new_job_id = usual


async def _single(cast: Cast, ledger: Ledger, n: int, *, key: str | None) -> None:
    async def ask() -> list[JobHandle[int]]:
        return [await (cast.work if key is None else cast.work.options(key=key)).enqueue(n)]

    await ledger.call([(key, f"work({n})")], ask)


async def _bulk(cast: Cast, ledger: Ledger) -> None:
    calls = [cast.work.request(n) for n in range(3)]
    await ledger.call([(None, f"work({n})") for n in range(3)], lambda: cast.hf.enqueue_many(calls))


async def _cancel(cast: Cast, jobs: Sequence[UUID]) -> None:
    for job_id in jobs:
        cast.client.cancel(job_id, answer=Answer.ASKED)
        try:
            told = await cast.hf.jobs.cancel(job_id, reason="as told")
        except StoreUnavailable as error:
            cast.client.cancel(job_id, answer=_refusal(error))
            raise
        cast.client.cancel(job_id, answer=Answer.OK, told=told)


async def _replay(cast: Cast, jobs: Sequence[UUID]) -> None:
    for job_id in jobs:
        cast.client.replay(job_id, answer=Answer.ASKED)
        try:
            count = await cast.hf.dead.replay(job_id)
        except StoreUnavailable as error:
            cast.client.replay(job_id, answer=_refusal(error))
            raise
        cast.client.replay(job_id, answer=Answer.OK if count else Answer.FAIL)


async def _edit(cast: Cast, jobs: Sequence[UUID]) -> None:
    for job_id in jobs:
        await cast.hf.dead.edit(job_id, 77)


async def _purge(cast: Cast, jobs: Sequence[UUID]) -> None:
    for job_id in jobs:
        await cast.hf.dead.purge(job_id)


async def _set_queue(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf.queues.set_weights("default", weight=3.0)


async def _purge_queue(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf.queues.purge(LEFTOVER)


async def _set_limit(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf._open_store().set_limit("queue:default", size=3, pace=None, by="somebody")


async def _set_paused(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf._open_store().set_paused(tenant="nobody", paused=True, by="somebody")


async def _set_breaker(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf._open_store().set_breaker("bank", closed=True, by="somebody")


async def _set_breaker_figures(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf.breakers.set("bank", failures=50, by="somebody")


async def _set_tenant_weight(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf.tenants.set_weight("acme", 3.0, by="somebody")


async def _set_route(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf.routes.set("nobody.*", queue="elsewhere", by="somebody")


async def _move(cast: Cast, jobs: Sequence[UUID]) -> None:
    await cast.hf._open_store().move_jobs(jobs, queue="default", priority=9)


async def _add_key(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf.keys.create("the shop", scopes=["submit"], by="somebody")


async def _rotate_key(cast: Cast, _: Sequence[UUID]) -> None:
    made = await cast.hf.keys.create("the shop", scopes=["submit"], by="somebody")
    await cast.hf.keys.rotate(made.key.id, by="somebody")


async def _revoke_key(cast: Cast, _: Sequence[UUID]) -> None:
    made = await cast.hf.keys.create("the shop", scopes=["submit"], by="somebody")
    await cast.hf.keys.revoke(made.key.id, by="somebody")


async def _use_key(cast: Cast, _: Sequence[UUID]) -> None:
    made = await cast.hf.keys.create("the shop", scopes=["submit"], by="somebody")
    await cast.hf.keys.note_uses({made.key.id: KeyUse(made.key.created_at)})


async def _record_act(cast: Cast, _: Sequence[UUID]) -> None:
    await cast.hf.keys.record_act("purge", "dead letters", {"everything": True}, by="somebody")


#: What an operator does, by the verb of the store that it comes to.
DEEDS: dict[str, Callable[[Cast, Sequence[UUID]], Awaitable[None]]] = {
    "cancel_jobs": _cancel,
    "replay_jobs": _replay,
    "edit_dead": _edit,
    "purge_dead": _purge,
    "set_queue": _set_queue,
    "purge_queue": _purge_queue,
    "set_limit": _set_limit,
    "set_paused": _set_paused,
    "set_breaker": _set_breaker,
    "set_breaker_figures": _set_breaker_figures,
    "set_tenant_weight": _set_tenant_weight,
    "set_route": _set_route,
    "move_jobs": _move,
    "add_api_key": _add_key,
    "rotate_api_key": _rotate_key,
    "revoke_api_key": _revoke_key,
    "note_key_uses": _use_key,
    "record_act": _record_act,
}


async def operate(cast: Cast, verb: str, jobs: Sequence[UUID]) -> None:
    """Again until it is done, as a person would."""
    while True:
        try:
            return await DEEDS[verb](cast, jobs)
        except StoreUnavailable:
            await asyncio.sleep(_AGAIN_S)


async def migrate(cast: Cast) -> None:
    """Again while somebody else is at it."""
    while True:
        try:
            return await cast.hf.migrate()
        except StoreUnavailable:
            await asyncio.sleep(_AGAIN_S)


def _refusal(error: StoreUnavailable) -> Answer:
    return Answer.UNKNOWN if error.unknown else Answer.FAIL


async def act(cast: Cast, role: str, jobs: Sequence[UUID]) -> None:
    """All but the worker's part, on an app that is open."""
    await (produce(cast) if role == PRODUCER else operate(cast, role, jobs))


async def _alone(cast: Cast, role: str, jobs: Sequence[UUID]) -> None:
    async with cast.hf:
        await act(cast, role, jobs)


def main(directory: str, role: str, *jobs: str) -> None:
    die_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    with impatient_server():
        cast = Cast.at(Path(directory))
        if role == WORKER:
            cast.hf.run_worker()
        elif role == MIGRATOR:
            asyncio.run(migrate(cast))
        else:
            asyncio.run(_alone(cast, role, [UUID(job) for job in jobs]))


if __name__ == "__main__":
    main(*sys.argv[1:])
