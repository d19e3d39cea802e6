"""Job ids: order, layout, clocks that misbehave, threads, forks and what is accepted as text."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidArguments
from holdfast.core.ids import IdFactory, new_job_id, parse_job_id, timestamp_of


def factory_of(clock: list[int]) -> IdFactory:
    times = iter(clock)
    return IdFactory(lambda: next(times))


def test_an_id_is_a_version_7_uuid_like_any_other() -> None:
    made = new_job_id()
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert UUID(str(made)) == made == UUID(bytes=made.bytes)
    assert hash(UUID(str(made))) == hash(made)
    assert pickle.loads(pickle.dumps(made)) == made
    assert repr(made) == repr(UUID(str(made)))


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**73 - 1))
def test_bits_are_where_the_rfc_wants_them(now_ms: int, drawn: int) -> None:
    made = IdFactory(lambda: now_ms, lambda bits: drawn)()
    if now_ms == drawn == 0:
        return  # the one number that is not above the start
    assert made.int >> 80 == now_ms
    assert made.int >> 76 & 0xF == 7
    assert made.int >> 64 & 0xFFF == drawn >> 62
    assert made.int >> 62 & 0b11 == 0b10
    assert made.int & (1 << 62) - 1 == drawn & (1 << 62) - 1


@given(st.lists(st.integers(0, 2**47), min_size=2, max_size=50))
def test_ids_increase_whatever_the_clock_does(clock: list[int]) -> None:
    factory = factory_of(clock)
    made = [factory() for _ in clock]
    assert all(earlier < later for earlier, later in pairwise(made))
    assert all(one.version == 7 for one in made)


def test_ids_increase_while_the_clock_stands_still() -> None:
    factory = IdFactory(lambda: 1_700_000_000_000)
    made = [factory() for _ in range(10_000)]
    assert all(earlier < later for earlier, later in pairwise(made))
    assert {timestamp_of(one) for one in made} == {1_700_000_000.0}


def test_running_out_of_random_bits_carries_into_the_milliseconds() -> None:
    factory = IdFactory(lambda: 5, lambda bits: (1 << bits) - 1)
    factory._last = (5 << 74) + (1 << 74) - 1
    made = factory()
    assert made.int >> 80 == 6
    assert made.version == 7


def test_text_order_is_the_order_of_making() -> None:
    made = [str(new_job_id()) for _ in range(1_000)]
    assert made == sorted(made)


def test_two_factories_do_not_meet() -> None:
    one, other = IdFactory(lambda: 7), IdFactory(lambda: 7)
    assert len({factory() for factory in (one, other) for _ in range(1_000)}) == 2_000


def test_threads_share_a_factory() -> None:
    factory = IdFactory(lambda: 7)
    together = threading.Barrier(4)
    made: list[list[UUID]] = [[] for _ in range(4)]

    def make(mine: list[UUID]) -> None:
        together.wait()
        mine.extend(factory() for _ in range(2_000))

    threads = [threading.Thread(target=make, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one for mine in made for one in mine}) == 8_000
    assert all(earlier < later for mine in made for earlier, later in pairwise(mine))


def ids_of_a_forked_child(factory: IdFactory, count: int) -> list[UUID]:
    reader, writer = os.pipe()
    with factory._lock:  # as if another thread were making an id at the moment of the fork
        child = os.fork()
        if child == 0:  # pragma: no cover
            status = 1
            signal.alarm(20)  # a child that waits for its parent's lock must not outlive the test
            try:
                os.write(writer, b"".join(factory().bytes for _ in range(count)))
                status = 0
            finally:
                os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        answer = answers.read()
    assert os.waitpid(child, 0)[1] == 0
    return [UUID(bytes=answer[start : start + 16]) for start in range(0, len(answer), 16)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_forked_children_go_their_own_ways_even_if_the_lock_was_held() -> None:
    factory = IdFactory(lambda: 7)
    before = factory()
    families = [ids_of_a_forked_child(factory, 3), ids_of_a_forked_child(factory, 3), [factory() for _ in range(3)]]
    assert len({one for family in families for one in family}) == 9
    assert all(before < first < second < third for first, second, third in families)


def test_the_timestamp_is_that_of_the_clock() -> None:
    assert timestamp_of(IdFactory(lambda: 1_700_000_000_123)()) == 1_700_000_000.123
    earliest = time.time_ns() // 1_000_000 / 1000
    assert timestamp_of(new_job_id()) >= earliest


def test_an_id_without_a_time_is_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidArguments, match="holds no time"):
        timestamp_of(UUID("5f0c2e9e-6f0a-4d7e-9b39-3f1d5a1c7d11"))


@given(st.uuids())
def test_every_usual_spelling_is_read(some: UUID) -> None:
    assert parse_job_id(some) is some
    assert parse_job_id(str(some)) == parse_job_id(some.hex) == parse_job_id(str(some).upper()) == some


@pytest.mark.parametrize(
    "text",
    [
        "",
        "17",
        "01890a5d-ac96-774b-bcce-b302099a805",
        "01890a5d-ac96-774b-bcce-b302099a80577",
        " 01890a5d-ac96-774b-bcce-b302099a8057",
        "01890a5d-ac96-774b-bcce-b302099a8057\n",
        "{01890a5d-ac96-774b-bcce-b302099a8057}",
        "01890a5dac96-774b-bcce-b302099a8057",
        "0189_a5dac96774bbcceb302099a8057",
        "z" * 10_000,
        None,
        17,
    ],
)
def test_anything_else_is_refused_in_a_short_sentence(text: object) -> None:
    with pytest.raises(InvalidArguments, match="is not a job id") as caught:
        parse_job_id(text)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 250
