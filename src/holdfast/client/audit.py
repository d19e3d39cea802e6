"""`hf.audit`: who changed what while everything ran, and what it was before."""

from __future__ import annotations

from holdfast.client.filters import check_limit
from holdfast.core.errors import InvalidOptions
from holdfast.core.queue_options import told
from holdfast.core.shown import shown
from holdfast.stores.base import Store
from holdfast.stores.flow import SettingChange


class Audit:
    """Changes by operators, of queues, tenants, limits, pauses, breakers and keys, and what they did to jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, *, limit: int = 100, before: int | None = None) -> list[SettingChange]:
        """Newest first; `before` is the number of the last one of the page before."""
        if before is not None and (isinstance(before, bool) or not isinstance(before, int) or before < 1):
            raise InvalidOptions(f"before={shown(before)}: needs the number of a change, from 1 on")
        found = await self._store.setting_changes(limit=check_limit(limit), before=before)
        return [_told(each) if each.what == "queue" else each for each in found]


def _told(change: SettingChange) -> SettingChange:
    """With options of queues as they are said everywhere else, and not as they are kept."""
    before, after = (None if words is None else told(words) for words in (change.before, change.after))
    return change._replace(before=before, after=after)
