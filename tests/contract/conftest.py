"""Shows what an assertion in the shipped checks compared, as it does in tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("holdfast.testing.contracts")
