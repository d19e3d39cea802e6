"""fold: the notes that writers leave about the depth of queues are added up, so that few of them are to be read."""

from __future__ import annotations

from holdfast.upkeep.leader import Led

_BATCH = 5000
_EVERY_S = 0.5
_AT_MOST_S = 4.0
_BREATH_S = 0.05


class Folder(Led):
    """Twice a second while there is something to fold, less often while there is not.

    Two at once take different notes and add them to the same sum; where nobody folds, producers do it themselves.
    """

    _rest_s = _EVERY_S

    async def tick(self) -> float:
        folded = await self.store.fold_depths(limit=_BATCH)
        if folded >= _BATCH:
            return _BREATH_S
        self._rest_s = _EVERY_S if folded else min(_AT_MOST_S, 2 * self._rest_s)
        return self._rest_s
