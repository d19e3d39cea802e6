"""How hard the fuzzing tries: `HOLDFAST_TEST_EXAMPLES=20000` searches for longer than the ordinary run does."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("HOLDFAST_TEST_EXAMPLES", "100"))

_ALWAYS = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
        HealthCheck.function_scoped_fixture,
    ],
}

#: For functions that only compute.
fuzzed = settings(max_examples=EXAMPLES, **_ALWAYS)
#: For what opens a store, runs a worker or a command.
fuzzed_slowly = settings(max_examples=max(1, EXAMPLES // 8), **_ALWAYS)
