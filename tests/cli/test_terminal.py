"""On a terminal: tables that fit, colours unless unwanted, bars, questions, Ctrl-C."""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.cli.conftest import Shop
from tests.cli.processes import PATIENCE_S, hold, on_terminal, working

from holdfast import Holdfast, JobFailed, PermanentError

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_a_list_is_a_table_in_colour(shop: Shop) -> None:
    ended = on_terminal("jobs", "list", "--url", shop.url, cwd=shop.path)
    heading, *rows = _COLOUR.sub("", ended.out).splitlines()
    assert ended.code == 0
    assert heading.split() == ["id", "state", "task", "queue", "priority", "attempt", "progress", "age"]
    assert [row.split()[0] for row in rows] == [shop.later, *reversed(shop.ready), *reversed(shop.dead), shop.done]
    assert "\x1b[31mdead" in ended.out
    assert "\x1b[32msucceeded" in ended.out


def test_no_colour_where_none_is_wanted(shop: Shop) -> None:
    ended = on_terminal("jobs", "list", "--url", shop.url, cwd=shop.path, NO_COLOR="1")
    assert not re.search(r"\x1b\[(3|4|9)\d", ended.out), ended.out  # bold is no colour
    assert "succeeded" in ended.out


def test_a_narrow_terminal_gets_fewer_columns_and_whole_ids(shop: Shop) -> None:
    for width, titles in ((60, ["id", "state", "task"]), (48, ["id", "state"])):
        lines = _COLOUR.sub("", on_terminal("jobs", "list", "--url", shop.url, cwd=shop.path, width=width).out)
        heading, *rows = lines.splitlines()
        assert heading.split() == titles
        assert rows[-1].split()[0] == shop.done
        assert max(len(line) for line in lines.splitlines()) <= width


def test_an_id_stays_whole_however_narrow_the_terminal(shop: Shop) -> None:
    listed = on_terminal("jobs", "list", "-s", "succeeded", "--url", shop.url, cwd=shop.path, width=30)
    assert _COLOUR.sub("", listed.out).splitlines()[1].split() == [shop.done, "succeeded"]
    shown = on_terminal("jobs", "show", shop.done, "--url", shop.url, cwd=shop.path, width=30)
    assert _COLOUR.sub("", shown.out).splitlines()[:2] == [f"id: {shop.done}", "state: succeeded"]


_ERROR = r"holdfast.PermanentError: 0 cents \x1b[31m\tcannot be charged"


@pytest.mark.parametrize(
    ("width", "titles", "is_whole"),
    [
        (86, ["id", "reason", "error"], False),
        (120, ["id", "reason", "task", "queue", "age", "error"], False),
        (200, ["id", "reason", "task", "queue", "attempt", "age", "error"], True),
    ],
)
def test_errors_of_dead_jobs_go_before_details_and_get_all_the_width(
    width: int, titles: list[str], is_whole: bool, shop: Shop
) -> None:
    ended = on_terminal("dead", "list", "--url", shop.url, cwd=shop.path, width=width)
    heading, row, *_ = _COLOUR.sub("", ended.out).splitlines()
    assert heading.split() == titles
    shown = row.rstrip().rpartition("  ")[2]
    assert shown == _ERROR if is_whole else shown[:-1] + "…" == shown and _ERROR.startswith(shown[:-1])
    assert len(row.rstrip()) <= width if is_whole else len(row.rstrip()) == width


def test_a_long_error_is_whole_where_there_is_the_width_and_in_a_pipe(shop: Shop) -> None:
    complaint = "no " * 40 + "end"

    async def fail_at_length() -> None:
        hf = Holdfast(shop.url)

        @hf.task(name="complain")
        async def complain() -> None:
            raise PermanentError(complaint)

        async with hf, hf.worker():
            with pytest.raises(JobFailed):
                await (await complain.enqueue()).result(timeout=PATIENCE_S)

    asyncio.run(fail_at_length())
    words = ("dead", "list", "--task", "complain", "--url", shop.url)
    assert complaint in _COLOUR.sub("", on_terminal(*words, cwd=shop.path, width=300).out)
    assert complaint in hold(*words, cwd=shop.path).out


def test_doctor_says_its_verdicts_on_a_narrow_terminal(shop: Shop) -> None:
    ended = on_terminal("doctor", "-A", "shop:hf", cwd=shop.path, width=50)
    table = _COLOUR.sub("", ended.out).partition("\nwarn: ")[0].splitlines()[1:]
    assert {row.split()[0] for row in table} == {"ok", "warn"}
    assert max(len(row) for row in table) <= 50


def test_the_help_fits_a_narrow_terminal(shop: Shop) -> None:
    ended = on_terminal("enqueue", "--help", cwd=shop.path, width=60)
    prose = ended.out.partition("\n  holdfast enqueue")[0]  # examples stay in one piece, to be copied
    assert max(len(line) for line in prose.splitlines()) <= 60


def test_hostile_text_is_shown_as_text(shop: Shop) -> None:
    ended = on_terminal("dead", "show", shop.dead[0], "--url", shop.url, cwd=shop.path, width=200)
    assert r"cents \x1b[31m\tcannot be charged" in ended.out


def test_waiting_shows_a_bar_that_moves_and_then_the_ending(shop: Shop) -> None:
    with working(shop.path):
        job_id = hold("enqueue", "shop:hf", "shop.rows", "4", cwd=shop.path).out.strip()
        steps = [(f"{25 * row}%", shop.path / f"go-{row}") for row in range(1, 5)]
        ended = on_terminal("jobs", "wait", job_id, "-A", "shop:hf", cwd=shop.path, answers=steps)
    text = _CONTROL.sub("", ended.out)
    seen = [int(each) for each in re.findall(r"shop\.rows running reading \S+ +(\d+)%", text)]
    assert ended.code == 0
    assert seen == sorted(seen)
    assert set(seen) == {25, 50, 75, 100}, text
    assert text.splitlines()[-1].strip().endswith(f"{job_id}: succeeded")


def test_ctrl_c_while_waiting_is_silent(shop: Shop) -> None:
    words = ("jobs", "wait", shop.later, "--url", shop.url)
    ended = on_terminal(*words, cwd=shop.path, answers=[("scheduled", "\x03")])
    assert ended.code == 130
    assert ended.out.startswith("note: no worker is running: `holdfast worker MODULE:APP` starts one\n")
    assert "Traceback" not in ended.out
    assert "holdfast:" not in ended.out


def test_many_are_counted_and_asked_about(shop: Shop) -> None:
    words = ("dead", "purge", "--queue", "bank", "--url", shop.url)
    declined = on_terminal(*words, cwd=shop.path, answers=[("3 dead jobs to purge: go on? [y/N]", "n\n")])
    assert declined.code == 1
    interrupted = on_terminal(*words, cwd=shop.path, answers=[("3 dead jobs to purge: go on? [y/N]", "\x03")])
    assert interrupted.code == 130
    assert "Traceback" not in interrupted.out
    agreed = on_terminal(*words, cwd=shop.path, answers=[("3 dead jobs to purge: go on? [y/N]", "y\n")])
    assert agreed.code == 0
    assert re.search(r"purge .*100%", _CONTROL.sub("", agreed.out))
    assert "3 dead jobs purged" in agreed.out
    assert hold("dead", "list", "--url", shop.url, cwd=shop.path).out == ""
