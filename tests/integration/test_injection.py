"""Objects that reach tasks by annotation: who makes and closes them, when, and who may pass them instead."""

# Annotations are not postponed here: the makers below are local names, which only the running code can see.

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

import pytest
from tests.integration.scene import PATIENCE_S, scene, until

from holdfast import (
    PROVIDED,
    Holdfast,
    InvalidArguments,
    InvalidOptions,
    JobCancelled,
    JobFailed,
    Provide,
    RetryPolicy,
    StartupFailed,
    State,
    current_job,
)

ONCE = RetryPolicy(max_attempts=1)


class Pool:
    """Something worth sharing."""

    def __init__(self, name: str = "real") -> None:
        self.name = name


async def answer(task: Any, *args: Any, **kwargs: Any) -> Any:
    return await (await task.enqueue(*args, **kwargs)).result(timeout=PATIENCE_S)


@pytest.mark.parametrize("kind", ["def", "async def", "generator", "async generator", "class", "partial"])
@scene
async def test_every_kind_of_maker_serves_async_and_def_tasks(kind: str) -> None:
    log: list[str] = []
    loop_thread = threading.get_ident()

    def function() -> Pool:
        assert threading.get_ident() != loop_thread
        return Pool()

    async def coroutine() -> Pool:
        return Pool()

    def generator() -> Iterator[Pool]:
        assert threading.get_ident() != loop_thread
        yield Pool()
        log.append("closed")

    async def async_generator() -> AsyncIterator[Pool]:
        yield Pool()
        log.append("closed")

    makers: dict[str, Any] = {
        "def": function,
        "async def": coroutine,
        "generator": generator,
        "async generator": async_generator,
        "class": Pool,
        "partial": partial(Pool, "real"),
    }
    make = makers[kind]
    hf = Holdfast(":memory:")

    @hf.task
    async def on_loop(word: str, pool: Annotated[Pool, Provide(make)] = PROVIDED) -> str:
        return f"{word} {pool.name} {id(pool)}"

    @hf.task
    def in_thread(*words: str, pool: Annotated[Pool, Provide(make)] = PROVIDED, **more: int) -> str:
        return f"{' '.join(words)} {pool.name} {id(pool)}"

    async with hf:
        async with hf.worker():
            one = await answer(on_loop, "a")
            assert one.startswith("a real ")
            assert await answer(in_thread, "a", more=5) == one
            assert log == []
        assert log == (["closed"] if "generator" in kind else [])


@scene
async def test_scopes_say_how_long_an_object_lives_and_closing_is_the_reverse_of_making() -> None:
    log: list[str] = []

    async def settings() -> AsyncIterator[str]:
        log.append("make settings")
        yield "settings"
        log.append("close settings")

    def pool(given: Annotated[str, Provide(settings)]) -> Iterator[Pool]:
        log.append("make pool")
        yield Pool(given)
        log.append("close pool")

    async def session(of: Annotated[Pool, Provide(pool)], plain: int = 5) -> AsyncIterator[list[str]]:
        log.append(f"make session of {of.name} for {current_job().queue}")
        yield []
        log.append("close session")

    a_session = Annotated[list[str], Provide(session, scope="job")]

    async def unit(of: a_session) -> list[str]:
        return of

    hf = Holdfast(":memory:")

    @hf.task
    async def work(one: a_session = PROVIDED, two: Annotated[list[str], Provide(unit, scope="job")] = PROVIDED) -> bool:
        log.append("work")
        one.append("used")
        return one is two and len(one) == 1

    async with hf, hf.worker():
        assert await answer(work)
        assert await answer(work)
    one_job = ["make session of settings for default", "work", "close session"]
    assert log == ["make settings", "make pool", *one_job, *one_job, "close pool", "close settings"]


@pytest.mark.parametrize("ending", ["failure", "cancellation", "hard limit"])
@scene
async def test_what_was_made_for_a_job_is_closed_however_it_ends_and_hears_of_it(ending: str) -> None:
    log: list[str] = []

    async def outer() -> AsyncIterator[None]:
        try:
            yield
        except BaseException as error:
            log.append(f"outer {type(error).__name__}")
            await asyncio.sleep(0)
            log.append("outer closed")
            raise

    def inner(under: Annotated[None, Provide(outer, scope="job")]) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            log.append(f"inner {type(error).__name__}")  # and keeps it to itself, which changes nothing

    hf = Holdfast(":memory:")

    @hf.task(retry=ONCE, timeout=0.05 if ending == "hard limit" else 60)
    async def work(it: Annotated[None, Provide(inner, scope="job")] = PROVIDED) -> None:
        if ending == "failure":
            raise LookupError("gone")
        await asyncio.Event().wait()

    async with hf, hf.worker():
        job = await work.enqueue()
        if ending == "cancellation":
            await until(job, State.RUNNING)
            await job.cancel("enough")
        with pytest.raises(JobCancelled if ending == "cancellation" else JobFailed):
            await job.result(timeout=PATIENCE_S)
    kind = "LookupError" if ending == "failure" else "CancelledError"
    if log or ending != "cancellation":  # it may be cancelled before anything is made
        assert log == [f"inner {kind}", f"outer {kind}", "outer closed"]


@scene
async def test_a_clean_up_that_fails_fails_the_attempt_and_the_others_still_run() -> None:
    log: list[str] = []

    def outer() -> Iterator[None]:
        yield
        log.append("outer closed")

    async def commit(under: Annotated[None, Provide(outer, scope="job")]) -> AsyncIterator[None]:
        yield
        raise ConnectionError("not committed")

    hf = Holdfast(":memory:")

    @hf.task(retry=ONCE)
    async def work(it: Annotated[None, Provide(commit, scope="job")] = PROVIDED) -> str:
        return "done"

    async with hf, hf.worker():
        with pytest.raises(JobFailed, match="not committed"):
            await answer(work)
    assert log == ["outer closed"]


@scene
async def test_a_clean_up_that_does_not_end_is_cut_off_and_fails_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.worker.providers.CLEAN_UP_S", 0.02)

    async def hanging() -> AsyncIterator[None]:
        yield
        await asyncio.Event().wait()

    hf = Holdfast(":memory:")

    @hf.task(retry=ONCE)
    async def work(it: Annotated[None, Provide(hanging, scope="job")] = PROVIDED) -> str:
        return "done"

    async with hf, hf.worker():
        with pytest.raises(JobFailed, match="the clean-up after the run took longer than"):
            await answer(work)


@scene
async def test_a_clean_up_is_not_disturbed_by_a_second_interruption() -> None:
    log: list[str] = []
    running, closing, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def session() -> AsyncIterator[None]:
        try:
            yield
        finally:
            closing.set()
            await go_on.wait()
            log.append("closed")

    hf = Holdfast(":memory:")

    @hf.task
    async def work(it: Annotated[None, Provide(session, scope="job")] = PROVIDED) -> None:
        running.set()
        await asyncio.Event().wait()

    async with hf:
        worker = hf.worker()
        await worker.start()
        job = await work.enqueue()
        await running.wait()
        await job.cancel("enough")
        await closing.wait()
        worker.stop_now()  # interrupts what runs once more
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        await worker.stop()
        assert log == ["closed"]
        assert (await job.info()).state is State.CANCELLED


@scene
async def test_what_a_thread_makes_for_a_run_that_was_cancelled_meanwhile_is_closed() -> None:
    log: list[str] = []
    making, go_on = threading.Event(), threading.Event()

    def session() -> Iterator[None]:
        making.set()
        go_on.wait()
        try:
            yield
        finally:
            log.append("closed")

    hf = Holdfast(":memory:")

    @hf.task
    async def work(it: Annotated[None, Provide(session, scope="job")] = PROVIDED) -> None:
        log.append("never")

    async with hf, hf.worker() as worker:
        job = await work.enqueue()
        await asyncio.to_thread(making.wait)
        await job.cancel("enough")
        [run] = worker.session._runs.values()  # type: ignore[union-attr]
        while run.interruption is None:
            await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(JobCancelled, match="enough"):
            await job.result(timeout=PATIENCE_S)
        assert log == ["closed"]


@scene
async def test_a_maker_that_fails_for_one_job_fails_its_attempt_and_is_asked_again() -> None:
    asked: list[int] = []

    async def session() -> int:
        asked.append(1)
        if len(asked) == 1:
            raise ConnectionError("refused")
        return len(asked)

    hf = Holdfast(":memory:")

    @hf.task(retry=RetryPolicy(max_attempts=2, base=0))
    async def work(it: Annotated[int, Provide(session, scope="job")] = PROVIDED) -> int:
        return it

    async with hf, hf.worker():
        assert await answer(work) == 2


@scene
async def test_a_maker_that_fails_for_the_worker_stops_its_start() -> None:
    log: list[str] = []

    async def fine() -> AsyncIterator[int]:
        yield 1
        log.append("closed")

    def pool(under: Annotated[int, Provide(fine)]) -> Pool:
        raise ConnectionError("refused")

    hf = Holdfast(":memory:")

    @hf.task(name="mail")
    async def mail(it: Annotated[Pool, Provide(pool)] = PROVIDED) -> None: ...

    async with hf:
        with pytest.raises(StartupFailed) as failed:
            await hf.worker().start()
    assert "pool, which provides 'it' of task mail, raised ConnectionError: refused" in str(failed.value)
    assert log == ["closed"]


@scene
async def test_a_worker_makes_only_what_its_queues_need_and_the_rest_once_when_asked() -> None:
    log: list[str] = []

    async def model() -> AsyncIterator[str]:
        log.append("made")
        await asyncio.sleep(0)
        yield "model"
        log.append("closed")

    hf = Holdfast(":memory:")

    @hf.task(queue="gpu")
    async def infer(it: Annotated[str, Provide(model)] = PROVIDED) -> str:
        return it

    async with hf:
        async with hf.worker(queues=["mail"]):
            assert log == []
            jobs = [await infer.options(queue="mail").enqueue() for _ in range(5)]
            assert [await job.result(timeout=PATIENCE_S) for job in jobs] == ["model"] * 5
        assert log == ["made", "closed"]


@scene
async def test_what_a_lifespan_yields_is_provided_by_it() -> None:
    async def lifespan(app: Holdfast) -> AsyncIterator[Pool]:
        yield Pool("of the lifespan")

    def name(pool: Annotated[Pool, Provide(lifespan)]) -> str:
        return pool.name

    hf = Holdfast(":memory:", lifespan=lifespan)

    @hf.task
    async def work(
        pool: Annotated[Pool, Provide(lifespan)] = PROVIDED, its: Annotated[str, Provide(name)] = PROVIDED
    ) -> bool:
        return pool.name == its

    async with hf, hf.worker():
        assert await answer(work) is True


@scene
async def test_overrides_hold_inside_their_with_also_for_a_worker_that_runs() -> None:
    def pool() -> Pool:
        return Pool()

    def name(of: Annotated[Pool, Provide(pool)]) -> str:
        return of.name

    hf = Holdfast(":memory:")

    @hf.task
    async def work(it: Annotated[str, Provide(name, scope="job")] = PROVIDED) -> str:
        return it

    async with hf, hf.worker():
        assert await answer(work) == "real"
        with hf.override(pool, lambda: Pool("fake")):
            assert await answer(work) == "fake"
            with hf.override(pool, lambda: Pool("other")):
                assert await answer(work) == "other"
            assert await answer(work) == "fake"
        assert await answer(work) == "real"


@scene
async def test_provided_parameters_are_no_part_of_the_call() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="work")
    async def work(word: str, pool: Annotated[Pool, Provide(Pool)] = PROVIDED, *, n: int = 1, **more: int) -> str:
        return f"{word * n} {pool.name} {more}"

    async with hf, hf.worker():
        assert await answer(work, "a", n=2, x=3) == "aa real {'x': 3}"
        refused = "work: argument 'pool' is provided by the worker and is not enqueued; leave it out"
        for call in (lambda: work.enqueue("a", pool=Pool()), lambda: work.enqueue("a", Pool())):
            with pytest.raises(InvalidArguments) as error:
                await call()
            assert str(error.value) == refused
        with pytest.raises(InvalidArguments, match="argument 'n': Input should be a valid integer"):
            await work.enqueue("a", n="many")  # type: ignore[arg-type]
        once = work.options(key="k")
        assert (await once.enqueue("a")).id == (await once.enqueue(word="a")).id


@scene
async def test_a_direct_call_passes_them_by_hand() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="work")
    async def work(word: str, pool: Annotated[Pool, Provide(Pool)] = PROVIDED) -> str:
        return f"{word} {pool.name}"

    assert await work("a", pool=Pool("mine")) == "a mine"
    assert await work("a", Pool("mine")) == "a mine"
    with pytest.raises(InvalidArguments, match="work: only a worker provides 'pool'; a direct call passes it by hand"):
        await work("a")


def good() -> int:
    return 1


def needs_url(url: str) -> str:
    return url


def needs_job_scope(it: Annotated[int, Provide(good, scope="job")]) -> int:
    return it


def round_a(it: Annotated[int, "Provide(round_b)"]) -> int:
    return it


def round_b(it: Annotated[int, Provide(round_a)]) -> int:
    return it


# Only a later name can close a circle.
round_a.__annotations__["it"] = Annotated[int, Provide(round_b)]


@asynccontextmanager
async def wrapped() -> AsyncIterator[int]:
    yield 1


async def by_url(it: Annotated[str, Provide(needs_url)] = PROVIDED) -> None: ...
async def in_a_circle(it: Annotated[int, Provide(round_a)] = PROVIDED) -> None: ...
async def too_short(it: Annotated[int, Provide(needs_job_scope)] = PROVIDED) -> None: ...
async def by_wrapped(it: Annotated[int, Provide(wrapped)] = PROVIDED) -> None: ...
async def unannotated(it: int = PROVIDED) -> None: ...
async def unknown(it: "Annotated[int, Provide(no_such_name)]" = PROVIDED) -> None: ...  # noqa: F821
async def in_the_middle(it: Annotated[int, Provide(good)] = PROVIDED, n: int = 1) -> None: ...
async def before_rest(it: Annotated[int, Provide(good)] = PROVIDED, *rest: int) -> None: ...
async def twice(it: Annotated[int, Provide(good), Provide(needs_url)] = PROVIDED) -> None: ...
async def by_place_only(it: Annotated[int, Provide(good)] = PROVIDED, /) -> None: ...


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (by_url, "Provide(needs_url): nobody provides its parameter 'url'; annotate it"),
        (in_a_circle, "task t: its providers go round in a circle: round_a needs round_b needs round_a"),
        (
            too_short,
            "task t: needs_job_scope is made once per worker and cannot need good, which is made for every job",
        ),
        (by_wrapped, "Provide(wrapped): is wrapped, as by @asynccontextmanager; give the plain generator"),
        (unannotated, "task t: 'it' has the default PROVIDED, but its annotation does not say by whom; write it:"),
        (unknown, "task t: the annotation of 'it' cannot be read (NameError: name 'no_such_name' is not defined)"),
        (in_the_middle, "task t: 'it' is provided and stands before 'n', which callers pass by place; move 'it'"),
        (before_rest, "task t: 'it' is provided and stands before 'rest', which callers pass by place; move 'it'"),
        (twice, "task t: 'it' has 2 Provide(…); give it one"),
        (by_place_only, "task t: it: "),
    ],
)
def test_what_cannot_be_provided_is_refused_at_the_decorator(function: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions) as refused:
        Holdfast(":memory:").task(name="t")(function)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Provide(5), "Provide(5): needs a function that makes the object"),  # type: ignore[arg-type]
        (lambda: Provide(good, scope="app"), 'Provide(scope=\'app\'): needs to be "worker" or "job"'),  # type: ignore[arg-type]
        (lambda: Holdfast(":memory:").override(good, 5).__enter__(), "override(5): needs the function"),  # type: ignore[arg-type]
        (lambda: Holdfast(":memory:").override(good, needs_url).__enter__(), "Provide(needs_url): nobody provides"),
        (
            lambda: Holdfast(":memory:").override(good, needs_job_scope).__enter__(),
            "override(good): needs_job_scope needs the very one that it replaces; call it instead",
        ),
    ],
)
def test_senseless_providers_and_overrides_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions) as refused:
        make()
    assert str(refused.value).startswith(sentence)
