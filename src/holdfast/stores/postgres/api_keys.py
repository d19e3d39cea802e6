"""Keys of the HTTP API, and the record of what their owners do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from holdfast.core.api_key import ApiKey, Scope
from holdfast.stores.api_keys import KeyUse
from holdfast.stores.postgres.engine import Engine
from holdfast.stores.postgres.rules import record_change
from holdfast.stores.postgres.transaction import Tx

T = TypeVar("T")


class ApiKeyVerbs:
    """A part of `PostgresStore`."""

    _engine: Engine

    async def add_api_key(self, key: ApiKey, *, by: str) -> bool:
        return await self._change("add_api_key", partial(_add, key=key, by=by))

    async def api_keys(self, key_ids: Sequence[str] | None = None) -> list[ApiKey]:
        ids = None if key_ids is None else list(key_ids)
        return [_key(row) for row in await self._engine.query("api_keys.some", ids)]

    async def rotate_api_key(self, key_id: str, digest: bytes, *, grace_s: float, by: str) -> ApiKey | None:
        rotate = partial(_rotate, key_id=key_id, digest=digest, grace_s=grace_s, by=by)
        return await self._change("rotate_api_key", rotate)

    async def revoke_api_key(self, key_id: str, *, by: str) -> ApiKey | None:
        return await self._change("revoke_api_key", partial(_revoke, key_id=key_id, by=by))

    async def note_key_uses(self, uses: Mapping[str, KeyUse]) -> None:
        rows = [(key_id, *use) for key_id, use in uses.items()]
        if rows:
            columns = map(list, zip(*rows, strict=True))
            await self._engine.call("note_key_uses", self._engine.verbs, "api_keys.note_uses", *columns)

    async def record_act(self, *, by: str, what: str, name: str, said: Mapping[str, Any]) -> None:
        await self._change(
            "record_act", partial(record_change, by=by, what=what, name=name, before=None, after=dict(said))
        )

    async def _change(self, verb: str, operation: Callable[[Tx], Awaitable[T]]) -> T:
        result, _ = await self._engine.transact(verb, self._engine.verbs, operation)
        return result


async def _add(tx: Tx, key: ApiKey, *, by: str) -> bool:
    queues = None if key.queues is None else sorted(key.queues)
    row = (key.id, key.name, sorted(key.scopes), queues, key.tenant, key.created_at, key.expires_at, key.digest)
    if not await tx.fetch("api_keys.add", *row):
        found = await _one(tx, key.id)
        return found is not None and found.digest == key.digest
    await record_change(tx, by, "key", key.id, None, key.words())
    return True


async def _rotate(tx: Tx, key_id: str, *, digest: bytes, grace_s: float, by: str) -> ApiKey | None:
    before = await _one(tx, key_id)
    if before is None or before.revoked_at is not None or before.digest == digest:  # the last: an answer was lost
        return before if before is not None and before.digest == digest else None
    await tx.fetch("api_keys.rotate", key_id, digest, tx.now + timedelta(seconds=grace_s))
    return await _recorded(tx, before, by)


async def _revoke(tx: Tx, key_id: str, *, by: str) -> ApiKey | None:
    before = await _one(tx, key_id)
    if before is None or before.revoked_at is not None:
        return before
    await tx.fetch("api_keys.revoke", key_id, tx.now)
    return await _recorded(tx, before, by)


async def _recorded(tx: Tx, before: ApiKey, by: str) -> ApiKey:
    after = await _one(tx, before.id)
    assert after is not None
    await record_change(tx, by, "key", before.id, before.words(), after.words())
    return after


async def _one(tx: Tx, key_id: str) -> ApiKey | None:
    rows = await tx.fetch("api_keys.one", key_id)
    return _key(rows[0]) if rows else None


def _key(row: Any) -> ApiKey:
    key_id, name, scopes, created_at, queues, *others = row
    # One that a newer program knows, and this one does not, opens nothing here.
    known = frozenset(Scope(each) for each in scopes if each in set(Scope))
    return ApiKey(key_id, name, known, created_at, None if queues is None else frozenset(queues), *others)
