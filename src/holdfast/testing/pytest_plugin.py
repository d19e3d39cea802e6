"""The pytest plugin: the fixtures `holdfast_app` and `holdfast_harness`. The only module here that imports pytest."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import pytest

from holdfast.app import Holdfast
from holdfast.testing.harness import Harness, SyncHarness, harness

_INI = "holdfast_app"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The ini option that names the app."""
    parser.addini(_INI, "the Holdfast app that the tests use, as module:name (for the fixture holdfast_harness)")


@pytest.fixture
def holdfast_app(request: pytest.FixtureRequest) -> Holdfast:
    """The app under test: the one that the ini option `holdfast_app` names, unless you override this fixture."""
    text = str(request.config.getini(_INI) or "")
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise pytest.UsageError(
            f"holdfast_app = {text!r}: name the app as module:name in your pytest settings (as in holdfast_app = "
            "shop.tasks:hf), or define a fixture holdfast_app that returns it"
        )
    app = getattr(importlib.import_module(module), name, None)
    if not isinstance(app, Holdfast):
        raise pytest.UsageError(f"holdfast_app = {text!r}: {name!r} in {module} is not a Holdfast app but {app!r:.80}")
    return app


@pytest.fixture
def holdfast_harness(request: pytest.FixtureRequest, holdfast_app: Holdfast) -> Iterator[Harness | SyncHarness]:
    """An open harness in a `def` test; in an `async def` test one to enter: `async with holdfast_harness as t:`."""
    if inspect.iscoroutinefunction(request.function):
        yield harness(holdfast_app)  # its event loop is the test's own
    else:
        with harness(holdfast_app) as opened:
            yield opened
