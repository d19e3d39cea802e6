"""Keys of the HTTP API, and the record of what their owners do."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.core.api_key import ApiKey, Scope
from holdfast.stores.api_keys import KeyUse
from holdfast.stores.sqlite.rules import record_change
from holdfast.stores.sqlite.statements import load
from holdfast.stores.sqlite.transaction import Tx

SQL = load("api_keys")


def add_api_key(tx: Tx, key: ApiKey, *, by: str) -> bool:
    """Keep a new key; False: another has this id."""
    scopes, queues = json.dumps(sorted(key.scopes)), None if key.queues is None else json.dumps(sorted(key.queues))
    row = (key.id, key.name, scopes, queues, key.tenant, _seconds(key.created_at), _seconds(key.expires_at), key.digest)
    if not tx.db.execute(SQL["add"], row).rowcount:
        found = _one(tx.db, key.id)
        return found is not None and found.digest == key.digest
    record_change(tx, by=by, what="key", name=key.id, before=None, after=key.words())
    return True


def api_keys(db: sqlite3.Connection, *, key_ids: Sequence[str] | None) -> list[ApiKey]:
    """Those of these ids, or all of them."""
    if key_ids is None:
        return [_key(row) for row in db.execute(SQL["all"])]
    return [found for key_id in key_ids if (found := _one(db, key_id)) is not None]


def rotate_api_key(tx: Tx, key_id: str, *, digest: bytes, grace_s: float, by: str) -> ApiKey | None:
    """Another secret."""
    before = _one(tx.db, key_id)
    if before is None or before.revoked_at is not None or before.digest == digest:  # the last: an answer was lost
        return before if before is not None and before.digest == digest else None
    tx.db.execute(SQL["rotate"], (digest, tx.now + grace_s, key_id))
    return _recorded(tx, before, by)


def revoke_api_key(tx: Tx, key_id: str, *, by: str) -> ApiKey | None:
    """It opens nothing any more."""
    before = _one(tx.db, key_id)
    if before is None or before.revoked_at is not None:
        return before
    tx.db.execute(SQL["revoke"], (tx.now, key_id))
    return _recorded(tx, before, by)


def note_key_uses(tx: Tx, uses: Mapping[str, KeyUse]) -> None:
    """When keys were last used."""
    rows = [(_seconds(use.used_at), _seconds(use.failed_at), key_id) for key_id, use in uses.items()]
    tx.db.executemany(SQL["note_use"], rows)


def record_act(tx: Tx, *, by: str, what: str, name: str, said: Mapping[str, Any]) -> None:
    """What somebody is about to do."""
    record_change(tx, by=by, what=what, name=name, before=None, after=dict(said))


def _recorded(tx: Tx, before: ApiKey, by: str) -> ApiKey:
    after = _one(tx.db, before.id)
    assert after is not None
    record_change(tx, by=by, what="key", name=before.id, before=before.words(), after=after.words())
    return after


def _one(db: sqlite3.Connection, key_id: str) -> ApiKey | None:
    row = db.execute(SQL["one"], (key_id,)).fetchone()
    return None if row is None else _key(row)


def _key(row: Any) -> ApiKey:
    key_id, name, scopes, queues, tenant, created_at, *times, rotations, digest, old_digest, old_until = row
    expires_at, revoked_at, used_at, failed_at = map(_moment, times)
    created = _moment(created_at)
    assert created is not None
    return ApiKey(
        id=key_id,
        name=name,
        # One that a newer program knows, and this one does not, opens nothing here.
        scopes=frozenset(Scope(each) for each in json.loads(scopes) if each in set(Scope)),
        created_at=created,
        queues=None if queues is None else frozenset(json.loads(queues)),
        tenant=tenant,
        expires_at=expires_at,
        revoked_at=revoked_at,
        used_at=used_at,
        failed_at=failed_at,
        rotations=rotations,
        digest=digest,
        old_digest=old_digest,
        old_until=_moment(old_until),
    )


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
