"""Which key is this: asked once a second of the store, and answered from memory between; when keys are used is noted
there, and written down now and then."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from holdfast.app import Holdfast
from holdfast.core.api_key import ApiKey, parse_key_text
from holdfast.core.errors import HoldfastError
from holdfast.stores.api_keys import KeyUse

#: A key that was revoked opens for so long yet, at most.
FRESH_S: Final = 1.0
_NOTED_EVERY_S: Final = 30.0
_MOST_KEPT: Final = 4_096
_log = logging.getLogger("holdfast.http")


class Keyring:
    """The keys that were used lately."""

    def __init__(self, hf: Holdfast, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._hf = hf
        self._monotonic = monotonic
        self._known: OrderedDict[str, tuple[ApiKey | None, float]] = OrderedDict()
        self._uses: dict[str, KeyUse] = {}
        self._noted_at = monotonic()
        self._noting: asyncio.Task[None] | None = None

    async def find(self, text: str) -> ApiKey | None:
        """The key that this text is; None: it is none, or opens nothing now."""
        parsed = parse_key_text(text)
        if parsed is None:
            return None
        key, now = await self._look_up(parsed.id), datetime.now(UTC)
        if key is None:
            return None
        opens = key.opens(parsed.secret, now)
        self._note(key.id, opens, now)
        return key if opens else None

    async def _look_up(self, key_id: str) -> ApiKey | None:
        found = self._known.get(key_id)
        if found is not None and self._monotonic() - found[1] < FRESH_S:
            return found[0]
        asked_at = self._monotonic()
        key = await self._hf.keys.get(key_id)
        self._known[key_id] = key, asked_at
        self._known.move_to_end(key_id)
        if len(self._known) > _MOST_KEPT:
            self._known.popitem(last=False)
        return key

    def _note(self, key_id: str, opens: bool, now: datetime) -> None:
        used, failed = self._uses.get(key_id, KeyUse())
        self._uses[key_id] = KeyUse(now, failed) if opens else KeyUse(used, now)
        if self._noting is None and self._monotonic() - self._noted_at >= _NOTED_EVERY_S:
            self._noting = asyncio.create_task(self._write_down(), name="holdfast-key-uses")

    async def _write_down(self) -> None:
        self._noted_at = self._monotonic()
        uses, self._uses = self._uses, {}
        try:
            await self._hf.keys.note_uses(uses)
        except HoldfastError as error:  # it is only shown; what comes next is written down with the next
            _log.warning("when keys were last used could not be written down: %s", type(error).__name__)
        finally:
            self._noting = None

    async def close(self) -> None:
        """Write down what is left."""
        if self._noting is not None:
            await asyncio.wait([self._noting])
        if self._uses and self._hf.is_open:
            await self._write_down()
