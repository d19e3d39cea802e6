"""Keys of the HTTP API: kept without their secrets, changed one at a time, every change on record."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from holdfast.core.api_key import ApiKey, Scope, digest_of, new_key_text
from holdfast.stores.api_keys import KeyUse
from holdfast.stores.base import Store
from holdfast.stores.flow import SettingChange
from holdfast.testing.contracts.arrange import LONG_S, PLENTY

ME, YOU = "me@example.com", "you@example.com"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


FIRST = "the first"


def a_key(secret: str = FIRST, *, minutes: int = 0) -> ApiKey:
    """One that was made so long after all began."""
    return ApiKey(
        id=new_key_text().id,
        name="the shop",
        scopes=frozenset({Scope.SUBMIT, Scope.READ_PAYLOAD}),
        created_at=EPOCH + timedelta(minutes=minutes),
        queues=frozenset({"mail", "print"}),
        tenant="acme",
        expires_at=EPOCH + timedelta(days=3650),
        digest=digest_of(secret),
    )


async def _one(store: Store, key_id: str) -> ApiKey:
    [found] = await store.api_keys([key_id])
    return found


async def _changes(store: Store) -> list[SettingChange]:
    return await store.setting_changes(limit=PLENTY)


async def check_a_key_is_kept_as_it_was_made(store: Store) -> None:
    assert await store.api_keys() == [], "there are none at first"
    bound, free = a_key(), replace(a_key(minutes=1), queues=None, tenant=None, expires_at=None)
    assert await store.add_api_key(bound, by=ME), "it is new"
    assert await store.add_api_key(free, by=ME), "it is new"
    assert await store.api_keys() == [free, bound], "all of them, the newest first"
    assert await store.api_keys([bound.id, "nobody"]) == [bound], "one by its id; what is not there is left out"


async def check_an_id_belongs_to_one_key(store: Store) -> None:
    key = a_key()
    assert await store.add_api_key(key, by=ME), "it is new"
    assert await store.add_api_key(key, by=ME), "the same again, as after a lost answer"
    other = replace(key, name="another", digest=digest_of("another secret"))
    assert not await store.add_api_key(other, by=YOU), "the id is taken"
    assert await store.api_keys() == [key], "nothing has changed"
    assert [change.by for change in await _changes(store)] == [ME], "and nothing else is on record"


async def check_a_rotated_key_opens_with_both_secrets_for_a_while(store: Store) -> None:
    key = a_key("old")
    await store.add_api_key(key, by=ME)
    now = datetime.fromtimestamp(await store.now(), UTC)
    key = await _one(store, key.id)
    after = await store.rotate_api_key(key.id, digest_of("new"), grace_s=LONG_S, by=YOU)
    assert after == await _one(store, key.id), "the answer is what is kept"
    assert after is not None
    assert after.opens("new", now), "the new one opens"
    assert after.opens("old", now), "the one before, too"
    assert not after.opens("old", now + timedelta(seconds=2 * LONG_S)), "but not for ever"
    assert after.rotations == 1, f"got {after}"
    again = await store.rotate_api_key(key.id, digest_of("new"), grace_s=0, by=YOU)
    assert again == after, "the same again, as after a lost answer"
    newest = await store.rotate_api_key(key.id, digest_of("newest"), grace_s=0, by=YOU)
    assert newest is not None
    assert newest.opens("newest", now), "another one"
    moment = now + timedelta(seconds=LONG_S)
    assert not newest.opens("new", moment), "without a grace, the one before opens nothing"
    assert not newest.opens("old", moment), "nor does the one before that"
    assert await store.rotate_api_key("nobody", digest_of("x"), grace_s=0, by=ME) is None, "there is no such key"


async def check_a_revoked_key_opens_nothing_for_good(store: Store) -> None:
    key = replace(a_key(), expires_at=None)
    await store.add_api_key(key, by=ME)
    now = datetime.fromtimestamp(await store.now(), UTC)
    assert (await _one(store, key.id)).opens(FIRST, now), "it opens"
    after = await store.revoke_api_key(key.id, by=YOU)
    assert after == await _one(store, key.id), "the answer is what is kept"
    assert after is not None
    assert not after.opens(FIRST, now), "it opens nothing"
    assert await store.revoke_api_key(key.id, by=ME) == after, "to say it again changes nothing"
    assert await store.rotate_api_key(key.id, digest_of("new"), grace_s=0, by=ME) is None, "no secret brings it back"
    assert await store.revoke_api_key("nobody", by=ME) is None, "there is no such key"


async def check_every_change_of_a_key_is_on_record(store: Store) -> None:
    key = a_key()
    await store.add_api_key(key, by=ME)
    await store.rotate_api_key(key.id, digest_of("new"), grace_s=0, by=YOU)
    await store.revoke_api_key(key.id, by=ME)
    revoked, rotated, made = await _changes(store)
    assert [made.by, rotated.by, revoked.by] == [ME, YOU, ME], "who"
    assert {(each.what, each.name) for each in (made, rotated, revoked)} == {("key", key.id)}, "what"
    assert made.before is None, f"got {made}"
    assert made.after == rotated.before == key.words(), f"what it was: {made}, {rotated}"
    assert rotated.after is not None
    assert rotated.after["rotations"] == 1, f"got {rotated}"
    assert revoked.after is not None
    assert revoked.after["revoked"] is True, f"got {revoked}"
    assert key.digest.hex() not in str(await _changes(store)), "secrets are not on record, nor their hashes"


async def check_the_last_use_of_keys_is_known(store: Store) -> None:
    one, other = a_key(), a_key(minutes=1)
    await store.add_api_key(one, by=ME)
    await store.add_api_key(other, by=ME)
    before = await _changes(store)
    first, second = EPOCH + timedelta(hours=1), EPOCH + timedelta(hours=2)
    await store.note_key_uses({})
    await store.note_key_uses({one.id: KeyUse(second, None), other.id: KeyUse(None, first), "nobody": KeyUse(first)})
    assert [(key.used_at, key.failed_at) for key in await store.api_keys()] == [(None, first), (second, None)]
    await store.note_key_uses({one.id: KeyUse(first, second)})
    assert (await _one(store, one.id)).used_at == second, "an older word changes nothing"
    assert (await _one(store, one.id)).failed_at == second, "a newer one does"
    assert await _changes(store) == before, "to be used is no change"


async def check_an_act_is_on_record(store: Store) -> None:
    await store.record_act(by=ME, what="purge", name="dead", said={"queue": "mail"})
    await store.record_act(by=ME, what="purge", name="dead", said={"queue": "mail"})
    second, first = await _changes(store)
    assert second.number > first.number, "done twice, told twice"
    assert (first.by, first.what, first.name, first.after) == (ME, "purge", "dead", {"queue": "mail"}), f"got {first}"
