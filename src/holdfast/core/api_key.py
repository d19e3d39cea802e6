"""API keys as values: what a key may do, how its text looks, and whether a text is that key. Nobody is asked here.

A key's text is `hf_<id>_<secret>`. The id is no secret: it is in lists, in logs and in the record of changes. Of the
secret, which is as random as the hash is long, only the SHA-256 is kept: there is nothing to guess, so nothing has to
be slow.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from holdfast.core.errors import InvalidOptions
from holdfast.core.names import check_name, is_printable
from holdfast.core.shown import shown


class Scope(StrEnum):
    """What a key may do. None contains another: a key may do what its scopes say, and nothing else."""

    SUBMIT = "submit"
    """Enqueue jobs."""
    READ = "read"
    """See jobs and queues, but nothing that a caller or a task wrote into a job."""
    READ_PAYLOAD = "read-payload"
    """Beside `read`: see arguments, results, metadata, and the words of errors."""
    OPERATE = "operate"
    """Cancel, retry and replay; pause, limit and weigh."""
    ADMIN = "admin"
    """See the settings, and the record of who changed what."""


_ALPHABET: Final = string.ascii_letters + string.digits
_ID_LENGTH: Final = 12
_SECRET_LENGTH: Final = 43  # of 62 characters: 256 bits
_TEXT: Final = re.compile(rf"hf_([A-Za-z0-9]{{{_ID_LENGTH}}})_([A-Za-z0-9]{{{_SECRET_LENGTH}}})")
_ID: Final = re.compile(rf"[A-Za-z0-9]{{{_ID_LENGTH}}}")
_LONGEST_NAME: Final = 100
_MOST_QUEUES: Final = 100


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key, as it is kept: all but its secret."""

    id: str
    """The part of the text that is no secret."""
    name: str
    """What whoever made it called it."""
    scopes: frozenset[Scope]
    """What it may do."""
    created_at: datetime
    """When it was made."""
    queues: frozenset[str] | None = None
    """The only queues whose jobs it may touch; None: any."""
    tenant: str | None = None
    """The only tenant whose jobs it may touch; None: any."""
    expires_at: datetime | None = None
    """From then on it opens nothing."""
    revoked_at: datetime | None = None
    """Since then it opens nothing."""
    used_at: datetime | None = None
    """When it last opened something, to about a minute."""
    failed_at: datetime | None = None
    """When somebody last came with its id and another secret, to about a minute."""
    rotations: int = 0
    """How often it was given another secret."""
    digest: bytes = field(default=b"", repr=False)
    """Of its secret."""
    old_digest: bytes | None = field(default=None, repr=False)
    """Of the secret before."""
    old_until: datetime | None = None
    """For so long the secret before opens as well."""

    def opens(self, secret: str, now: datetime) -> bool:
        """Whether this is its secret, and it may be used now. Takes as long for a wrong secret as for the right one."""
        given = digest_of(secret)
        is_new = hmac.compare_digest(given, self.digest)
        is_old = hmac.compare_digest(given, self.old_digest or _NOBODYS)
        in_grace = is_old and self.old_until is not None and now < self.old_until
        return (is_new or in_grace) and self.is_valid(now)

    def is_valid(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def words(self) -> dict[str, Any]:
        """What the record of changes says of it."""
        return {
            "name": self.name,
            "scopes": sorted(self.scopes),
            "queues": None if self.queues is None else sorted(self.queues),
            "tenant": self.tenant,
            "expires_at": None if self.expires_at is None else self.expires_at.isoformat(),
            "rotations": self.rotations,
            "revoked": self.revoked_at is not None,
        }


class KeyText(NamedTuple):
    """A key as its owner has it."""

    id: str
    secret: str

    def __str__(self) -> str:
        return f"hf_{self.id}_{self.secret}"

    def __repr__(self) -> str:
        return f"<KeyText {self.id}>"


def new_key_text(key_id: str | None = None) -> KeyText:
    """A key that nobody can guess; with an id, another secret for that key."""
    return KeyText(key_id or _random(_ID_LENGTH), _random(_SECRET_LENGTH))


def parse_key_text(text: str) -> KeyText | None:
    """None: it is no key, whatever it is."""
    found = _TEXT.fullmatch(text)
    return None if found is None else KeyText(found[1], found[2])


def digest_of(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).digest()


_NOBODYS: Final = bytes(32)  # nothing has this digest that anybody could find


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


# ---------------------------------------------------------------- as people give them


def check_key_id(key_id: object) -> str:
    """An id, also where somebody gives the whole text of a key, or its beginning."""
    if isinstance(key_id, str):
        given = key_id.removeprefix("hf_").partition("_")[0]
        if _ID.fullmatch(given):
            return given
    raise InvalidOptions("this is not the id of a key: one has 12 letters and digits, as `holdfast keys list` shows")


def check_key_name(name: object) -> str:
    """What a key is called, in lists, in logs and in the record: printable, so that it cannot pass for another line."""
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not is_printable(name):
        raise InvalidOptions(
            f"name={shown(name)}: needs a text of 1 to {_LONGEST_NAME} printable characters that says whose it is"
        )
    return name


def check_scopes(scopes: object) -> frozenset[Scope]:
    """At least one."""
    if isinstance(scopes, str) or not isinstance(scopes, Iterable):
        raise InvalidOptions(f"scopes={shown(scopes)}: needs a list of them")
    found = list(scopes)
    known = {str(scope): scope for scope in Scope}
    for each in found:
        if not isinstance(each, str) or each not in known:
            raise InvalidOptions(f"there is no scope {shown(each)}; there are {', '.join(Scope)}")
    if not found:
        raise InvalidOptions(f"scopes: a key without any may do nothing; give some of {', '.join(Scope)}")
    return frozenset(known[each] for each in found)


def check_queues(queues: object) -> frozenset[str] | None:
    """None: any. None of them is refused: such a key would open nothing."""
    if queues is None:
        return None
    if isinstance(queues, str) or not isinstance(queues, Iterable):
        raise InvalidOptions(f"queues={shown(queues)}: needs a list of names, or None for any queue")
    found = frozenset(check_name("queue", each) for each in queues)
    if not 1 <= len(found) <= _MOST_QUEUES:
        raise InvalidOptions(f"queues: {len(found)} were given; name 1 to {_MOST_QUEUES}, or None for any queue")
    return found
