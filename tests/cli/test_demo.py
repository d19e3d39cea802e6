"""`holdfast demo` as a user meets it: on a terminal, in a pipe, interrupted, cut off."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.cli.processes import COMMAND, PATIENCE_S, environment, hold, on_terminal, patience

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3|4|9|10)\d[;m]")
_OTHER_SCREEN, _BACK = "\x1b[?1049h", "\x1b[?1049l"


def stopped_at(part: str, *words: str, cwd: Path, number: signal.Signals = signal.SIGTERM) -> list[str]:
    """Its lines, when it is told to stop at a certain one, and told again as it drains; it has to end well."""
    env = environment(TMPDIR=str(cwd))
    command = [*COMMAND, "demo", *words]
    todo = [part, "claims nothing more"]
    with subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = []
            with patience(process, 2 * PATIENCE_S):
                for line in process.stdout:
                    lines.append(line.rstrip("\n"))
                    if todo and todo[0] in line:
                        todo.pop(0)
                        process.send_signal(number)
            assert (process.wait(PATIENCE_S), todo) == (0, []), "\n".join(lines)
        finally:
            process.kill()
    return lines


def test_a_killed_worker_is_recovered_from_and_every_job_accounted_for(tmp_path: Path) -> None:
    story = [json.loads(line) for line in stopped_at("declared dead", "--json", cwd=tmp_path)]
    events = Counter(each["event"] for each in story)
    [reaped] = [each for each in story if each["event"] == "worker.reaped"]
    *_, second, summary = [each for each in story if each["event"] in ("demo.second", "demo.summary")]
    assert events["demo.killed"] == 1
    assert events["job.retried"] > 0
    assert events["job.buried"] > 0
    assert second["enqueued"] <= summary["jobs"]
    assert summary["succeeded"] + summary["dead"] + summary["cancelled"] + summary["waiting"] == summary["jobs"]
    assert summary["recovered"] == summary["causes"]["lease_expired"] == reaped["jobs"] > 0
    assert list(tmp_path.iterdir()) == [], "the store was temporary"


def test_in_a_pipe_it_prints_lines_and_its_jobs_stay_where_they_were_wanted(tmp_path: Path) -> None:
    words = ("--url", "sqlite:///kept.db")
    lines = "\n".join(stopped_at("is dead (permanent)", *words, cwd=tmp_path, number=signal.SIGHUP))
    assert "\x1b" not in lines
    assert re.search(r"^ +\d\.\d s  a worker serves mail, media, payments", lines, re.MULTILINE)
    assert re.search(r"^ +\d\.\d s  \d+ jobs/s; \d+ enqueued, \d+ succeeded", lines, re.MULTILINE)
    [jobs] = re.findall(r"^(\d+) jobs in [\d.]+ s, \d+ runs, none lost:$", lines, re.MULTILINE)
    listed = ["jobs", "list", "--url", "sqlite:///kept.db", "--limit", "1000"]
    tries = [line.partition("#")[0] for line in lines.partition("What to try next:\n")[2].splitlines()]
    suggested = [shlex.split(line.removeprefix("  python -m holdfast")) for line in tries]
    assert [words[:2] for words in suggested] == [["dead", "list"], ["dead", "edit"], ["jobs", "show"], ["--help"]]
    first, *others = [hold(*words, cwd=tmp_path) for words in (listed, *suggested)]
    assert len(first.out.splitlines()) == int(jobs)
    assert [(each.code, each.err) for each in others] == [(0, "")] * 4
    assert "700]" in others[2].out, "it was mended"


def test_on_a_terminal_there_is_a_live_view_and_ctrl_c_drains_it(tmp_path: Path) -> None:
    ended = on_terminal("demo", cwd=tmp_path, answers=[("payments", "\x03")], TMPDIR=str(tmp_path))
    before, view, after = re.split(f"{re.escape(_OTHER_SCREEN)}|{re.escape(_BACK)}", ended.out)
    assert ended.code == 0
    assert "Holdfast at work" in _CONTROL.sub("", view)
    assert "Draining: what runs may end." in view
    assert _COLOUR.search(view)
    assert before == ""
    assert "none lost:" in after
    assert "What to try next:\n  python -m holdfast demo --url" in after
    assert ended.out.rfind("\x1b[?25h") > ended.out.rfind("\x1b[?25l"), "the cursor stays hidden"
    assert "Traceback" not in ended.out
    assert list(tmp_path.iterdir()) == []


def test_a_narrow_terminal_without_colours_is_enough(tmp_path: Path) -> None:
    ended = on_terminal("demo", cwd=tmp_path, width=40, answers=[("payments", "\x03")], NO_COLOR="1")
    view = ended.out.partition(_OTHER_SCREEN)[2].partition(_BACK)[0]
    frames = _CONTROL.sub("", view.replace("\x1b[H", "\n").replace("^C", ""))  # the terminal itself shows the key
    lines = frames.splitlines()
    assert ended.code == 0
    assert not _COLOUR.search(ended.out)
    assert any(line.startswith("imports") for line in lines)
    assert max(len(line) for line in lines) == 40


def test_a_terminal_that_can_only_write_gets_lines(tmp_path: Path) -> None:
    ended = on_terminal("demo", "--seconds", "0", cwd=tmp_path, TERM="dumb")
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "a worker serves mail" in ended.out


def test_a_reader_that_goes_away_ends_it_silently(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    env = environment(TMPDIR=str(tmp_path))
    pipe = subprocess.PIPE
    ended = subprocess.run([*COMMAND, "demo"], cwd=tmp_path, env=env, stdout=write, stderr=pipe, timeout=PATIENCE_S)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, b"")
    assert list(tmp_path.iterdir()) == []


def test_the_second_worker_does_not_outlive_a_demonstration_that_died(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast.cli.demo.second_worker", f"sqlite:///{tmp_path}/demo.db"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdin=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM)  # it may not have come to catch signals yet
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("sqlite:///shop.db", "holdfast: shop.db exists already, and the demonstration makes a store of its own"),
        (":memory:", "holdfast: ':memory:' is private to one process, and the demonstration has two"),
        ("postgresql://shop@127.0.0.1:1/shop", "holdfast: the demonstration makes a SQLite store of its own"),
        ("mysql://shop", "holdfast: "),
    ],
)
def test_other_stores_are_left_alone(url: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "shop.db").touch()
    ended = hold("demo", "--url", url, cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(sentence)
    assert "Traceback" not in ended.err
    assert (tmp_path / "shop.db").stat().st_size == 0


def test_settings_of_the_users_own_apps_do_not_reach_it(tmp_path: Path) -> None:
    env = {"HOLDFAST_URL": "sqlite:///own.db", "HOLDFAST_QUEUES": "other", "HOLDFAST_CONCURRENCY": "1"}
    ended = hold("demo", "--seconds", "0", cwd=tmp_path, **env)
    assert ended.code == 0
    assert "a worker serves mail, media, payments: up to 8 jobs at once" in ended.out
    assert list(tmp_path.iterdir()) == []
