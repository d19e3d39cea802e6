"""The same tidiness as for every end-to-end test: nothing armed and no error of asyncio's is left behind."""

from __future__ import annotations

from tests.integration.conftest import nothing_is_left_behind
from tests.supervision.conftest import make_crew

__all__ = ["make_crew", "nothing_is_left_behind"]
