"""A worker of the campaign: `python -m tests.campaign.worker <directory> <lease_s> [<url>]`, until SIGTERM."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from tests.campaign.app import QUEUES, Campaign, make_app
from tests.campaign.child import die_with_parent
from tests.history import RunRecorder


def main(directory: str, lease_s: str, url: str = "") -> None:
    die_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(process)d %(name)s %(message)s")
    logging.getLogger("holdfast.job").setLevel(logging.CRITICAL)  # failing jobs are the order of the day here
    place = Campaign(Path(directory))
    recorder = RunRecorder(place.runs)
    make_app(place, lease_s=float(lease_s), recorder=recorder, url=url, queues=QUEUES).hf.run_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
