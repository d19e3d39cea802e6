"""For all tests: the shipped checks fail as readably as the tests themselves."""

from __future__ import annotations

import pytest

# Here, and not beside the contract tests: it has to come before anything imports them.
pytest.register_assert_rewrite("holdfast.testing.contracts")

pytest_plugins = ["tests.postgres.fixtures", "tests.postgres.emptied"]
