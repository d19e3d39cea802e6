"""`holdfast` with a supervisor that waits less for what only patience tells; nothing else about it differs."""

from __future__ import annotations

from holdfast.cli.main import run
from holdfast.worker.supervision import scale, supervisor

if __name__ == "__main__":
    scale.DOWN_AFTER_S = 1.0  # type: ignore[misc]
    supervisor.LONELY_FOR_S = 1.0  # type: ignore[misc]
    run()
