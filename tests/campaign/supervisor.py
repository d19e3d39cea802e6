"""A supervisor with worker processes: `python -m tests.campaign.supervisor <directory> <lease_s> [<url>]`.

It is `holdfast worker` on the app in `supervised`, as a user runs it.
"""

from __future__ import annotations

import os
import sys

from tests.campaign.child import die_with_parent

from holdfast_command import run

PROCESSES = 2


def main(directory: str, lease_s: str, url: str = "") -> None:
    die_with_parent()
    os.environ |= {"CAMPAIGN_DIRECTORY": directory, "CAMPAIGN_LEASE_S": lease_s, "CAMPAIGN_URL": url}
    sys.argv = ["holdfast", "worker", "tests.campaign.supervised:hf", "--processes", str(PROCESSES)]
    run()


if __name__ == "__main__":
    main(*sys.argv[1:])
