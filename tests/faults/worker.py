"""A worker in a process of its own: `python -m tests.faults.worker <directory> <lease_s>`, until SIGTERM."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from tests.campaign.child import die_with_parent
from tests.faults.trial import Trial


def main(directory: str, lease_s: str) -> None:
    die_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    Trial(Path(directory), lease_s=float(lease_s)).hf.run_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
