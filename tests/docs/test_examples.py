"""Every example runs to its end by itself and says what it is there to show."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import ROOT
from tests.docs.subprocesses import environment, run_python

EXPECTED = {
    "quickstart": ["5"],
    "dead_letters": [
        "dead: the bank does not answer",
        "('Bob', -700) after 1 attempts: permanent",
        "('Ada', 700) after 2 attempts: exhausted",
        "replayed by the type of its error: 1",
        "purged: 1",
        "result: Ada paid 700 cents",
        "result: Bob paid 700 cents",
        "[('replay', '-700 cents cannot be charged')]",
    ],
    "idempotency": [
        "20 callers, 1 job, result 1",
        "the same job: True and its result: 1",
        "refused: order-17",
        "shipped: ['17', '18']",
    ],
    "backpressure": [
        "accepted 20, then: full, try again in 5 s",
        "a producer that waited got through, result 20",
        "never held more than 20: True",
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_shows_what_it_is_there_to_show(name: str, tmp_path: Path) -> None:
    printed = run_python("-m", f"examples.{name}", cwd=tmp_path)
    missing = [line for line in EXPECTED[name] if line not in printed]
    assert not missing, printed


def test_every_example_is_run_here() -> None:
    names = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"__init__"}
    assert names == {*EXPECTED, "demo", "progress"}


def test_progress_is_seen_while_it_is_made(tmp_path: Path) -> None:
    printed = run_python("-m", "examples.progress", cwd=tmp_path)
    seen = [int(number) for number in re.findall(r"running +(\d+)%", printed)]
    assert len(seen) > 2, printed
    assert seen == sorted(set(seen))
    assert "succeeded  100%  done\nresult: 8\n" in printed


def test_the_demonstration_tells_a_whole_story_and_ends(tmp_path: Path) -> None:
    printed = run_python("-m", "examples.demo", cwd=tmp_path)
    for part in (
        "was killed with SIGKILL",
        "declared dead, 1 job is ready again",
        "failed, again in 0.4 s: ConnectionError",
        "dead (permanent): -700 cents cannot be charged",
        "cancelled while it waited",
        "stopped, cancelled",
        "[####....]",
        "Bob paid 700 cents",
        "result: report-May.pdf",
        "stopped in good order",
    ):
        assert part in printed, f"{part!r} is missing in\n{printed}"
    causes = dict(re.findall(r"(\w+) (\d+)", printed.partition("Why jobs ran more than once:")[2].splitlines()[0]))
    assert causes == {"retry": "2", "replay": "1", "lease_expired": "1"}
    assert not re.findall(r"^  \w+ .* [1-9]\d*$", printed.partition("waiting\n")[2].partition("  Why")[0], re.MULTILINE)


def test_the_demonstration_drains_when_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.demo", "--seconds", "600"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            story: list[str] = []
            for line in process.stdout:
                story.append(line)
                if "enqueued so far" in line:
                    process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, "".join(story)
        finally:
            process.kill()
    assert "stopped in good order" in "".join(story)
    assert "Interrupted: the worker was drained" in "".join(story)
