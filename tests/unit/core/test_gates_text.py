"""Gates as the text that stores keep, there and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.breaker import BreakerGate
from holdfast.core.gates import Candidate, Gate, RateGate, SlotGate, Usage, Waits, WhenFull, admit
from holdfast.core.gates_text import UNREADABLE, gates_text, limit_in_text, read_gates
from holdfast.core.rate import Pace

words = st.text(max_size=30)
seconds = st.floats(0.001, 1e6)
gates: st.SearchStrategy[Gate] = st.one_of(
    st.builds(SlotGate, words, st.integers(0, 10**6), words, st.sampled_from(WhenFull)),
    st.builds(RateGate, words, st.builds(Pace, seconds, seconds, st.integers(1, 10**6)), words),
    st.builds(BreakerGate, words, st.integers(1, 1000), seconds, seconds),
)


@given(st.lists(gates, max_size=5).map(tuple))
def test_what_is_written_is_read(some: tuple[Gate, ...]) -> None:
    text = gates_text(some)
    again = read_gates(text)
    assert again == some
    assert [type(gate) for gate in again] == [type(gate) for gate in some], "equal tuples may be of another kind"
    assert (text is None) == (not some), "an ordinary job keeps nothing"


def test_the_text_is_the_same_in_every_version() -> None:
    some = (
        SlotGate("api:42", 2, "api", WhenFull.SKIP),
        RateGate("post", Pace(100.0, 60.0, 5), ""),
        BreakerGate("bank", 5, 60.0, 30.0),
    )
    text = '[["limit","api:42",2,"api","skip"],["rate","post",100.0,60.0,5,""],["breaker","bank",5,60.0,30.0]]'
    assert gates_text(some) == text
    assert read_gates(text) == some
    assert read_gates(json.dumps(json.loads(text), indent=2)) == some


@pytest.mark.parametrize(
    "text",
    [
        *("[", "{}", "1", "[1]", "[[]]", '[["door","x"]]', '[["limit","k"]]', '[["limit","k",1,"","else"]]'),
        *('[["limit","k","1","","wait"]]', '[["rate","k",0,1,1,""]]', '[["rate","k",1,"s",1,""]]', "[" * 100_000),
        *('[["breaker","b",1,1]]', '[["limit","k",1,"","wait"],["door"]]'),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_gate_is_one_that_nobody_passes(text: str) -> None:
    assert read_gates(text) == (UNREADABLE,)
    [admission] = admit([Candidate("t", "q", "", read_gates(text))], Usage(0.0))
    assert isinstance(admission, Waits)


@pytest.mark.parametrize("key", ["k", 'a","b', "é☃", 'back\\slash "', "limit"])
def test_a_limit_is_found_in_the_text_of_those_who_have_to_pass_it_and_in_no_other(key: str) -> None:
    mine = gates_text((RateGate("r", Pace(1, 1.0, 1)), SlotGate(key, 3, "n")))
    assert mine is not None
    assert limit_in_text(key) in mine
    others = (SlotGate(f"{key}2", 3, key), RateGate(key, Pace(1, 1.0, 1)), SlotGate(limit_in_text(key), 1))
    assert limit_in_text(key) not in (gates_text(others) or "")
