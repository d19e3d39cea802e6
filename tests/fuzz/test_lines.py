"""What processes tell each other: lines, boards in shared memory, notifications. Whatever comes, nobody falls over."""

from __future__ import annotations

import asyncio
import math
from typing import Any
from uuid import UUID, uuid4

import hypothesis.strategies as st
from hypothesis import example, given
from tests.fuzz.examples import fuzzed
from tests.fuzz.outside import ABYSS, BEYOND_FLOATS, any_text, any_value, as_word, near_json, numbers, raw_bytes

from holdfast.core.cause import Cause
from holdfast.core.errors import ConfigError
from holdfast.core.job import ClaimedJob, ErrorInfo
from holdfast.core.overdue import settlement
from holdfast.core.settlement import Bury, Cancel, Crashed, HandBack, Park, Retry, Snooze, Succeed
from holdfast.stores.base import Hint
from holdfast.stores.postgres.wakeups import Wakeups
from holdfast.worker.isolation.wire import Unsettled, answer_of, answered, decode, encode, request_of, requested_run
from holdfast.worker.run import Run
from holdfast.worker.supervision.board import MOST_ROWS, SIZE, Board, terms_of
from holdfast.worker.supervision.line import Order, Word, line_of, parse_line
from holdfast.worker.supervision.supervisor import _settings_of

JOB = ClaimedJob(UUID(int=1), 7, 1, "a.task", "default", 5, b"{}", None, None, "", False)
NOTHING: dict[str, Any] = {}
bytes_or_none = st.none() | raw_bytes


@fuzzed
@given(near_json(st.fixed_dictionaries(NOTHING, optional={"kind": any_value, "settings": any_value})) | raw_bytes)
@example(b"[" * ABYSS)
@example(b'{"kind": "loaded", "settings": {"concurrency": ' + b"9" * 4_200 + b"}}")
def test_a_line_between_supervisor_and_process_is_a_kind_with_details_or_nothing(line: bytes) -> None:
    kind, details = parse_line(line)
    assert isinstance(kind, str)
    assert isinstance(details, dict)
    try:
        _settings_of(details)
    except (ConfigError, LookupError, TypeError, AttributeError):
        return


@fuzzed
@given(st.sampled_from([*Order, *Word]), any_text)
def test_a_line_is_read_as_it_was_written(kind: Order | Word, text: str) -> None:
    line = line_of(kind, text=text)
    assert line.count(b"\n") == 1
    assert parse_line(line) == (kind, {"text": text})


errors = st.builds(ErrorInfo, any_text, any_text, any_text)
delays = st.floats(0, 86_400)
answers = st.one_of(
    st.sampled_from(Unsettled),
    st.builds(Succeed, st.just(JOB.id), st.just(JOB.token), bytes_or_none),
    st.builds(Retry, st.just(JOB.id), st.just(JOB.token), delays, errors),
    st.builds(Snooze, st.just(JOB.id), st.just(JOB.token), delays, errors),
    st.builds(HandBack, st.just(JOB.id), st.just(JOB.token), any_text, st.sampled_from(Cause)),
    st.builds(Crashed, st.just(JOB.id), st.just(JOB.token), any_text),
    st.builds(Park, st.just(JOB.id), st.just(JOB.token), any_text, any_text),
    st.builds(Bury, st.just(JOB.id), st.just(JOB.token), any_text, errors),
    st.builds(Cancel, st.just(JOB.id), st.just(JOB.token), any_text),
)


@fuzzed
@given(answers)
def test_the_answer_of_an_isolate_arrives_as_it_was(answer: Any) -> None:
    line = encode(answer_of(answer))
    assert line.count(b"\n") == 1
    assert answered(decode(line), JOB) == answer


@fuzzed
@given(
    near_json(
        st.fixed_dictionaries(
            NOTHING,
            optional={
                "ended": st.sampled_from(["succeed", "retry", "snooze", "hand_back", "crash", "park", "bury", "cancel"])
                | any_value,
                "result": any_value,
                "delay_s": numbers,
                "error": st.fixed_dictionaries({"type": any_value, "message": any_value, "traceback": any_value}),
                "why": any_value,
                "cause": st.sampled_from(list(Cause)) | any_value,
                "reason": any_value,
                "key": any_value,
            },
        )
    )
    | raw_bytes
)
@example(b"[" * ABYSS)
@example(encode({"ended": "retry", "delay_s": BEYOND_FLOATS, "error": {"type": "", "message": "", "traceback": ""}}))
@example(b'{"ended": "snooze", "delay_s": Infinity, "error": {"type": "", "message": "", "traceback": ""}}')
def test_what_an_isolate_says_is_an_answer_or_a_value_error(line: bytes) -> None:
    try:
        answer = answered(decode(line), JOB)
    except ValueError:
        return
    if isinstance(answer, Retry | Snooze):
        assert 0 <= answer.delay_s < math.inf, "a job must not wait for ever"
    if isinstance(answer, Succeed):
        assert answer.result is None or isinstance(answer.result, bytes)


@fuzzed
@given(bytes_or_none, bytes_or_none, bytes_or_none, any_text, st.integers(), st.booleans())
def test_a_run_comes_to_its_isolate_as_it_is(
    payload: bytes | None, options: bytes | None, headers: bytes | None, tenant: str, token: int, alone: bool
) -> None:
    job = JOB._replace(payload=payload, options=options, headers=headers, tenant=tenant, token=token, alone=alone)
    run = Run(job, uuid4())
    received = requested_run(decode(encode(request_of(run))))
    assert (received.job, received.worker) == (job, run.worker)


@fuzzed
@given(st.binary(max_size=400), st.integers(0, SIZE - 400))
@example(b"\xff" * 400, 0)
@example(b"\x00" * 56 + b"\xff" * 300, 0)
def test_a_board_with_anything_on_it_is_read(scribble: bytes, at: int) -> None:
    board = Board.make()
    try:
        for begins in (0, at):
            board._memory[begins : begins + len(scribble)] = scribble
        seen, runs = board.worker(), board.runs()
        assert len(runs) <= MOST_ROWS
        assert seen.worker is None or isinstance(seen.worker, UUID)
        for run in runs[:20]:
            assert isinstance(
                settlement(run.verdict, run.job_id, run.token, limit_s=1.0, rng=lambda: 0.5), Retry | Bury
            )
    finally:
        board.close()


@fuzzed
@given(st.text(min_size=1))
def test_a_task_of_any_name_fits_on_the_board(name: str) -> None:
    board = Board.make()
    try:
        row = board.begin(7, JOB.id, 1.0, terms_of(name))
        assert [(run.token, run.job_id) for run in board.runs()] == [(7, JOB.id)]
        board.end(row)
        assert board.runs() == []
    finally:
        board.close()


@fuzzed
@given(st.lists(any_text | st.tuples(any_text, any_text | numbers.map(as_word)).map(" ".join), max_size=3))
@example(["x " + "9" * 5_000])
@example(["x ٣"])
def test_a_notification_is_a_hint_or_nothing(payloads: list[str]) -> None:
    heard: list[Hint] = []

    async def listen() -> None:
        wakeups = Wakeups(None, channel="c", notify=False, on_returned=lambda: None)  # type: ignore[arg-type]
        wakeups.subscribe(heard.append)
        for payload in payloads:
            wakeups._on_notification(None, 1, "c", payload)

    asyncio.run(listen())
    assert len(heard) <= len(payloads)
    assert all(hint in Hint.ANYTHING for hint in heard)
