"""Keys of the HTTP API from the shell: shown once, listed without their secrets, rotated, revoked, on record."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.processes import hold

from holdfast.core.api_key import digest_of, parse_key_text


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}"


def test_a_key_is_made_listed_rotated_and_revoked(url: str, tmp_path: Path) -> None:
    made = hold("keys", "create", "the shop", "-s", "submit", "-s", "read", "--url", url, cwd=tmp_path)
    text = parse_key_text(made.out.strip())
    assert text is not None
    assert made.err == "note: keep it now: it cannot be shown again\n"
    listed = hold("keys", "list", "--url", url, cwd=tmp_path)
    assert listed.out == f"{text.id}\tthe shop\topen\tread,submit\t-\t-\t-\t-\t-\n"
    rotated = hold("keys", "rotate", text.id, "--grace", "60", "--url", url, cwd=tmp_path)
    again = parse_key_text(rotated.out.strip())
    assert again is not None
    assert again.id == text.id
    assert again.secret != text.secret
    revoked = hold("keys", "revoke", text.id, "--url", url, cwd=tmp_path)
    assert revoked.out == f"key {text.id} (the shop) is revoked\n"
    assert hold("keys", "list", "--url", url, cwd=tmp_path).out.split("\t")[2] == "revoked"
    audit = hold("audit", "--json", "--url", url, cwd=tmp_path)
    assert [(each["what"], each["name"]) for each in audit.json_lines] == [("key", text.id)] * 3
    seen = audit.out + listed.out + hold("keys", "list", "--json", "--url", url, cwd=tmp_path).out
    for secret in (text.secret, again.secret):
        assert secret not in seen
        assert digest_of(secret).hex() not in seen


def test_a_key_may_be_bound_and_may_expire(url: str, tmp_path: Path) -> None:
    bound = ["--queue", "mail", "--queue", "print", "--tenant", "acme", "--expires", "90"]
    made = hold("keys", "create", "acme", "-s", "read-payload", *bound, "--json", "--url", url, cwd=tmp_path)
    assert made.json["key"].startswith(f"hf_{made.json['id']}_")
    assert (made.json["queues"], made.json["tenant"]) == (["mail", "print"], "acme")
    assert made.json["expires_at"] > made.json["created_at"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["create", "x", "-s", "everything"], "there is no scope 'everything'; there are submit, read, read-payload"),
        (["create", " ", "-s", "read"], "name=' ': needs a text of 1 to 100 printable characters"),
        (["create", "x", "-s", "read", "-q", "no/slash"], "queue name 'no/slash' has '/'"),
        (["create", "x"], "missing option '--scope'"),
        (["rotate", "who"], "this is not the id of a key"),
        (["revoke", "aaaaaaaaaaaa"], "there is no key aaaaaaaaaaaa"),
    ],
)
def test_a_wrong_word_is_explained(words: list[str], sentence: str, url: str, tmp_path: Path) -> None:
    assert hold("migrate", "--url", url, cwd=tmp_path).code == 0
    said = hold("keys", *words, "--url", url, cwd=tmp_path)
    assert said.code == 2
    assert sentence in said.err
    assert hold("keys", "list", "--url", url, cwd=tmp_path).out == ""
