"""What `worker --reload` starts: the command line as it always is, in a process that drains when its parent has gone.

python -m holdfast.cli.reloaded FD worker …     FD is the end of a pipe whose other end only the parent holds
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from holdfast.cli.main import run


def main() -> None:
    """Run the rest of the words as a command."""
    pipe = int(sys.argv[1])
    os.set_inheritable(pipe, False)
    threading.Thread(target=_drain_without_parent, args=(pipe,), name="holdfast-parent", daemon=True).start()
    run(sys.argv[2:])


def _drain_without_parent(pipe: int) -> None:
    os.read(pipe, 1)  # nothing is ever written: it returns when the parent has gone, however it went
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
