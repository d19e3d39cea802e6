"""Where the files of a test run are: in memory only where that is as good a place as any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.room import place


@pytest.fixture(autouse=True)
def nothing_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)


def test_it_is_in_memory_where_there_is_room(tmp_path: Path) -> None:
    assert place(tmp_path, room=1) == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_place_that_was_asked_for_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    assert place(tmp_path, room=1) == ""


def test_one_that_is_small_or_missing_is_passed_over(tmp_path: Path) -> None:
    assert place(tmp_path, room=10**18) == ""
    assert place(tmp_path / "nothing", room=1) == ""
