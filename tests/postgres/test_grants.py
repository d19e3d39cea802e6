"""Each duty can be done with its own grants, and with nothing beyond them; installations do not see each other."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from tests.postgres.fixtures import Admin

from holdfast.core.cause import Cause
from holdfast.core.errors import InvalidOptions, StoreBroken
from holdfast.core.gates import SlotGate
from holdfast.core.job import KeyClaim
from holdfast.core.queue import QueueSettings
from holdfast.core.settlement import Bury, Park, Retry, Succeed, Verdict
from holdfast.core.state import State
from holdfast.stores.api_keys import KeyUse
from holdfast.stores.base import CancelAnswer, Hint, Inserted, JobFilter
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.postgres.grants import DUTIES, grants
from holdfast.testing.contracts.api_keys import a_key
from holdfast.testing.contracts.arrange import ERROR, LANE, LONG_S, QUEUE, a_job, a_worker, claim, enlist, insert, start

SCHEMA = "work"


class Roles:
    """A database whose tables the migrator has made, and a role for each duty."""

    def __init__(self, url: str, names: dict[str, str]) -> None:
        self._url = url
        self.names = names

    def url_of(self, duty: str) -> str:
        parts = urlsplit(self._url)
        place = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{self.names[duty]}:secret@{place}"))

    @asynccontextmanager
    async def store(self, duty: str, *, schema: str = SCHEMA) -> Any:
        store = PostgresStore(self.url_of(duty), schema=schema)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    def refused(self, duty: str, statement: str) -> bool:
        """Whether the role lacks the right; nothing is changed either way."""
        with psycopg.connect(self.url_of(duty)) as connection:
            try:
                connection.execute(statement)  # type: ignore[arg-type]  # texts of this file
            except psycopg.errors.InsufficientPrivilege:
                return True
            finally:
                connection.rollback()
        return False


@pytest.fixture
def roles(postgres_admin: Admin) -> Iterator[Roles]:
    database = postgres_admin.create_database()
    names = {duty: f"hf_{duty}_{secrets.token_hex(4)}" for duty in DUTIES}
    for name in names.values():
        postgres_admin.connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'")  # type: ignore[arg-type]
    found = Roles(postgres_admin.url_of(database), names)
    with psycopg.connect(postgres_admin.url_of(database), autocommit=True) as connection:
        connection.execute(grants(SCHEMA, [("migrator", names["migrator"])]))  # type: ignore[arg-type]
    asyncio.run(_migrate(found))
    yield found
    postgres_admin.drop_database(database)
    for name in names.values():
        postgres_admin.connection.execute(f"DROP ROLE {name}")  # type: ignore[arg-type]


async def _migrate(roles: Roles) -> None:
    for schema in (SCHEMA, "play"):
        store = PostgresStore(roles.url_of("migrator"), schema=schema)
        await store.migrate()
        await store.close()
    others = [(duty, role) for duty, role in roles.names.items() if duty != "migrator"]
    with psycopg.connect(roles.url_of("migrator"), autocommit=True) as connection:
        connection.execute(grants(SCHEMA, others))  # type: ignore[arg-type]


# ---------------------------------------------------------------- each with its own grants


async def _api(store: PostgresStore) -> None:
    first, *_ = await insert(store, a_job(tags=("red",)), a_job(delay_s=LONG_S), a_job(gates=(SlotGate("k", 1),)))
    await insert(store, a_job(waits_for=(first,)), a_job(expires_in_s=LONG_S))
    keyed = a_job(key=KeyClaim("order-1", b"f", LONG_S))
    assert isinstance((await store.insert_jobs([keyed]))[0], Inserted)
    assert await store.routes() == (), "who enqueues has to know where to"
    assert await store.cancel_jobs([first], reason="twice") == [CancelAnswer.CANCELLED]
    await store.record_act(by="shop", what="cancel", name=str(first), said={})
    await store.note_key_uses({key.id: KeyUse(key.created_at) for key in [a_key()]})
    await _read(store)


async def _read(store: PostgresStore) -> None:
    assert await store.list_jobs(JobFilter(queue=QUEUE), limit=10)
    assert await store.count_jobs(JobFilter()) > 0
    assert [queue.name for queue in await store.list_queues()] == [QUEUE]
    await store.list_workers()
    await store.endings([(await store.list_jobs(JobFilter(), limit=1))[0].id])


async def _worker(store: PostgresStore) -> None:
    worker = a_worker()
    await store.register_worker(worker, lease_s=LONG_S)
    await store.renew_worker(worker.id, lease_s=LONG_S, held_for_s=0)
    done, again, dead, off = [await start(store, worker=worker.id) for _ in range(4)]
    assert await store.record_progress(worker.id, done.id, done.token, done=1, total=2, stage="half")
    verdicts = await store.settle_jobs(
        worker.id,
        [
            Succeed(done.id, done.token, b"1"),
            Retry(again.id, again.token, 0.0, ERROR),
            Bury(dead.id, dead.token, "permanent", ERROR),
            Park(off.id, off.token, "unknown_task", "t"),
        ],
    )
    assert verdicts == [Verdict.APPLIED] * 4
    assert (await store.promote_jobs(limit=10)).promoted == 1
    assert await store.unpark_jobs(reason="unknown_task", keys=["t"]) == 1
    assert len(await claim(store, worker.id)) == 2
    await insert(store, a_job(tags=("blue",)), a_job(gates=(SlotGate("k", 1),)))
    await claim(store, worker.id)
    assert await store.hand_back_worker(worker.id, cause=Cause.HANDED_BACK, why="stops") == 4
    gone = await enlist(store, lease_s=-1.0)
    assert gone in (await store.reap_workers(limit=10)).workers
    await store.expire_jobs(limit=10)
    await store.prune_jobs(keep_succeeded_s=0, keep_cancelled_s=0, limit=10)
    await store.sweep(limit=10)
    await _read(store)


async def _operator(store: PostgresStore) -> None:
    await _api(store)
    await store.set_queue(QUEUE, QueueSettings(paused=True))
    await store.set_route("shop.*", queue="slow", priority=None, by="ada")
    await store.set_route("shop.*", queue=None, priority=None, by="ada")
    await store.purge_queue(QUEUE, reason="emptied", limit=100)
    key = a_key()
    assert await store.add_api_key(key, by="me")
    assert await store.rotate_api_key(key.id, b"new", grace_s=0, by="me")
    await store.note_key_uses({key.id: KeyUse(key.created_at)})
    assert await store.revoke_api_key(key.id, by="me")


async def _dashboard(store: PostgresStore) -> None:
    await _read(store)
    with pytest.raises(StoreBroken, match="grants of each role"):
        await store.insert_jobs([a_job()])
    with pytest.raises(StoreBroken):
        await store.cancel_jobs([a_job().id], reason="no")


DUTY: dict[str, Callable[[PostgresStore], Awaitable[None]]] = {
    "api": _api,
    "worker": _worker,
    "operator": _operator,
    "dashboard": _dashboard,
}


@pytest.mark.parametrize("duty", DUTY)
def test_a_role_can_do_its_whole_duty(roles: Roles, duty: str) -> None:
    asyncio.run(_do(roles, duty))


async def _do(roles: Roles, duty: str) -> None:
    if duty == "dashboard":
        async with roles.store("api") as store:
            await insert(store, a_job())
    async with roles.store(duty) as store:
        await DUTY[duty](store)


def test_an_operator_decides_on_dead_letters(roles: Roles) -> None:
    asyncio.run(_decide(roles))


async def _decide(roles: Roles) -> None:
    async with roles.store("worker") as store:
        worker = await enlist(store)
        runs = [await start(store, worker=worker) for _ in range(2)]
        await store.settle_jobs(worker, [Bury(run.id, run.token, "permanent", ERROR) for run in runs])
        with pytest.raises(StoreBroken):
            await store.purge_dead([runs[0].id])
    async with roles.store("operator") as store:
        assert await store.edit_dead(runs[0].id, payload=b'{"args":[],"kwargs":{}}')
        assert await store.replay_jobs([runs[0].id]) == 1
        assert await store.purge_dead([runs[1].id]) == 1
        assert await store.count_jobs(JobFilter(state=State.DEAD)) == 0


LACKS = {
    "api": (
        f"SELECT {SCHEMA}.claim_jobs(NULL, NULL, NULL, NULL, NULL, NULL)",
        f"SELECT {SCHEMA}.settle_jobs(NULL, NULL, NULL, NULL)",
        f"DELETE FROM {SCHEMA}.job",
        f"DELETE FROM {SCHEMA}.dead",
        f"INSERT INTO {SCHEMA}.active SELECT * FROM {SCHEMA}.active",
        f"DELETE FROM {SCHEMA}.active",
        f"INSERT INTO {SCHEMA}.worker SELECT * FROM {SCHEMA}.worker",
        f"UPDATE {SCHEMA}.queue_setting SET paused = true",
        f"UPDATE {SCHEMA}.api_key SET digest = ''",
        f"INSERT INTO {SCHEMA}.api_key SELECT * FROM {SCHEMA}.api_key",
        f"UPDATE {SCHEMA}.setting_change SET by = 'somebody else'",
    ),
    "operator": (
        f"DELETE FROM {SCHEMA}.setting_change",
        f"SELECT {SCHEMA}.claim_jobs(NULL, NULL, NULL, NULL, NULL, NULL)",
        f"DELETE FROM {SCHEMA}.active",
        f"INSERT INTO {SCHEMA}.dead SELECT * FROM {SCHEMA}.dead",
    ),
    "worker": (
        f"DELETE FROM {SCHEMA}.dead",
        f"UPDATE {SCHEMA}.job SET payload = ''",
        f"UPDATE {SCHEMA}.queue_setting SET paused = true",
        f"UPDATE {SCHEMA}.api_key SET used_at = NULL",
    ),
    "dashboard": (f"SELECT nextval('{SCHEMA}.place')",),
}
_NOBODY = (
    f"CREATE TABLE {SCHEMA}.mine ()",
    f"DROP TABLE {SCHEMA}.job",
    f"TRUNCATE {SCHEMA}.job",
    f"INSERT INTO {SCHEMA}.migration VALUES (99, 99, 'x')",
    f"CREATE OR REPLACE FUNCTION {SCHEMA}.clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
    "SELECT 1 FROM play.job",
    "SELECT play.clock()",
)


@pytest.mark.parametrize("duty", LACKS)
def test_a_role_lacks_what_its_duty_does_not_need(roles: Roles, duty: str) -> None:
    allowed = [statement for statement in (*LACKS[duty], *_NOBODY) if not roles.refused(duty, statement)]
    assert not allowed


def test_a_dashboard_can_write_nothing(roles: Roles) -> None:
    with psycopg.connect(roles.url_of("migrator")) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (SCHEMA,)).fetchall()
    assert len(tables) > 20
    for (table,) in tables:
        assert roles.refused("dashboard", f"DELETE FROM {SCHEMA}.{table}"), table
        assert roles.refused("dashboard", f"INSERT INTO {SCHEMA}.{table} DEFAULT VALUES"), table


@pytest.mark.parametrize(("duty", "role"), [("boss", "x"), ("api", ""), ("api", "a\0b")])
def test_a_grant_that_makes_no_sense_is_refused(duty: str, role: str) -> None:
    with pytest.raises(InvalidOptions):
        grants(SCHEMA, [(duty, role)])


def test_a_role_may_have_any_name() -> None:
    text = grants(SCHEMA, [("api", 'we"b; DROP TABLE x'), ("migrator", "o'neil")])
    assert 'TO "we""b; DROP TABLE x";' in text
    assert "'o''neil'" in text


# ---------------------------------------------------------------- several installations in one database


def test_two_installations_in_one_database_do_not_see_each_other(roles: Roles) -> None:
    asyncio.run(_two(roles))


async def _two(roles: Roles) -> None:
    async with (
        roles.store("migrator") as work,
        roles.store("migrator", schema="play") as play,
        roles.store("migrator", schema="play") as other,
    ):
        heard: dict[str, asyncio.Queue[Hint]] = {"work": asyncio.Queue(), "other": asyncio.Queue()}
        work.subscribe(heard["work"].put_nowait)
        other.subscribe(heard["other"].put_nowait)
        for each in heard.values():
            assert await each.get() is Hint.ANYTHING, "from now on it listens"
        [job_id] = await insert(play, a_job())
        while not Hint.READY & await heard["other"].get():
            pass
        # What `play` tells goes out before the next hint of `work`, so that one would have been heard by now.
        assert await work.job_infos([job_id]) == [None]
        assert not (await work.claim_jobs(await enlist(work), {LANE: 1}, deadline_s=10)).jobs
        assert heard["work"].empty()
        assert len(await claim(play, await enlist(play))) == 1
