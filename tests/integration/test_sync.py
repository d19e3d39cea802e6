"""`hf.sync` from ordinary code: many threads, a worker's own threads, forks, and the end of the interpreter."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.docs.subprocesses import environment
from tests.integration.scene import PATIENCE_S, url_of

from holdfast import (
    Holdfast,
    HoldfastError,
    IdempotencyConflict,
    InvalidArguments,
    JobCancelled,
    JobFailed,
    JobNotFound,
    NotOpen,
    PermanentError,
    QueueFull,
    State,
)
from holdfast.runtime.threads import LoopThread


@pytest.fixture
def hf(tmp_path: Path) -> Iterator[Holdfast]:
    app = Holdfast(url_of(tmp_path / "jobs.db"), poll_s=0.05)
    yield app
    app.sync.close()


@contextmanager
def at_work(hf: Holdfast) -> Iterator[None]:
    """A worker for the app's tasks on the app's file, as another process would have it."""
    twin = Holdfast(hf.config.url, poll_s=0.05)
    twin.tasks = hf.tasks
    thread = LoopThread("worker")
    thread.start()
    thread.submit(twin.open()).result(PATIENCE_S)

    async def begin() -> Any:
        worker = twin.worker()
        await worker.start()
        return worker

    worker = thread.submit(begin()).result(PATIENCE_S)
    try:
        yield
    finally:
        thread.submit(worker.stop()).result(PATIENCE_S)
        thread.submit(twin.close()).result(PATIENCE_S)
        thread.stop()


def add_to(hf: Holdfast) -> Any:
    @hf.task(name="add")
    async def add(a: int, b: int = 1) -> int:
        return a + b

    return add


def test_a_whole_life_without_a_loop(hf: Holdfast) -> None:
    add = add_to(hf)
    with hf.sync:
        job = add.options(tags=["sum"]).sync.enqueue(2, b=3)
        assert job.info().state is State.READY
        assert job.info().tags == ("sum",)
        with at_work(hf):
            assert job.result(timeout=PATIENCE_S) == 5
        assert [info.state for info in job.events()] == [State.SUCCEEDED]


def test_events_come_until_the_job_has_ended(hf: Holdfast) -> None:
    job = add_to(hf).sync.enqueue(1)
    events = job.events()
    assert next(events).state is State.READY
    with at_work(hf):
        assert [info.state for info in events][-1] is State.SUCCEEDED


def test_an_iteration_may_be_left_half_way(hf: Holdfast) -> None:
    job = add_to(hf).sync.enqueue(1)
    events = job.events()
    next(events)
    events.close()
    assert job.cancel() == "cancelled"


def test_the_nouns_of_the_app_work_as_they_do_there(hf: Holdfast) -> None:
    add = add_to(hf)
    jobs = hf.sync.enqueue_many([add.request(n) for n in range(3)])
    by_name = hf.sync.enqueue("elsewhere.task", 1, x=2)
    assert {info.id for info in hf.sync.jobs.list(queue="default")} == {job.id for job in jobs} | {by_name.id}
    assert hf.sync.jobs.get(str(by_name.id)).kwargs == {"x": 2}
    hf.sync.queues.pause("default")
    [queue] = hf.sync.queues.list()
    assert queue.settings.paused
    assert hf.sync.dead.count() == 0
    assert hf.sync.workers.list() == []
    assert next(hf.sync.jobs.watch(by_name.id)).state is State.READY
    assert hf.sync.run(lambda client: client.queues.purge("default")) == 4


def test_the_nouns_tell_what_they_can(hf: Holdfast) -> None:
    assert "explain" in dir(hf.sync.jobs)
    assert hf.sync.jobs.get.__doc__ == "One job; JobNotFound when there is none."
    with pytest.raises(AttributeError, match=r"no jobs\.lst; there are cancel, count, explain, get, get_many, list"):
        _ = hf.sync.jobs.lst
    with pytest.raises(AttributeError):
        _ = hf.sync.jobs._store


def test_errors_come_through_as_they_are(hf: Holdfast) -> None:
    add = add_to(hf)

    @hf.task
    def refuse() -> None:
        raise PermanentError("no")

    with pytest.raises(InvalidArguments, match="argument 'a'"):
        add.sync.enqueue("one")
    once = add.options(key="k", delay=60)
    job = once.sync.enqueue(1)
    with pytest.raises(IdempotencyConflict):
        once.sync.enqueue(2)
    with pytest.raises(TimeoutError, match=str(job.id)):
        job.result(timeout=0)
    job.cancel("not needed")
    with pytest.raises(JobCancelled, match="not needed"):
        job.result()
    with pytest.raises(JobNotFound):
        hf.sync.jobs.get("01890a5d-ac96-774b-bcce-b302099a8057")
    hf.sync.queues.set_watermarks("default", high=1, low=0)
    dead = refuse.sync.enqueue()
    with pytest.raises(QueueFull):
        add.options(wait=0).sync.enqueue(1)
    with at_work(hf), pytest.raises(JobFailed, match="no"):
        dead.result(timeout=PATIENCE_S)


def test_a_store_that_cannot_be_opened_is_said_at_the_first_call(tmp_path: Path) -> None:
    hf = Holdfast(url_of(tmp_path / "missing" / "jobs.db"))
    with pytest.raises(HoldfastError, match="does not exist; create it first"):
        hf.sync.queues.list()
    (tmp_path / "missing").mkdir()
    assert hf.sync.queues.list() == []
    hf.sync.close()


def test_many_threads_share_one_store(hf: Holdfast) -> None:
    add = add_to(hf)
    start = threading.Barrier(8)

    def produce(number: int) -> list[Any]:
        start.wait()
        return [add.sync.enqueue(number, b=n).id for n in range(25)]

    with ThreadPoolExecutor(8) as pool:
        ids = [job_id for made in pool.map(produce, range(8)) for job_id in made]
    assert len({*ids}) == 200
    assert {info.id for info in hf.sync.jobs.list(limit=1000)} == {*ids}
    assert [thread.name for thread in threading.enumerate()].count("holdfast-sync") == 1


def test_it_opens_by_itself_and_opens_again_after_it_was_closed(hf: Holdfast) -> None:
    add = add_to(hf)
    job = add.sync.enqueue(1)
    hf.sync.close()
    assert "holdfast-sync" not in [thread.name for thread in threading.enumerate()]
    assert job.info().state is State.READY


def test_closing_tells_whoever_waits(hf: Holdfast) -> None:
    job = add_to(hf).sync.enqueue(1)
    with ThreadPoolExecutor(1) as pool:
        events = job.events()
        next(events)
        waiting = pool.submit(list, events)
        hf.sync.close()
        with pytest.raises(NotOpen):
            waiting.result(PATIENCE_S)


@pytest.mark.parametrize(
    "call",
    [
        lambda hf: hf.sync.open(),
        lambda hf: hf.sync.close(),
        lambda hf: hf.sync.jobs.list(),
        lambda hf: hf.sync.enqueue("task"),
        lambda hf: hf.sync.jobs.watch("01890a5d-ac96-774b-bcce-b302099a8057"),
    ],
)
def test_it_refuses_to_block_an_event_loop(hf: Holdfast, call: Callable[[Holdfast], Any]) -> None:
    async def main() -> None:
        with pytest.raises(HoldfastError, match="inside a running event loop, which it would block"):
            call(hf)

    asyncio.run(main())


def test_a_def_task_enqueues_in_the_app_that_runs_it() -> None:
    """On `:memory:`, where a store of its own would be another one."""
    hf = Holdfast(":memory:")
    add = add_to(hf)

    @hf.task
    def outer(n: int) -> int:
        result: int = add.sync.enqueue(n).result(timeout=PATIENCE_S)
        return result

    async def main() -> None:
        async with hf, hf.worker():
            assert await (await outer.enqueue(1)).result(timeout=PATIENCE_S) == 2
            assert len(await hf.jobs.list()) == 2
            assert len(await asyncio.to_thread(hf.sync.jobs.list)) == 2

    asyncio.run(main())


# ---------------------------------------------------------------- forks and endings, in processes of their own

PREAMBLE = """
import os, sys, threading
from holdfast import Holdfast

hf = Holdfast(sys.argv[1], poll_s=0.05)

@hf.task(name="add")
async def add(a: int, b: int = 1) -> int:
    return a + b

def in_child(act):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        except BaseException as error:
            print(repr(error), flush=True)
        os._exit(status)
    return pid

def wait_for(pid):
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""


def script(tmp_path: Path, body: str) -> str:
    file = tmp_path / "script.py"
    file.write_text(PREAMBLE + textwrap.dedent(body), "utf-8")
    done = subprocess.run(
        [sys.executable, str(file), url_of(tmp_path / "jobs.db")],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_forked_servers_open_their_own(tmp_path: Path) -> None:
    """The parent has used it, as a preloading server does; the children and the parent go on using it."""
    printed = script(
        tmp_path,
        """
        first = add.sync.enqueue(0)
        children = [in_child(lambda: [add.sync.enqueue(n) for n in range(20)] + [first.info()]) for _ in range(3)]
        mine = [add.sync.enqueue(n) for n in range(20)]
        for child in children:
            wait_for(child)
        print(len(hf.sync.jobs.list(limit=1000)))
        """,
    )
    assert printed == "81\n"


def test_a_parent_that_closes_after_the_fork_takes_nothing_from_its_child(tmp_path: Path) -> None:
    """SQLite removes its log with the last connection: a child must count as one."""
    printed = script(
        tmp_path,
        """
        add.sync.enqueue(0)
        (opened, tell_opened), (closed, tell_closed) = os.pipe(), os.pipe()

        def child():
            add.sync.enqueue(1)
            os.write(tell_opened, b"x")
            os.read(closed, 1)
            add.sync.enqueue(2)

        pid = in_child(child)
        os.read(opened, 1)
        hf.sync.close()
        os.write(tell_closed, b"x")
        wait_for(pid)
        print(sorted(info.args[0] for info in hf.sync.jobs.list()))
        """,
    )
    assert printed == "[0, 1, 2]\n"


def test_a_fork_does_not_disturb_other_threads(tmp_path: Path) -> None:
    printed = script(
        tmp_path,
        """
        import warnings
        from holdfast import JobCancelled

        warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
        job = add.sync.enqueue(0)
        made, endings = [], []

        def produce():
            for _ in range(60):
                made.append(add.sync.enqueue(1).id)

        def wait():
            try:
                job.result(timeout=60)
            except JobCancelled:
                endings.append("cancelled")

        threads = [threading.Thread(target=act) for act in (produce, produce, wait)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            wait_for(in_child(lambda: add.sync.enqueue(2)))
        job.cancel()
        for thread in threads:
            thread.join()
        found = hf.sync.jobs.list(limit=1000)
        print(len(found), {info.id for info in found} >= {*made}, len({*made}), endings)
        """,
    )
    assert printed == "131 True 120 ['cancelled']\n"


def test_the_interpreter_ends_while_a_thread_waits(tmp_path: Path) -> None:
    printed = script(
        tmp_path,
        """
        job = add.sync.enqueue(0)
        waiting = threading.Event()

        def wait():
            events = job.events()
            next(events)
            waiting.set()
            try:
                next(events)
            except BaseException:
                pass

        threading.Thread(target=wait, daemon=True).start()
        waiting.wait()
        print("end")
        """,
    )
    assert printed == "end\n"
    assert not (tmp_path / "jobs.db-wal").exists(), "the store was not closed"
