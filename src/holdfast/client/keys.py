"""`hf.keys`: the keys of the HTTP API. Make, list, rotate, revoke; a secret is seen once, by whoever made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from holdfast.client.operator import Operator
from holdfast.core.api_key import (
    ApiKey,
    KeyText,
    Scope,
    check_key_id,
    check_key_name,
    check_queues,
    check_scopes,
    digest_of,
    new_key_text,
)
from holdfast.core.durations import Seconds, seconds
from holdfast.core.errors import InvalidOptions
from holdfast.core.names import check_name
from holdfast.core.shown import shown
from holdfast.stores.api_keys import KeyUse

_TRIES = 3


class NewKey(NamedTuple):
    """A key that was just made, or given another secret."""

    key: ApiKey
    """All that is kept of it."""
    text: str
    """What its owner sends as `Authorization: Bearer …`. It is kept nowhere: this is the only time to see it."""


class Keys:
    """Keys are shared by all processes; a change holds for all of them within a second."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._store = operator.store

    async def create(
        self,
        name: str,
        *,
        scopes: Iterable[Scope | str],
        queues: Iterable[str] | None = None,
        tenant: str | None = None,
        expires: Seconds | datetime | None = None,
        by: str = "",
    ) -> NewKey:
        """Make a key that may do what `scopes` say, on jobs of these queues and of this tenant; None: of any.

        `expires`: from then on (from now, or a moment) it opens nothing; None: never. `by` says who it was; it is the
        user of this process otherwise.
        """
        given = _Given(
            check_key_name(name),
            check_scopes(scopes),
            check_queues(queues),
            None if tenant is None else check_name("tenant", tenant),
        )
        now = await self.now()
        expires_at, who = _expiry(expires, now), self._operator.named(by)
        for _ in range(_TRIES):
            text = new_key_text()
            key = ApiKey(
                id=text.id,
                name=given.name,
                scopes=given.scopes,
                created_at=now,
                queues=given.queues,
                tenant=given.tenant,
                expires_at=expires_at,
                digest=digest_of(text.secret),
            )
            if await self._store.add_api_key(key, by=who):
                self._operator.tell("key", key.id, f"made for {key.name}", who)
                return NewKey(key, str(text))
        raise AssertionError("three ids of twelve random characters were taken")

    async def list(self) -> list[ApiKey]:
        """All of them, also those that have expired or were revoked; the newest first."""
        return await self._store.api_keys()

    async def now(self) -> datetime:
        """The time by which keys expire: the store's."""
        return datetime.fromtimestamp(await self._store.now(), UTC)

    async def get(self, key_id: str) -> ApiKey | None:
        """One by its id; None: there is none."""
        found = await self._store.api_keys([check_key_id(key_id)])
        return found[0] if found else None

    async def rotate(self, key_id: str, *, grace: Seconds = 0, by: str = "") -> NewKey:
        """Give a key another secret. The one before opens for `grace` yet: time to bring the new one to its owner."""
        key_id, who = check_key_id(key_id), self._operator.named(by)
        text: KeyText = new_key_text(key_id)
        key = await self._store.rotate_api_key(key_id, digest_of(text.secret), grace_s=seconds("grace", grace), by=who)
        if key is None:
            raise InvalidOptions(f"there is no key {key_id} that could be rotated: it is revoked, or never was there")
        self._operator.tell("key", key_id, "rotated", who)
        return NewKey(key, str(text))

    async def revoke(self, key_id: str, *, by: str = "") -> ApiKey:
        """It opens nothing any more, for good; to say it again changes nothing."""
        key_id, who = check_key_id(key_id), self._operator.named(by)
        key = await self._store.revoke_api_key(key_id, by=who)
        if key is None:
            raise InvalidOptions(f"there is no key {key_id}; `holdfast keys list` shows those that there are")
        self._operator.tell("key", key_id, "revoked", who)
        return key

    async def note_uses(self, uses: Mapping[str, KeyUse]) -> None:
        """When keys were last used, as a server has seen it; for servers, now and then."""
        await self._store.note_key_uses(uses)

    async def record_act(self, what: str, name: str, said: Mapping[str, Any], *, by: str) -> None:
        """Put on record, beside the changes of settings, what the owner of a key is about to do; for servers."""
        await self._store.record_act(by=self._operator.named(by), what=what, name=name, said=said)


class _Given(NamedTuple):
    name: str
    scopes: frozenset[Scope]
    queues: frozenset[str] | None
    tenant: str | None


def _expiry(expires: Seconds | datetime | None, now: datetime) -> datetime | None:
    if expires is None:
        return None
    if not isinstance(expires, datetime):
        return now + timedelta(seconds=seconds("expires", expires, at_least=1.0))
    if expires.tzinfo is None or expires <= now:
        raise InvalidOptions(f"expires={shown(expires)}: needs a moment with a time zone, in the future")
    return expires.astimezone(UTC)
