"""The part of the contract about API keys, and about the record of what their owners do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from holdfast.core.api_key import ApiKey


class KeyUse(NamedTuple):
    """When somebody last came with a key; None: not since the last word about it."""

    used_at: datetime | None = None
    failed_at: datetime | None = None


class ApiKeyStore(Protocol):
    """Keys, shared by all processes. Secrets are never here."""

    async def add_api_key(self, key: ApiKey, *, by: str) -> bool:
        """Keep a new key; True also where a call whose answer was lost has kept it. False: another has this id."""
        ...

    async def api_keys(self, key_ids: Sequence[str] | None = None) -> list[ApiKey]:
        """Those of these ids; None: all of them, revoked ones too, the newest first."""
        ...

    async def rotate_api_key(self, key_id: str, digest: bytes, *, grace_s: float, by: str) -> ApiKey | None:
        """Another secret; the one before opens for so long yet. None: there is no such key, or it is revoked."""
        ...

    async def revoke_api_key(self, key_id: str, *, by: str) -> ApiKey | None:
        """From the commit on it opens nothing, for good. None: there is no such key."""
        ...

    async def note_key_uses(self, uses: Mapping[str, KeyUse]) -> None:
        """When keys were last used; a time that is older than what is known changes nothing."""
        ...

    async def record_act(self, *, by: str, what: str, name: str, said: Mapping[str, Any]) -> None:
        """Put on record what somebody is about to do that is no setting, as to purge dead jobs."""
        ...
