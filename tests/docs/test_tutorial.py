"""The tutorial is true: whoever follows it, file by file and command by command, sees what it shows."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.docs.likeness import Likeness
from tests.docs.pages import ROOT, blocks
from tests.docs.terminal import Screen
from tests.docs.walk import Walk, typed

TUTORIAL = ROOT / "docs" / "tutorial.md"


def test_whoever_follows_the_tutorial_sees_what_it_shows() -> None:
    # Not pytest's directory: its long name would break lines that are whole on the page.
    with TemporaryDirectory(prefix="hf") as directory, Walk(Path(directory)) as walk:
        assert not list(walk.follow(TUTORIAL))


def test_nothing_in_the_tutorial_is_left_out() -> None:
    unknown = [b for b in blocks(TUTORIAL.read_text("utf-8")) if b.language != "console" and not b.title]
    assert not unknown, "a block that is neither a file nor a terminal is not tried"


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```console\n$ echo one\ntwo\n```\n", "the page shows 'two', the terminal\none"),
        ("```console\n$ printf 'one\\ntwo\\n'\none\n```\n", "the page does not show 'two'"),
        ("```console\n$ ls nowhere 2>/dev/null\n```\n", "ended with 2"),
        ('```python title="it.py"\nprint(1)\n```\n```console\n$ python3 it.py\n2\n```\n', "the page shows '2'"),
    ],
)
def test_a_page_that_is_wrong_is_noticed(page: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(page)
    with Walk(tmp_path) as walk:
        [found] = walk.follow(tmp_path / "page.md")
    assert fault in found


PATIENT = """```python title="patient.py"
import signal, sys, time
from pathlib import Path

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print("waiting", flush=True)
while not Path("go").exists():
    time.sleep(0.01)
print("going", flush=True)
signal.sigwait({signal.SIGINT})
sys.exit(7)
```
```console title="other"
$ python3 patient.py
waiting
```
```console
$ touch go
```
```console title="other"
going
^C
$ echo free
free
```
"""


def test_a_command_in_another_terminal_goes_on_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PATIENT)
    with Walk(tmp_path) as walk:
        [found] = walk.follow(tmp_path / "page.md")
    assert "$ ^C\nended with 7" in found, "a command that ends badly has to be shown doing so"


def test_a_command_gets_the_real_id_where_the_page_has_its_own(tmp_path: Path) -> None:
    ours, real = "01a1e2dc-d6f5-7675-8bc9-b14f745eddd2", "00000000-0000-7000-8000-000000000001"
    page = f"```console\n$ echo made {real} 3s ago\nmade {ours} 1s ago\n$ echo {ours} > file\n```\n"
    (tmp_path / "page.md").write_text(page)
    with Walk(tmp_path) as walk:
        assert not list(walk.follow(tmp_path / "page.md"))
    assert (tmp_path / "file").read_text() == f"{real}\n"


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ("at 2026-11-16 09:00:05,593 INFO", "at 2027-01-02 23:59:59,001  INFO"),
        ("ended 2026-11-16T09:04:12Z", "ended 2027-01-02T10:00:00Z"),
        ("2 passed in 0.52s", "2 passed in 11.20s"),
        ("sending ━━━━━ 25% 0:00:00", "sending ━━━━━━━━━━       75% 0:00:04"),
        ('File "/home/ada/shop.py", line 3', 'File "/tmp/x/y/shop.py", line 3'),
    ],
)
def test_what_differs_by_nature_may_differ(expected: str, line: str) -> None:
    assert Likeness().same(expected, line)


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ("again in 1.0 s", "again in 2.0 s"),
        ("attempt 1/3", "attempt 2/3"),
        ('File "/home/ada/shop.py", line 3', 'File "/home/ada/shop.py", line 4'),
        ('File "/home/ada/shop.py", line 3', 'File "/home/ada/ship.py", line 3'),
    ],
)
def test_what_is_the_point_may_not_differ(expected: str, line: str) -> None:
    assert not Likeness().same(expected, line)


def test_an_id_of_the_page_stands_for_one_real_id() -> None:
    one, two = "01a1e2dc-d6f5-7675-8bc9-b14f745eddd2", "01a1e2dc-e599-74b8-9b09-3c2ac0362af9"
    likeness = Likeness()
    assert likeness.same(f"job {one}", f"job {two}")
    assert likeness.real(f"show {one}") == f"show {two}"
    assert not likeness.same(f"job {one}", f"job {one}"), "it stands for the other"
    assert not likeness.same(f"job {two}", f"job {two}"), "that is taken"


def test_a_screen_shows_what_is_left_and_remembers_what_was_there() -> None:
    screen = Screen()
    screen.show("\x1b[?25l\r\x1b[2Kbar 10%\r\x1b[2Kbar 90%\r\n\x1b[?25h\x1b[1A\x1b[2Kdone\r\n")
    assert screen.lines[0] == "done"
    assert screen.seen == ["bar 10%", "bar 90%", "done"]


def test_a_block_is_taken_apart_into_commands_and_their_output() -> None:
    [block] = blocks('```console title="worker"\nmeanwhile\n^C\nended\n$ ls -l\n```\n')
    assert typed(block) == [("", ["meanwhile"]), ("^C", ["ended"]), ("ls -l", [])]
