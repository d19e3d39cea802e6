"""A process of its own that starts a server, reaps it, and stops it when nobody who uses it is left.

Run by path, not imported: it needs the standard library alone and so stays small. Whoever uses the server holds a
shared lock on the file `in_use`, which the kernel takes back however he ends; the exclusive one is the keeper's word
that he was the last. The server itself holds `alive`, inherited by each of its processes: it is free when all are gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any


def main() -> int:
    """Starts the server in the background; 0 as soon as it was started, else 1 and the reason on standard error."""
    order: dict[str, Any] = json.loads(sys.argv[1])
    directory = Path(order["directory"])
    alive = os.open(directory / "alive", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(alive, fcntl.LOCK_EX)
    told, tell = os.pipe()
    if os.fork():
        os.close(tell)
        os.close(alive)
        with os.fdopen(told) as answer:
            reason = answer.read()
        sys.stderr.write(reason)
        return 1 if reason else 0
    os.close(told)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # whoever started us waits for the end of these
        os.dup2(nothing, standard)
    keep(order, directory, alive, tell)
    os._exit(0)  # a thread may still be waiting for the lock


def keep(order: dict[str, Any], directory: Path, alive: int, tell: int) -> None:
    """From the server's start to its end."""
    try:
        with (directory / "log").open("ab") as log:
            server = subprocess.Popen(
                order["command"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=directory, pass_fds=[alive], start_new_session=True, **order["account"],
            )  # fmt: skip
    except OSError as error:
        os.write(tell, str(error).encode())
        os._exit(1)
    os.close(alive)
    os.close(tell)
    in_use = os.open(directory / "in_use", os.O_RDWR)

    def stop_after_the_last() -> None:
        fcntl.flock(in_use, fcntl.LOCK_EX)
        server.send_signal(signal.Signals(order["stop_signal"]))

    threading.Thread(target=stop_after_the_last, daemon=True).start()
    server.wait()
    if order["temporary"]:
        try:
            fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # stopped, but still wanted: it may be started again
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
