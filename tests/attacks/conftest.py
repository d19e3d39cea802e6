"""The same tidiness as for every end-to-end test: nothing armed and no error of asyncio's is left behind."""

from __future__ import annotations

from tests.integration.conftest import nothing_is_left_behind

__all__ = ["nothing_is_left_behind"]
