"""What a waiter is told: endings, and the absence of a job."""

from __future__ import annotations

from holdfast.core.settlement import Bury, Retry
from holdfast.core.state import State
from holdfast.stores.base import Ended, Store
from holdfast.testing.contracts.arrange import (
    ERROR,
    LONG_S,
    a_job,
    an_id,
    apply,
    enlist,
    finish,
    insert,
    start,
)


async def check_the_ended_the_missing_and_the_living(store: Store) -> None:
    worker = await enlist(store)
    done = await start(store, worker=worker)
    await finish(store, done, b'"well"')
    buried = await start(store, worker=worker)
    await apply(store, worker, Bury(buried.id, buried.token, "permanent", ERROR))
    retrying = await start(store, worker=worker)
    await apply(store, worker, Retry(retrying.id, retrying.token, LONG_S, ERROR))
    [cancelled] = await insert(store, a_job())
    await store.cancel_jobs([cancelled], reason="not needed")
    running = await start(store, worker=worker)
    [ready] = await insert(store, a_job())
    missing = an_id()
    found = await store.endings([done.id, buried.id, cancelled, missing, retrying.id, running.id, ready])
    assert found == {
        done.id: Ended(done.id, State.SUCCEEDED, b'"well"', None, None, None),
        buried.id: Ended(buried.id, State.DEAD, None, "permanent", ERROR.type, ERROR.message),
        cancelled: Ended(cancelled, State.CANCELLED, None, "not needed", None, None),
        missing: None,
    }, f"got {found}"


async def check_no_question_no_answer(store: Store) -> None:
    assert await store.endings([]) == {}, "nothing asked, nothing answered"
