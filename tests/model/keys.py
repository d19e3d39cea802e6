"""Keys of the API as a dictionary, and the acts that are on record; and one step on both, the store and the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.core.api_key import ApiKey, Scope, digest_of
from holdfast.stores.api_keys import KeyUse
from holdfast.stores.base import Store
from model.choices import Pick

IDS: Final = ("a" * 12, "b" * 12, "c" * 12)
SECRETS: Final = ("first", "second", "third")
GRACES: Final = (0.0, 30.0)
ME: Final = "the model"


@dataclass
class Key:
    """One key."""

    secret: str
    before: str | None = None
    before_until: float = 0.0
    rotations: int = 0
    revoked: bool = False
    used: float | None = None

    def opens(self, secret: str, now: float) -> bool:
        in_grace = secret == self.before and now < self.before_until
        return not self.revoked and (secret == self.secret or in_grace)


class Keys:
    """By id; and how many changes and acts are on record."""

    def __init__(self) -> None:
        self.keys: dict[str, Key] = {}
        self.on_record = 0

    def add(self, key_id: str, secret: str) -> bool:
        """Also True where it was there with this secret: an answer may have been lost."""
        self.on_record += key_id not in self.keys
        return self.keys.setdefault(key_id, Key(secret)).secret == secret

    def rotate(self, key_id: str, secret: str, *, grace_s: float, now: float) -> bool:
        key = self.keys.get(key_id)
        if key is None or key.revoked or key.secret == secret:
            return key is not None and key.secret == secret
        key.before, key.before_until, key.secret = key.secret, now + grace_s, secret
        key.rotations += 1
        self.on_record += 1
        return True


def step_of_keys(keys: Keys, store: Store, do: Callable[[Awaitable[Any]], Any], pick: Pick, now: float) -> None:
    """One verb of keys; the answers are the same, and then all keys."""
    key_id, secret, moment = pick(IDS), pick(SECRETS), datetime.fromtimestamp(now, UTC)
    match pick(("add", "rotate", "rotate", "revoke", "use", "act")):
        case "add":
            made = ApiKey(key_id, "me", frozenset({Scope.READ}), moment, digest=digest_of(secret))
            assert do(store.add_api_key(made, by=ME)) == keys.add(key_id, secret)
        case "rotate":
            grace_s = pick(GRACES)
            expected = keys.rotate(key_id, secret, grace_s=grace_s, now=now)
            answer = do(store.rotate_api_key(key_id, digest_of(secret), grace_s=grace_s, by=ME))
            assert (answer is not None) == expected
        case "revoke":
            answer, known = do(store.revoke_api_key(key_id, by=ME)), keys.keys.get(key_id)
            assert (answer is not None) == (known is not None)
            if known is not None:
                keys.on_record += not known.revoked
                known.revoked = True
        case "use":
            do(store.note_key_uses({key_id: KeyUse(moment)}))
            if key_id in keys.keys:
                keys.keys[key_id].used = now
        case "act":
            do(store.record_act(by=ME, what="purge", name="dead letters", said={}))
            keys.on_record += 1
    found = {key.id: key for key in do(store.api_keys())}
    later = moment + timedelta(seconds=1)
    assert found.keys() == keys.keys.keys()
    for each, key in keys.keys.items():
        assert (found[each].rotations, found[each].revoked_at is not None) == (key.rotations, key.revoked)
        opening = [found[each].opens(text, later) for text in SECRETS]
        assert opening == [key.opens(text, now + 1) for text in SECRETS], f"{each}: {key}"
        assert (found[each].used_at is not None) == (key.used is not None)
    recorded = [each for each in do(store.setting_changes(limit=1000)) if each.what in ("key", "purge")]
    assert len(recorded) == min(keys.on_record, 1000)
