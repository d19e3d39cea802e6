"""`holdfast enqueue`, and how words become arguments."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.conftest import Shop
from tests.cli.processes import hold, on_terminal, working

from holdfast.cli.call_arguments import parse_call


@pytest.mark.parametrize(
    ("words", "args", "kwargs"),
    [
        (["2", "b=3"], [2], {"b": 3}),
        (["text", "5.5", "true", "null", '"5"'], ["text", 5.5, True, None, "5"], {}),
        (['data={"a": [1, 2]}', "[1]"], [[1]], {"data": {"a": [1, 2]}}),
        (["to=ada@example.org", "note=", "sum=a=b"], [], {"to": "ada@example.org", "note": "", "sum": "a=b"}),
        (["https://example.org/?a=b", "2=3", "=x"], ["https://example.org/?a=b", "2=3", "=x"], {}),
        (["NaN", "x=Infinity"], ["NaN"], {"x": "Infinity"}),
        (["007", "1_000", "Zoë"], ["007", "1_000", "Zoë"], {}),
    ],
)
def test_words_are_json_or_text(words: list[str], args: list[Any], kwargs: dict[str, Any]) -> None:
    assert parse_call(words) == (args, kwargs)


def test_a_call_is_enqueued_and_its_result_awaited(shop: Shop) -> None:
    with working(shop.path):
        assert hold("enqueue", "shop:hf", "shop.add", "--wait", "--", "-2", "3", cwd=shop.path).out == "1\n"
        # The setting stands in for -A; positional arguments come first then.
        whole = hold("enqueue", "shop.charge", "Ada", "cents=5", "-w", "--json", cwd=shop.path, HOLDFAST_APP="shop:hf")
        assert (whole.json["state"], whole.json["result"], whole.json["queue"]) == ("succeeded", "Ada paid 5", "bank")
        failed = hold("enqueue", "-A", "shop:hf", "shop.charge", "Bob", "--wait", cwd=shop.path)
        assert (failed.code, failed.out) == (1, "")
        assert "is dead after holdfast.PermanentError: 0 cents" in failed.err
        assert "Traceback" not in failed.err


def test_a_call_is_enqueued_by_name_alone_with_options(shop: Shop) -> None:
    words = ["enqueue", "--url", shop.url, "mail.send", "to=ada", "-q", "mail", "-p", "high", "--delay", "60"]
    words += ["--key", "welcome-17", "--tag", "a", "--tag", "b", "--tenant", "acme"]
    first, again = (hold(*words, cwd=shop.path).out.strip() for _ in range(2))
    assert first == again
    job = hold("jobs", "show", first, "--url", shop.url, "--json", cwd=shop.path).json
    assert (job["task"], job["kwargs"], job["queue"], job["priority"]) == ("mail.send", {"to": "ada"}, "mail", 7)
    assert (job["state"], job["tags"], job["tenant"]) == ("scheduled", ["a", "b"], "acme")
    other = hold(*[word.replace("ada", "bob") for word in words], cwd=shop.path)
    assert other.code == 2
    assert "idempotency key 'welcome-17'" in other.err


def test_a_name_that_nobody_checked_is_remarked_on(shop: Shop) -> None:
    ended = on_terminal("enqueue", "shop.ad", "1", cwd=shop.path, HOLDFAST_URL=shop.url)
    assert ended.code == 0
    assert "note: no app was named, so nobody has checked that 'shop.ad' exists; -A names one" in ended.out
