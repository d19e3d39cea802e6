"""API keys as values: their text, their secrets, and when they open."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.api_key import (
    ApiKey,
    Scope,
    check_key_id,
    check_queues,
    check_scopes,
    digest_of,
    new_key_text,
    parse_key_text,
)
from holdfast.core.errors import InvalidOptions

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SOON = timedelta(seconds=1)
KEY = ApiKey("k" * 12, "me", frozenset({Scope.READ}), NOW, digest=digest_of("right"))


def test_a_key_is_read_as_it_was_written() -> None:
    made = new_key_text()
    assert parse_key_text(str(made)) == made
    assert new_key_text(made.id).id == made.id
    assert new_key_text(made.id).secret != made.secret
    assert made.secret not in repr(made), "what is in a traceback may be in a log"


@given(st.text())
def test_what_is_no_key_is_none(text: str) -> None:
    assert parse_key_text(text) is None
    assert parse_key_text(f"hf_{text}") is None
    assert parse_key_text(f"{new_key_text()}{text}") is None or text == ""


def test_only_the_right_secret_opens() -> None:
    assert KEY.opens("right", NOW)
    assert not KEY.opens("wrong", NOW)
    assert not KEY.opens("", NOW)
    assert not replace(KEY, digest=b"").opens("", NOW)


def test_a_key_opens_until_it_expires_or_is_revoked() -> None:
    expiring = replace(KEY, expires_at=NOW)
    assert expiring.opens("right", NOW - SOON)
    assert not expiring.opens("right", NOW)
    assert not replace(KEY, revoked_at=NOW).opens("right", NOW)


def test_the_secret_before_opens_for_its_grace_only() -> None:
    rotated = replace(KEY, digest=digest_of("new"), old_digest=digest_of("right"), old_until=NOW)
    assert rotated.opens("new", NOW)
    assert rotated.opens("right", NOW - SOON)
    assert not rotated.opens("right", NOW)
    assert not replace(rotated, expires_at=NOW - SOON).opens("right", NOW - SOON)


def test_an_id_may_be_given_with_what_is_around_it() -> None:
    made = new_key_text()
    assert check_key_id(made.id) == check_key_id(f"hf_{made.id}") == check_key_id(str(made)) == made.id
    for wrong in ("", "short", f"{made.id}x", None, 12):
        with pytest.raises(InvalidOptions, match="not the id of a key"):
            check_key_id(wrong)


def test_a_key_without_any_scope_or_queue_is_refused() -> None:
    assert check_scopes(["read", Scope.ADMIN]) == {Scope.READ, Scope.ADMIN}
    assert check_queues(None) is None
    for scopes in ([], "read", ["all"], None, [None]):
        with pytest.raises(InvalidOptions):
            check_scopes(scopes)
    for queues in ([], "mail", ["a/b"], [f"q{n}" for n in range(101)]):
        with pytest.raises(InvalidOptions):
            check_queues(queues)


@pytest.mark.parametrize("secret", ["right", "before", "wrong", ""])
def test_a_secret_takes_as_long_as_any_other_to_compare(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("holdfast.core.api_key.hmac.compare_digest", compare)
    rotated = replace(KEY, old_digest=digest_of("before"), old_until=NOW + SOON)
    for key in (KEY, rotated, replace(KEY, revoked_at=NOW)):
        compared.clear()
        key.opens(secret, NOW)
        assert [one for one, _ in compared] == [digest_of(secret)] * 2, "with both secrets, whatever the first one says"
        assert {len(other) for _, other in compared} == {32}
