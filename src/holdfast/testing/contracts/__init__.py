"""The conformance suite of the store contract, as plain coroutines that any test runner can call.

    for name, check in CHECKS.items():
        await check(fresh_and_open_store)

Each check wants an open store with nothing in it and raises AssertionError where the store breaks its promise. No
check controls the clock or sleeps: what has to be past is made past. Not for what the contract leaves open.
"""

from __future__ import annotations

from holdfast.testing.contracts.checks import CHECKS, Check

__all__ = ["CHECKS", "Check"]
