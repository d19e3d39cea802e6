"""`python -m holdfast.cli.demo.second_worker URL`: the demonstration's worker that is there to be killed.

Ends by itself when its standard input does: it must not outlive a demonstration that died.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading

from holdfast.cli.demo.tasks_file import SLOW_QUEUE, load_tasks


def main(url: str) -> None:
    """Work on the slow jobs until told to stop, or killed."""
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    load_tasks(url).hf.run_worker(queues=[SLOW_QUEUE], concurrency=2)


def _end_with_the_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1])
