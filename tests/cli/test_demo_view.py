"""The demonstration's picture and lines, as functions of a snapshot."""

from __future__ import annotations

import dataclasses
import io
import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.cli.demo_snapshot import SNAPSHOT, slow

from holdfast.cli.demo.presenting import Lines
from holdfast.cli.demo.telling import told
from holdfast.cli.demo.view import picture, sparkline
from holdfast.cli.demo.watching import Snapshot, Tally
from holdfast.cli.output import Output
from holdfast.telemetry.events import JobBuried, JobStarted

EMPTY = dataclasses.replace(
    SNAPSHOT, running=(), retrying=(), dead=(), workers=(), per_second=(), tally=Tally(), news=(), at_s=0.0
)


def drawn(snapshot: Snapshot, *, width: int = 90, height: int = 34, command: str = "holdfast") -> list[str]:
    """The lines of the picture, without colours."""
    text = io.StringIO()
    console = Console(file=text, width=width, height=height, legacy_windows=False, color_system=None)
    console.print(picture(snapshot, width=width, height=height, command=command))
    return text.getvalue().splitlines()


def line_with(part: str, lines: list[str]) -> str:
    return next(line for line in lines if part in line)


def test_it_shows_what_goes_on() -> None:
    lines = drawn(SNAPSHOT)
    assert line_with("mail ", lines).split() == (
        ["mail", "16", "2", "2", "0", "█████", "critical", "11", "normal", "4", "low", "1"]
    )
    assert line_with("9f3a", lines).split()[-7:] == ["71%", "writing", "again:", "its", "worker", "was", "killed"]
    assert line_with("c31f", lines).split() == ["call_partner", "c31f", "0.2", "s", "attempt", "2/4"]
    assert "77aa  in 0.6 s  1/4  the bank does not answer" in line_with("77aa", lines)
    assert "exhausted  the post office does not answer" in line_with("cb85", lines)
    assert "843 enqueued" in lines[1]
    assert lines[0].rstrip().endswith("46 jobs/s")
    assert "7/8 and 3/4 in process 4711" in line_with("Workers", lines)
    assert "process 4720 was killed with 2 running jobs" in line_with("killed with", lines)
    assert lines[-2].startswith("Ctrl-C drains")
    assert lines[-1].rstrip() == f"In another terminal: holdfast jobs list --url {SNAPSHOT.url}"


@pytest.mark.parametrize("snapshot", [SNAPSHOT, EMPTY], ids=["full", "empty"])
@pytest.mark.parametrize("width", [20, 40, 60, 71, 72, 80, 120, 300])
@pytest.mark.parametrize("height", [13, 20, 24, 30, 60])
def test_it_fits_every_terminal(snapshot: Snapshot, width: int, height: int) -> None:
    lines = drawn(snapshot, width=width, height=height)
    assert max(len(line) for line in lines) <= width
    assert len(lines) <= height


@pytest.mark.parametrize("height", [13, 24, 40])
def test_parts_keep_their_place_whatever_there_is_to_show(height: int) -> None:
    assert len(drawn(SNAPSHOT, height=height)) == len(drawn(EMPTY, height=height))


def test_a_command_is_shown_whole_or_not_at_all() -> None:
    look = f"python -m holdfast jobs list --url {SNAPSHOT.url}"
    assert drawn(SNAPSHOT, command="python -m holdfast")[-1].rstrip() == f"Try: {look}"
    assert drawn(SNAPSHOT, width=len(look), command="python -m holdfast")[-1].rstrip() == f"Store: {SNAPSHOT.url}"
    assert drawn(SNAPSHOT, width=40)[-1].strip() == ""


def test_a_low_terminal_tells_the_last_of_the_story_in_its_last_line() -> None:
    assert drawn(SNAPSHOT, height=16)[-1].startswith("a silent worker was declared dead")


def test_draining_is_said() -> None:
    assert drawn(dataclasses.replace(SNAPSHOT, draining=True))[-2].startswith("Draining")


def test_what_a_task_wrote_is_shown_as_text() -> None:
    hostile = dataclasses.replace(SNAPSHOT, running=(slow("9f3a", 5, "\x1b[31m\n[red]x"),))
    [line] = [line for line in drawn(hostile) if "9f3a" in line]
    assert r"\x1b[31m\n[red]x" in line


@given(st.lists(st.integers(min_value=0, max_value=100_000), min_size=1))
def test_a_sparkline_is_as_long_as_its_numbers_and_orders_as_they_do(numbers: list[int]) -> None:
    line = sparkline(numbers)
    assert len(line) == len(numbers)
    highest, lowest = numbers.index(max(numbers)), numbers.index(min(numbers))
    assert ord(line[highest]) >= ord(line[lowest])
    assert line[highest] == ("█" if max(numbers) else "▁")


def test_in_lines_every_piece_of_news_is_said_once_and_every_second_has_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines(Output())
    lines(SNAPSHOT)
    lines(dataclasses.replace(SNAPSHOT, at_s=19.4))
    lines(dataclasses.replace(SNAPSHOT, at_s=20.1))
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 5 + 2
    assert said[2] == "   4.6 s  process 4720 was killed with 2 running jobs; its lease ends in 3 s"
    assert said[5] == (
        "  19.0 s  41 jobs/s; 843 enqueued, 749 succeeded, 14 retried, 3 dead, 2 recovered, 79 ready, 10 running, "
        "4 scheduled; import_rows 71%, import_rows 58%, import_rows 24%"
    )
    assert said[6].startswith("  20.1 s")


def test_as_json_every_line_is_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    Lines(Output(as_json=True))(SNAPSHOT)
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["event"] for each in documents] == [*(news.name for news in SNAPSHOT.news), "demo.second"]
    assert (documents[-1]["enqueued"], documents[-1]["ready"], documents[-1]["per_second"]) == (843, 79, 41)


def test_only_what_is_notable_is_told() -> None:
    buried = JobBuried(UUID(int=0xABCD), "charge", 1, "holdfast.PermanentError: no", "permanent")
    assert told(buried) == "charge abcd is dead (permanent): holdfast.PermanentError: no"
    assert told(JobStarted(UUID(int=1), "charge", "default", 1, UUID(int=2))) is None
