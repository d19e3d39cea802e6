"""The one thread that writes: groups, savepoints, answers after the commit, on the loop of whoever asked."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.backpressure import Watermarks
from holdfast.core.errors import NotOpen, StoreDataError, StoreUnavailable
from holdfast.runtime.clock import Clock, ManualClock, SystemClock
from holdfast.runtime.failpoints import arm, release, wait_hit
from holdfast.stores.base import Hint
from holdfast.stores.sqlite import opening
from holdfast.stores.sqlite.transaction import Tx
from holdfast.stores.sqlite.writer import Writer

PATIENCE_S = 30.0
VERB = "set_queue"  # any verb will do: the operations are the tests' own


class Bench:
    """A writer on a file with one table of the test's, and ways to hold it and to look past it."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self.writer = Writer(str(path), clock=clock, watermarks=Watermarks())

    def insert(self, value: object) -> asyncio.Future[Any]:
        return self.writer.submit(VERB, lambda tx: _insert(tx, value))

    async def hold(self) -> Callable[[], None]:
        """Keep the thread busy inside a transaction; returns the way to let it go on."""
        holding, go_on = threading.Event(), threading.Event()

        def block(tx: Tx) -> None:
            holding.set()
            assert go_on.wait(PATIENCE_S)

        self.held = self.writer.submit(VERB, block)
        await asyncio.to_thread(holding.wait, PATIENCE_S)
        return go_on.set

    def rows(self) -> list[Any]:
        """What anybody else sees."""
        with closing(sqlite3.connect(self.path)) as db:
            return [row[0] for row in db.execute("SELECT value FROM test ORDER BY rowid")]


def _insert(tx: Tx, value: object) -> object:
    tx.db.execute("INSERT INTO test VALUES (?)", (value,))
    return value


@asynccontextmanager
async def bench(tmp_path: Path, *, clock: Clock | None = None) -> AsyncIterator[Bench]:
    made = Bench(tmp_path / "jobs.db", clock or SystemClock())
    made.writer.open()
    try:
        await made.writer.submit(VERB, lambda tx: tx.db.execute("CREATE TABLE test (value UNIQUE)") and None)
        yield made
    finally:
        await asyncio.to_thread(made.writer.close)


def test_what_waits_shares_one_transaction_up_to_the_limit(tmp_path: Path) -> None:
    async def main() -> None:
        statements: list[str] = []
        async with bench(tmp_path) as it:
            await it.writer.submit(VERB, lambda tx: tx.db.set_trace_callback(statements.append))
            go_on = await it.hold()
            statements.clear()
            futures = [it.insert(n) for n in range(100)]
            go_on()
            assert await asyncio.gather(*futures) == list(range(100))
            inserts = [n for n, text in enumerate(statements) if text.startswith("INSERT")]
            commits = [n for n, text in enumerate(statements) if text == "COMMIT"]
            assert len(inserts) == 100
            # The one that held the thread, then 64, then the rest.
            assert [sum(n < commit for n in inserts) for commit in commits] == [0, 64, 100]
            assert it.rows() == list(range(100))

    asyncio.run(main())


def test_one_verb_that_fails_is_undone_alone(tmp_path: Path) -> None:
    def fail(tx: Tx) -> None:
        _insert(tx, "half done")
        raise LookupError("a bug")

    async def main() -> None:
        async with bench(tmp_path) as it:
            go_on = await it.hold()
            futures = [it.insert("a"), it.writer.submit(VERB, fail), it.insert("a"), it.insert("b")]
            go_on()
            answers = await asyncio.gather(*futures, return_exceptions=True)
            assert answers[0] == "a"
            assert isinstance(answers[1], LookupError)
            assert isinstance(answers[2], StoreDataError)
            assert "UNIQUE constraint failed: test.value" in str(answers[2])
            assert answers[3] == "b"
            assert it.rows() == ["a", "b"]

    asyncio.run(main())


def test_answers_come_after_the_commit(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            arm(f"{VERB}.inside", "hang")
            future = it.insert("a")
            seen: list[list[object]] = []
            future.add_done_callback(lambda _: seen.append(it.rows()))
            await wait_hit(f"{VERB}.inside")
            assert not future.done()
            assert it.rows() == []
            release(f"{VERB}.inside")
            await future
            await asyncio.sleep(0)
            assert seen == [["a"]]

    asyncio.run(main())


def test_a_transaction_that_cannot_begin_fails_its_whole_group_and_the_next_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_S", 0.01)

    async def main() -> None:
        async with bench(tmp_path) as it:
            with closing(sqlite3.connect(it.path, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")
                answers = await asyncio.gather(it.insert("a"), it.insert("b"), return_exceptions=True)
                assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
                assert not any(answer.unknown for answer in answers if isinstance(answer, StoreUnavailable))
            assert await it.insert("c") == "c"
            assert it.rows() == ["c"]

    asyncio.run(main())


def test_a_full_disk_is_told_and_what_was_answered_is_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            pages = await it.writer.submit(VERB, lambda tx: tx.db.execute("PRAGMA page_count").fetchone()[0])
            await it.writer.submit(VERB, lambda tx: tx.db.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone())
            go_on = await it.hold()
            futures = [it.insert("small"), it.insert(b"x" * 1_000_000), it.insert("also small")]
            go_on()
            answers = await asyncio.gather(*futures, return_exceptions=True)
            assert isinstance(answers[1], StoreUnavailable)
            assert "the disk is full" in str(answers[1])
            kept = [answer for answer in answers if not isinstance(answer, BaseException)]
            assert it.rows() == kept
            await it.writer.submit(VERB, lambda tx: tx.db.execute("PRAGMA max_page_count = 1000000").fetchone())
            assert await it.insert("later") == "later"

    asyncio.run(main())


def test_closing_finishes_what_waits_and_refuses_what_comes_after(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            go_on = await it.hold()
            futures = [it.insert(n) for n in range(5)]
            closing_it = asyncio.to_thread(it.writer.close)
            go_on()
            await closing_it
            assert await asyncio.gather(*futures) == list(range(5))
            with pytest.raises(NotOpen, match=r"^SQLite store .*jobs\.db is not open$"):
                it.insert("late")
            assert it.rows() == list(range(5))

    asyncio.run(main())


def test_a_writer_that_was_never_opened_is_not_open(tmp_path: Path) -> None:
    async def main() -> None:
        writer = Writer(str(tmp_path / "jobs.db"), clock=SystemClock(), watermarks=Watermarks())
        with pytest.raises(NotOpen):
            writer.submit(VERB, lambda tx: None)
        writer.close()

    asyncio.run(main())


def test_every_answer_comes_on_the_loop_that_asked(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            threads: dict[str, set[int]] = {"one": set(), "two": set()}

            async def ask(name: str) -> int:
                for n in range(20):
                    future = it.insert(f"{name} {n}")
                    future.add_done_callback(lambda _: threads[name].add(threading.get_ident()))
                    await future
                return threading.get_ident()

            mine, theirs = await asyncio.gather(ask("one"), asyncio.to_thread(lambda: asyncio.run(ask("two"))))
            assert threads == {"one": {mine}, "two": {theirs}}
            assert mine != theirs

    asyncio.run(main())


def test_a_loop_that_closed_before_its_answer_holds_nobody_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            go_on = await it.hold()

            async def ask_and_leave() -> None:
                it.insert("nobody waits for me")

            await asyncio.to_thread(lambda: asyncio.run(ask_and_leave()))
            mine = it.insert("mine")
            go_on()
            assert await mine == "mine"
            assert it.rows() == ["nobody waits for me", "mine"]

    asyncio.run(main())


def test_a_request_past_its_deadline_is_dropped_unseen(tmp_path: Path) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with bench(tmp_path, clock=clock) as it:
            go_on = await it.hold()
            late = it.writer.submit("claim_jobs", lambda tx: _insert(tx, "late"), deadline_s=1.0)
            in_time = it.writer.submit("claim_jobs", lambda tx: _insert(tx, "in time"), deadline_s=5.0)
            clock.advance(2)
            go_on()
            with pytest.raises(StoreUnavailable, match=r"^claim_jobs: dropped at its deadline$"):
                await late
            assert await in_time == "in time"
            assert it.rows() == ["in time"]

    asyncio.run(main())


def test_a_request_that_nobody_waits_for_any_more_is_not_begun(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            go_on = await it.hold()
            it.insert("withdrawn").cancel()
            other = it.insert("wanted")
            go_on()
            assert await other == "wanted"
            assert it.rows() == ["wanted"]

    asyncio.run(main())


def test_an_answer_lost_after_the_commit_says_that_it_may_be_written(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            for moment, unknown in (("begin", False), ("inside", False), ("committed", True)):
                arm(f"{VERB}.{moment}", "fail")
                with pytest.raises(StoreUnavailable) as caught:
                    await it.insert(moment)
                assert caught.value.unknown is unknown
            assert it.rows() == ["committed"]

    asyncio.run(main())


def test_hints_of_a_group_come_after_its_answers_to_those_who_listen(tmp_path: Path) -> None:
    def hint(tx: Tx) -> None:
        tx.hints |= Hint.TIMER

    async def main() -> None:
        async with bench(tmp_path) as it:
            heard: list[tuple[Hint, bool]] = []
            future: asyncio.Future[None] | None = None
            leave = it.writer.subscribe(lambda hints: heard.append((hints, future is not None and future.done())))
            future = it.writer.submit(VERB, hint)
            await future
            assert heard == [(Hint.TIMER, True)]
            await it.insert("says nothing")
            leave()
            leave()
            await it.writer.submit(VERB, hint)
            assert heard == [(Hint.TIMER, True)]

    asyncio.run(main())


def test_a_commit_of_another_connection_is_noticed(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as it:
            heard: asyncio.Queue[Hint] = asyncio.Queue()
            leave = it.writer.subscribe(heard.put_nowait)
            with closing(sqlite3.connect(it.path)) as db:
                for n in range(3):
                    db.execute("INSERT INTO test VALUES (?)", (n,))
                    db.commit()
                    assert await asyncio.wait_for(heard.get(), PATIENCE_S) is Hint.ANYTHING
            await it.insert("one's own")  # is no news
            leave()
            assert heard.empty()

    asyncio.run(main())


def test_who_listens_first_has_the_file_looked_at_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nobody does, it is left in peace."""
    monkeypatch.setattr("holdfast.stores.sqlite.writer._REST_S", 3600.0)

    async def main() -> None:
        async with bench(tmp_path) as it:
            for _ in range(3):
                heard = asyncio.Event()
                leave = it.writer.subscribe(lambda _, heard=heard: heard.set())  # type: ignore[misc]  # its default
                with closing(sqlite3.connect(it.path)) as db:
                    db.execute("INSERT INTO test VALUES (NULL)")
                    db.commit()
                await asyncio.wait_for(heard.wait(), PATIENCE_S)
                leave()
                await it.insert(None)  # after which the thread rests

    asyncio.run(main())
