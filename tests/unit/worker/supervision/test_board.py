"""The board: what one process writes, another reads, also when the writer dies between two bytes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from uuid import UUID

import pytest

from holdfast.worker.supervision.board import MARGIN, MOST_ROWS, SIZE, Board, terms_of

JOB = UUID(int=17)


@pytest.fixture
def board() -> Iterator[Board]:
    made = Board.make()
    yield made
    made.close()


def test_a_fresh_board_shows_nobody_and_nothing(board: Board) -> None:
    assert board.worker().worker is None
    assert board.runs() == []


def test_another_process_reads_what_is_written(board: Board) -> None:
    other = Board(os.dup(board.fd))
    try:
        board.introduce(UUID(int=5))
        board.beat(12.5, 0.25)
        board.count(taken=3, done=40)
        board.saw_lonely(9.0)
        row = board.begin(7, JOB, 3.0, terms_of("shop.send"))
        board.limit(row, overdue_s=33.0, limit_s=30.0, verdict=-1.0)
        assert other.worker() == (UUID(int=5), 12.5, 0.25, 3, 40, 9.0)
        assert other.runs() == [(7, JOB, 3.0, 33.0, 30.0, -1.0, "shop.send", False)]
        board.end(row)
        assert other.runs() == []
        board.introduce(None)
        assert other.worker().worker is None
    finally:
        other.close()


def test_a_run_without_a_limit_is_never_overdue(board: Board) -> None:
    board.begin(7, JOB, 3.0, terms_of("t"))
    assert board.runs()[0].overdue_s == math.inf


def test_rows_are_used_again_and_an_old_limit_does_not_stay(board: Board) -> None:
    row = board.begin(1, JOB, 0.0, terms_of("first, with a longer name"))
    board.limit(row, overdue_s=1.0, limit_s=1.0, verdict=0.0)
    board.end(row)
    assert board.begin(2, JOB, 5.0, terms_of("second")) == row
    [run] = board.runs()
    assert (run.token, run.task, run.overdue_s) == (2, "second", math.inf)


def test_all_rows_that_the_settings_allow_fit(board: Board) -> None:
    for token in range(1, MOST_ROWS + 1):
        board.begin(token, JOB, 0.0, terms_of("t"))
    assert [run.token for run in board.runs()] == list(range(1, MOST_ROWS + 1))


@pytest.mark.parametrize("name", ["x" * 300 + ".send", "straße." * 40])
def test_a_long_name_keeps_its_end(board: Board, name: str) -> None:
    board.begin(1, JOB, 0.0, terms_of(name))
    shown = board.runs()[0].task
    assert name.endswith(shown[1:])
    assert len(shown.encode()) <= 75


def test_the_margin_is_for_others_and_is_read_as_it_stands(board: Board) -> None:
    other = Board(os.dup(board.fd))
    try:
        margin = other.margin
        margin[:5] = b"noted"
        margin[-1:] = b"!"
        margin.release()
        read = board.read_margin()
        assert len(read) == MARGIN
        assert (read[:5], read[-1:]) == (b"noted", b"!")
        assert board.runs() == []
    finally:
        other.close()


def test_a_board_of_a_version_without_a_margin_has_none(board: Board) -> None:
    os.ftruncate(board.fd, SIZE)
    other = Board(os.dup(board.fd))
    try:
        assert len(other.margin) == 0
        assert other.read_margin() == b""
    finally:
        other.close()
