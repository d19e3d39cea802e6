"""A process that we started, awaited on the event loop without a thread: where none can be had, it is not forgotten.

asyncio would have a thread wait for each (up to Python 3.11); where it gets none, it forgets a process that runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Sequence
from typing import Any, Final, Self

#: Where the kernel tells nobody of the end of a process, it is asked so often.
_ASK_EVERY_S: Final = 0.05
#: How a process ended whose end somebody else has asked for: it can be asked for only once.
UNKNOWN_CODE: Final = 255


class StartedProcess:
    """Collected by the event loop that it was started on, whether anybody waits for it or not."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.pid = popen.pid
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        try:
            pidfd = os.pidfd_open(self.pid)
        except (OSError, AttributeError):  # an old or another kernel, or no descriptor is left
            self._ask()
        else:
            self._loop.add_reader(pidfd, self._collect, pidfd)

    @classmethod
    def start(cls, command: Sequence[str], *, pass_fds: Sequence[int], **how: Any) -> Self:
        """Without standard input; `how` as for `Popen`. OSError where the system gives no process or descriptors."""
        # The command is our own: no user writes it.
        return cls(subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=pass_fds, **how))  # noqa: S603

    async def wait(self) -> int:
        """Its exit code, below 0 for the signal that killed it. Whoever stops waiting stops nothing else."""
        return await asyncio.shield(self._ended)

    def _collect(self, pidfd: int) -> None:
        if self._asked():
            self._loop.remove_reader(pidfd)
            os.close(pidfd)

    def _ask(self) -> None:
        if not self._asked():
            self._loop.call_later(_ASK_EVERY_S, self._ask)

    def _asked(self) -> bool:
        """Whether it has ended; the kernel forgets it then."""
        code = UNKNOWN_CODE
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if not pid:
                return False
            code = os.waitstatus_to_exitcode(status)
        self._popen.returncode = code  # else it would be waited for once more
        self._ended.set_result(code)
        return True
