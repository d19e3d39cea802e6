"""The drawn state machine is the one in the code: same moves, same verbs, statements that exist."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, blocks, table_rows

from holdfast.core.cause import Cause
from holdfast.core.state import State
from holdfast.core.transition import TRANSITIONS, Verb
from holdfast.stores.sqlite.statements import load

TEXT = (ROOT / "docs" / "state_machine.md").read_text("utf-8")
ROWS = table_rows(TEXT, "verb")

Move = tuple[Verb, State | None, State | None]


def _state(text: str) -> State | None:
    return None if text == "–" else State(text.strip("`"))


def moves_of_the_table() -> list[Move]:
    return [(Verb(row[0].strip("`")), _state(row[1]), _state(row[2])) for row in ROWS]


def moves_of_the_drawing() -> set[Move]:
    [drawing] = [block.text for block in blocks(TEXT) if block.language == "mermaid"]
    moves: set[Move] = set()
    for before, after, verbs in re.findall(r"^ +(\S+) --> (\S+): (.+)$", drawing, re.MULTILINE):
        for verb in verbs.split(", "):
            ends = [None if end == "[*]" else State(end) for end in (before, after)]
            moves.add((Verb(verb), ends[0], ends[1]))
    return moves


def test_the_table_has_every_move_and_no_other() -> None:
    moves = moves_of_the_table()
    assert set(moves) == TRANSITIONS
    assert len(moves) == len(TRANSITIONS), "a move is in the table twice"


def test_the_drawing_has_every_move_and_no_other() -> None:
    assert moves_of_the_drawing() == TRANSITIONS


def test_every_statement_that_the_table_names_exists() -> None:
    named = [re.findall(r"`(\w+)\.sql`: ((?:`\w+`(?:, )?)+)", row[4]) for row in ROWS]
    assert all(named), "a row names no statement"
    missing = [
        f"{file}.sql: {statement}"
        for row in named
        for file, statements in row
        for statement in re.findall(r"\w+", statements)
        if statement not in load(file)
    ]
    assert not missing


def test_every_cause_is_explained() -> None:
    assert {row[0].strip("`") for row in table_rows(TEXT, "cause")} == set(Cause)


def test_every_state_is_explained() -> None:
    explained = {State(row[0].strip("`")) for row in table_rows(TEXT, "state")}
    assert explained == set(State)
