"""For users' own tests: `harness(hf)` runs an app's jobs without a server, a worker or a sleep. Needs no pytest."""

from __future__ import annotations

from holdfast.testing.enqueued import Enqueued
from holdfast.testing.harness import Harness, SyncHarness, harness

__all__ = ["Enqueued", "Harness", "SyncHarness", "harness"]
