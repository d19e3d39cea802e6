"""Words of a command line: done or refused with a sentence and its code, never an unexpected error, never a hang."""

from __future__ import annotations

import contextlib
import io
import json
import math
from datetime import UTC, datetime
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from tests.fuzz.examples import fuzzed, fuzzed_slowly
from tests.fuzz.outside import any_text, any_value, as_word, near_json, numbers
from tests.integration.scene import scene

from holdfast import Holdfast, RetryPolicy
from holdfast.cli.call_arguments import parse_call
from holdfast.cli.exits import Exit, Refused
from holdfast.cli.main import _run
from holdfast.cli.which_jobs import moment
from holdfast.client.filters import _moment
from holdfast.core.ids import first_id_at, new_job_id

IDS = st.uuids().map(str) | st.just(str(new_job_id()))
#: As a shell can pass it: no NUL; bytes that are no text arrive as lone surrogates.
words = (any_text | near_json().map(lambda text: text.decode("utf-8", "surrogateescape")) | numbers.map(as_word)).map(
    lambda text: text.replace("\0", "")
)
moments = (
    st.datetimes(timezones=st.none() | st.just(UTC)).map(str)
    | st.tuples(st.integers(0) | st.floats(0), st.sampled_from("smhdyx")).map(lambda ago: f"{as_word(ago[0])}{ago[1]}")
    | st.sampled_from(
        ["9" * 400 + "d", "99999999999d", "999999d", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "٣d"]
    )
    | words
)


@fuzzed
@given(st.lists(words | st.tuples(st.sampled_from(["a", "b", "_x"]), words).map("=".join), max_size=4))
@example(["[" * 100_000])
@example(["9" * 5_000])
@example(["a=1", "a=2"])
def test_words_are_the_arguments_of_a_call_or_refused(given_words: list[str]) -> None:
    try:
        args, kwargs = parse_call(given_words)
    except Refused:
        return
    assert len(args) + len(kwargs) == len(given_words)


@fuzzed
@given(any_value)
def test_a_value_written_as_json_is_read_as_it_was(value: Any) -> None:
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        return
    assert parse_call([f"a={text}"]) == ([], {"a": value})


@fuzzed
@given(moments)
@example("9" * 400 + "d")
@example("999999d")
@example("0001-01-01T00:00+14:00")
def test_a_moment_is_one_that_jobs_can_be_looked_for_by_or_refused(word: str) -> None:
    try:
        at = moment("--since", word)
    except Refused:
        return
    assert isinstance(at, datetime)
    at_s = _moment("created_after", at)
    assert at_s is not None
    assert math.isfinite(at_s)
    first_id_at(at_s)


FILTERS = ("--queue", "--task", "--tenant", "--tag", "--error-type", "--fingerprint", "--text", "--reason")


def options(*names: str, values: Any = words) -> st.SearchStrategy[list[str]]:
    """Some of these, each with a value."""
    given_options = st.tuples(st.sampled_from(names), values).map(list)
    return st.lists(given_options, max_size=3).map(lambda several: [word for each in several for word in each])


#: One strange thing at a time: what is refused for the first keeps the second from being looked at.
which = (
    options(*FILTERS)
    | options("--since", "--until", values=moments)
    | options("--limit", "--before", values=words | IDS)
    | st.tuples(st.sampled_from(FILTERS), words).map(list)
)

commands = st.one_of(
    st.tuples(st.just(["enqueue"]), options("--delay", "--priority", "--queue", "--key", "--tenant", "--tag"),
              st.just(["--"]), st.lists(words, max_size=3)),
    st.tuples(st.just(["jobs", "list"]), which, options("--state")),
    st.tuples(st.sampled_from([["jobs", "show"], ["jobs", "explain"], ["jobs", "retry"], ["jobs", "cancel"],
                               ["dead", "show"], ["dead", "replay"], ["dead", "edit"]]),
              st.lists(IDS | words, max_size=2), options("--reason")),
    st.tuples(st.just(["dead", "list"]), which),
    st.tuples(st.sampled_from([["dead", "replay"], ["dead", "purge"]]), st.just(["--yes"]), which),
    st.tuples(st.just(["queues", "weights"]), st.lists(words, max_size=1),
              st.lists(st.tuples(st.sampled_from(["high", "low", "x"]), words).map("=".join), max_size=2),
              options("--weight")),
    st.tuples(st.just(["queues", "watermarks"]), st.lists(words, max_size=1), options("--high", "--low")),
    st.tuples(st.just(["queues", "options"]), st.lists(words, max_size=1),
              options("--concurrency", "--retry-budget", "--bypass")),
    st.tuples(st.just(["breakers", "set"]), st.lists(words, max_size=1),
              options("--failures", "--window", "--open-for")),
    st.tuples(st.sampled_from([["queues", "pause"], ["queues", "resume"], ["queues", "list"], ["workers", "list"]]),
              st.lists(words, max_size=1)),
    st.tuples(st.lists(words, max_size=3)),
).map(lambda parts: [word for part in parts for word in part])  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with one dead letter in it."""
    place = tmp_path_factory.mktemp("store") / "jobs.db"

    @scene
    async def fill() -> None:
        hf = Holdfast(f"sqlite:///{place}", poll_s=0.05)

        @hf.task(name="fail", retry=RetryPolicy(max_attempts=1))
        async def fail() -> None:
            raise ValueError("no")

        async with hf, hf.worker():
            job = await fail.enqueue()
            async for _ in job.events():
                pass

    fill()
    return f"sqlite:///{place}"


@fuzzed_slowly
@given(given_words=commands, as_json=st.booleans())
@example(given_words=["jobs", "list", "--tag", "\udcff"], as_json=False)
@example(given_words=["jobs", "list", "--since", "999999d"], as_json=False)
@example(given_words=["queues", "watermarks", "q", "--high", "9" * 20, "--low", "1"], as_json=True)
def test_a_command_is_done_or_refused(given_words: list[str], as_json: bool, url: str) -> None:
    if given_words and given_words[0] in ("worker", "dev", "demo"):
        return  # these go on until they are told to stop
    cut = given_words.index("--") if "--" in given_words else len(given_words)
    shared = ["--url", url, *(["--json"] if as_json else [])] if given_words else []
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = _run([*given_words[:cut], *shared, *given_words[cut:]])
        except SystemExit as end:  # what Typer says of help
            code = end.code if isinstance(end.code, int) else 1
    assert code != Exit.BUG, err.getvalue()
    assert code in set(Exit)


@pytest.mark.parametrize(
    "given_words",
    [
        ["jobs", "list", "--url", "sqlite:///" + "x" * 5_000],
        ["jobs", "list", "--url", "sqlite:///a%00b"],
        ["jobs", "list", "--url", "\udcff"],
        ["worker", "a:b", "--post", "1"],
        ["worker", "a:b", "--post", "999999,999999,1"],
        ["worker", "a:b", "--post", "9" * 5_000 + ",1,1"],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_a_place_that_cannot_be_is_refused(given_words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(given_words) in (Exit.USAGE, Exit.STORE), capsys.readouterr().err
