"""Plays scenes in processes that a failpoint may kill: `python -m tests.faults.struck`, one JSON line per scene.

It has imported everything already and forks for each scene, because a hundred fresh interpreters would take a minute.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import traceback
from dataclasses import asdict
from typing import Any, Self

from tests.campaign.child import die_with_parent, environment
from tests.campaign.where import Where
from tests.faults.scenarios import LATER, SCENES, store_at

from holdfast.runtime.failpoints import arm_from_text, declared

_PLAY_LIMIT_S = 20


class Stage:
    """The process that plays, as the tests hold it."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.struck"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def play(self, verb: str, where: Where, failpoints: str) -> int:
        """Play the verb's scene there; returns the exit code, negative for a signal."""
        return int(self._ask({"verb": verb, "where": asdict(where), "failpoints": failpoints}))

    def declared(self) -> list[str]:
        """The failpoints that Holdfast has, without those that tests have declared."""
        return list(self._ask({}))

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


async def _act(verb: str, where: Where) -> None:
    store = store_at(where, LATER)
    await store.open()
    await SCENES[verb].act(store)
    await store.close()


def _play_in_a_fork(verb: str, where: dict[str, str], failpoints: str) -> int:
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        signal.alarm(_PLAY_LIMIT_S)
        arm_from_text(failpoints)
        asyncio.run(_act(verb, Where(**where)))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    die_with_parent()
    for line in sys.stdin:
        question = json.loads(line)
        answer = _play_in_a_fork(**question) if question else sorted(declared())
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
