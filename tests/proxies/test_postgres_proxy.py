"""The proxy does to a real server's answers what it says, and nothing to all others."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import psycopg
import pytest
from tests.postgres.fixtures import Admin
from tests.proxies.postgres import PostgresProxy
from tests.proxies.traps import Fate

# Leftovers of one test would be reported in another: this finds them where they belong.
pytestmark = pytest.mark.usefixtures("nothing_left_open")


@pytest.fixture
def nothing_left_open() -> Iterator[None]:
    yield
    gc.collect()


GONE = (asyncpg.ConnectionDoesNotExistError, asyncpg.InterfaceError, ConnectionError)


@pytest.fixture(scope="module")
def database(postgres_admin: Admin) -> Iterator[str]:
    name = postgres_admin.create_database()
    url = postgres_admin.url_of(name)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE item (number int)")
    yield url
    postgres_admin.drop_database(name)


@pytest.fixture
def direct(database: str) -> Iterator[psycopg.Connection[tuple[int]]]:
    """Past the proxy, to see what the server has really done."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("TRUNCATE item")
        yield connection


@pytest.fixture
def proxy(database: str, direct: object) -> Iterator[PostgresProxy]:
    with PostgresProxy(database) as proxy:
        yield proxy


def items(direct: psycopg.Connection[tuple[int]]) -> list[int]:
    return [number for (number,) in direct.execute("SELECT number FROM item ORDER BY number").fetchall()]


@asynccontextmanager
async def client(proxy: PostgresProxy) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(proxy.url)
    try:
        yield connection
    finally:
        connection.terminate()


def test_without_a_trap_everything_passes(proxy: PostgresProxy) -> None:
    async def main() -> None:
        async with client(proxy) as connection:
            await connection.copy_records_to_table("item", records=[(n,) for n in range(5_000)])
            async with connection.transaction():
                rows = await connection.fetch("SELECT number, repeat('x', 1000) FROM item ORDER BY number")
            assert [row[0] for row in rows] == list(range(5_000))
            with pytest.raises(asyncpg.UndefinedTableError):
                await connection.execute("SELECT * FROM nothing")
            assert await connection.fetchval("SELECT $1::int + 1", 1) == 2

    asyncio.run(main())
    with psycopg.connect(proxy.url) as connection:
        assert connection.execute("SELECT 17").fetchone() == (17,)


def test_the_answer_to_a_commit_is_lost_after_the_commit(
    proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]
) -> None:
    trap = proxy.arm("^COMMIT", Fate.LOSE_ANSWER, times=1)

    async def main() -> None:
        async with client(proxy) as connection:
            with pytest.raises(GONE):
                async with connection.transaction():
                    await connection.execute("INSERT INTO item VALUES ($1)", 1)
        async with client(proxy) as connection, connection.transaction():
            await connection.execute("INSERT INTO item VALUES (2)")

    asyncio.run(main())
    assert items(direct) == [1, 2]
    assert trap.sprung == 1


def test_the_answer_to_a_prepared_statement_of_its_own_transaction_is_lost(
    proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]
) -> None:
    trap = proxy.arm("insert into item", Fate.LOSE_ANSWER, skip=1, times=1)

    async def main() -> None:
        async with client(proxy) as connection:
            insert = await connection.prepare("INSERT INTO item VALUES ($1) RETURNING number")
            other = await connection.prepare("SELECT count(*) FROM item")
            assert await insert.fetchval(1) == 1
            assert await other.fetchval() == 1
            with pytest.raises(GONE):
                await insert.fetchval(2)

    asyncio.run(main())
    trap.wait()
    assert items(direct) == [1, 2]


def test_a_lost_request_was_never_run(proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]) -> None:
    proxy.arm("INSERT", Fate.LOSE_REQUEST)

    async def main() -> None:
        async with client(proxy) as connection:
            with pytest.raises(GONE):
                await connection.execute("INSERT INTO item VALUES ($1)", 1)

    asyncio.run(main())
    assert items(direct) == []


def test_an_abandoned_statement_is_still_running_when_the_client_is_told(
    proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]
) -> None:
    trap = proxy.arm("INSERT", Fate.ABANDON)

    async def main() -> None:
        async with client(proxy) as connection:
            with pytest.raises(GONE):
                await connection.execute("INSERT INTO item SELECT 1 FROM pg_advisory_lock(1)")

    direct.execute("SELECT pg_advisory_lock(1)")
    asyncio.run(main())
    assert items(direct) == []
    assert trap.sprung == 0
    direct.execute("SELECT pg_advisory_unlock(1)")
    trap.wait()
    assert items(direct) == [1]


def test_a_client_hangs_and_is_not_told(proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]) -> None:
    trap = proxy.arm("INSERT", Fate.HANG)

    async def main() -> None:
        async with client(proxy) as connection:
            waiting = asyncio.create_task(connection.execute("INSERT INTO item VALUES (1)"))
            await asyncio.to_thread(trap.wait)
            assert items(direct) == [1]
            assert not waiting.done()
            waiting.cancel()
            await asyncio.wait([waiting])

    asyncio.run(main())


def test_a_listener_falls_silent(proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]) -> None:
    trap = proxy.arm("^LISTEN", Fate.FALL_SILENT, times=1)

    async def main() -> None:
        async with client(proxy) as deaf, client(proxy) as hearing:
            heard: list[str] = []
            arrived = asyncio.Event()
            await deaf.add_listener("news", lambda *_: heard.append("deaf"))
            await hearing.add_listener("news", lambda *_: (heard.append("hearing"), arrived.set()))
            trap.wait()
            direct.execute("NOTIFY news")
            await arrived.wait()
            assert heard == ["hearing"]
            assert not deaf.is_closed()

    asyncio.run(main())


def test_an_answer_is_held_until_it_is_released(proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]) -> None:
    trap = proxy.arm("INSERT", Fate.HOLD_ANSWER)

    async def main() -> None:
        async with client(proxy) as connection:
            waiting = asyncio.create_task(connection.fetchval("INSERT INTO item VALUES (1) RETURNING number"))
            await asyncio.to_thread(trap.wait)
            assert items(direct) == [1]
            assert not waiting.done()
            trap.release()
            assert await waiting == 1
            assert await connection.fetchval("SELECT 2") == 2

    asyncio.run(main())


def test_a_part_of_all_answers_is_lost_and_the_same_ones_with_the_same_seed(
    proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]
) -> None:
    def lost(seed: int) -> list[int]:
        trap = proxy.arm("INSERT", Fate.LOSE_ANSWER, probability=0.3, seed=seed)
        told: list[int] = []
        connection: psycopg.Connection[tuple[int]] | None = None
        for number in range(40):
            connection = connection or psycopg.connect(proxy.url, autocommit=True)
            try:
                connection.execute("INSERT INTO item VALUES (%s)", [number])
            except psycopg.OperationalError:
                told.append(number)
                connection.close()
                connection = None
        if connection is not None:
            connection.close()
        trap.disarm()
        assert trap.sprung == len(told)
        return told

    first = lost(seed=1)
    assert 0 < len(first) < 40
    assert lost(seed=1) == first
    assert lost(seed=2) != first
    assert items(direct) == sorted([*range(40)] * 3), "every one of them was done"


def test_what_the_server_says_at_the_end_arrives(proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]) -> None:
    connection = psycopg.connect(proxy.url, autocommit=True)
    direct.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
    with pytest.raises(psycopg.errors.AdminShutdown):
        connection.execute("SELECT pg_sleep(600)")
    connection.close()


def test_new_connections_are_refused_and_admitted_again(proxy: PostgresProxy) -> None:
    async def main() -> None:
        async with client(proxy) as connection:
            proxy.refuse()
            with pytest.raises(OSError):  # noqa: PT011  # by its kind, whatever the system calls it
                await asyncpg.connect(proxy.url)
            assert await connection.fetchval("SELECT 1") == 1
            proxy.admit()
            async with client(proxy) as other:
                assert await other.fetchval("SELECT 2") == 2

    asyncio.run(main())


@pytest.mark.parametrize("reset", [True, False])
def test_all_connections_are_cut(proxy: PostgresProxy, reset: bool) -> None:
    async def main() -> None:
        async with client(proxy) as one, client(proxy) as two:
            assert proxy.connections == 2
            proxy.cut(reset=reset)
            for connection in (one, two):
                with pytest.raises(GONE):
                    await connection.fetchval("SELECT 1")

    asyncio.run(main())


def test_a_frozen_connection_is_half_open_until_it_thaws(
    proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]]
) -> None:
    async def main() -> None:
        async with client(proxy) as connection:
            proxy.freeze()
            waiting = asyncio.create_task(connection.execute("INSERT INTO item VALUES (1)"))
            joining = asyncio.create_task(asyncpg.connect(proxy.url))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(waiting), 0.05)
            assert items(direct) == []
            proxy.thaw()
            await waiting
            await (await joining).close()

    asyncio.run(main())
    assert items(direct) == [1]


def test_a_statement_can_be_cancelled_through_it(proxy: PostgresProxy) -> None:
    async def main() -> None:
        async with client(proxy) as connection:
            with pytest.raises(TimeoutError):
                await connection.execute("SELECT pg_sleep(600)", timeout=0.05)
            assert await connection.fetchval("SELECT 1") == 1

    asyncio.run(main())


@pytest.mark.parametrize("sqlstate", ["40P01", "53100"])
def test_a_refused_statement_was_never_run_and_the_session_goes_on(
    proxy: PostgresProxy, direct: psycopg.Connection[tuple[int]], sqlstate: str
) -> None:
    async def main() -> None:
        async with client(proxy) as connection:
            for pattern in ("INSERT", "^COMMIT"):
                trap = proxy.arm(pattern, Fate.REFUSE, times=1, sqlstate=sqlstate)
                with pytest.raises(asyncpg.PostgresError) as refused:
                    async with connection.transaction():
                        await connection.execute("INSERT INTO item VALUES ($1)", 1)
                assert refused.value.sqlstate == sqlstate
                assert trap.sprung == 1
                assert not connection.is_in_transaction()
            proxy.arm("^INSERT", Fate.REFUSE, times=1, sqlstate=sqlstate)
            with pytest.raises(asyncpg.PostgresError):
                await connection.execute("INSERT INTO item VALUES (2)")
            assert items(direct) == []
            async with connection.transaction():
                await connection.execute("INSERT INTO item VALUES ($1)", 3)

    asyncio.run(main())
    assert items(direct) == [3]


def test_new_connections_are_turned_away_with_an_error(proxy: PostgresProxy) -> None:
    async def main() -> None:
        proxy.turn_away("53300")
        with pytest.raises(asyncpg.TooManyConnectionsError):
            await asyncpg.connect(proxy.url)
        proxy.turn_away(None)
        async with client(proxy) as connection:
            assert await connection.fetchval("SELECT 1") == 1

    asyncio.run(main())


def test_an_answer_may_come_byte_by_byte(proxy: PostgresProxy) -> None:
    async def main() -> None:
        proxy.slow_down()
        async with client(proxy) as connection:
            assert await connection.fetchval("SELECT repeat('x', 300)") == "x" * 300

    asyncio.run(main())
