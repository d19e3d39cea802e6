"""Profiles for the state machine: `HOLDFAST_TEST_EXAMPLES=5000` searches for longer than the ordinary run does."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("HOLDFAST_TEST_EXAMPLES", "40"))

#: A verb on PostgreSQL takes several times as long.
PROFILES = {"model": EXAMPLES, "model on postgres": max(1, EXAMPLES // 8)}

for name, examples in PROFILES.items():
    settings.register_profile(
        name,
        max_examples=examples,
        stateful_step_count=15,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
