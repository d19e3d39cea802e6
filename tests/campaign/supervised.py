"""The app as worker processes under a supervisor import it; where everything is comes by the environment."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from tests.campaign.app import Campaign, make_app
from tests.history import RunRecorder

logging.getLogger("holdfast.job").setLevel(logging.CRITICAL)  # failing jobs are the order of the day here
_place = Campaign(Path(os.environ["CAMPAIGN_DIRECTORY"]))
hf = make_app(
    _place,
    lease_s=float(os.environ["CAMPAIGN_LEASE_S"]),
    recorder=RunRecorder(_place.runs),
    url=os.environ["CAMPAIGN_URL"],
    kill_after_s=0.5,
    isolates=1,
).hf
