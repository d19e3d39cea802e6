"""For all tests: the shipped checks fail as readably as the tests themselves, and Ctrl-C can be tested."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest

# Here, and not beside the contract tests: it has to come before anything imports them.
pytest.register_assert_rewrite("holdfast.testing.contracts")

pytest_plugins = [
    "tests.postgres.fixtures",
    "tests.postgres.emptied",
    "tests.postgres.bouncer",
    "tests.redis.fixtures",
]

# A shell starts what it puts into the background with SIGINT ignored. Processes that tests start would inherit that,
# and a test that presses Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """What is there before the first test stays: no collection of garbage, ours or the interpreter's own, looks at it.

    Thousands of collected tests are a large heap; many tests end with a collection of theirs, each of which would
    take a second otherwise. It grows without any: there is hardly garbage in it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
