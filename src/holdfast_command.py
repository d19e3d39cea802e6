"""The command `holdfast`, before any of its imports: Ctrl-C ends it quietly then, too.

Beside the package and not in it: whoever imports a module of a package imports the package first.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # not from `typing`: nothing is imported here that takes any time
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

#: `Exit.INTERRUPTED`, which is not there yet.
INTERRUPTED = 130


def run() -> NoReturn:
    """Import the command line, run it and end the process."""
    _fill_standard_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not ignored, as in the background
        signal.signal(signal.SIGINT, _end)
    try:
        from holdfast.cli.main import run as run_command

        if signal.getsignal(signal.SIGINT) is _end:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run_command()
    except KeyboardInterrupt:  # in one of the moments before and after the command itself, which knows what to do
        sys.exit(INTERRUPTED)


def _fill_standard_streams() -> None:
    """Those that were closed lead nowhere; else the next file or socket would get their number, and what is printed."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _end(number: int, frame: FrameType | None) -> NoReturn:
    # An exception could be taken for a failed import by whatever module it hits. Nothing is open yet that needs care.
    os._exit(INTERRUPTED)
