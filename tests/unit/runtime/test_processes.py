"""How the end of a process is told, and that it comes with its parent's."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from holdfast.runtime.processes import told_end

PATIENCE_S = 30.0

CHILD = """
import os, re, sys
from holdfast.runtime.processes import die_with_parent
die_with_parent(int(sys.argv[1]))
os.write(1, b"%d\\n" % os.getpid())
re.fullmatch("(a+)+b", "a" * 60)  # nothing in here runs any more
"""
PARENT = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())])
sys.stdin.read()
"""


def test_a_process_dies_with_its_parent_whatever_it_does() -> None:
    command = [sys.executable, "-c", PARENT, CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
        parent.wait(PATIENCE_S)
        ended = select.select([child], [], [], PATIENCE_S)[0]
        if not ended:
            signal.pidfd_send_signal(child, signal.SIGKILL)  # one failed test must not burden those after it
        os.close(child)
        assert ended


def test_a_process_whose_parent_has_gone_already_ends_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, "1"], capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (3, "exited with code 3"),
        (-signal.SIGKILL, "was killed by signal 9 (SIGKILL)"),
        (-40, "was killed by signal 40"),
    ],
)
def test_an_end_in_words(code: int, words: str) -> None:
    assert told_end(code) == words
