"""Patterns over names of tasks: what `*` stands for, and which of several wins."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import InvalidOptions, Route
from holdfast.core.routing import Rule, by_weight, check_pattern, parse_routes

ROUTE = Route(queue="q")
letters = st.text("ab.", max_size=8)
patterns = st.text("ab.*", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("pay", ["pay"], ["pays", "p", "x.pay"]),
        ("pay.*", ["pay.", "pay.card", "pay.card.refund"], ["pay", "xpay.card"]),
        ("*.pay", ["shop.pay", ".pay"], ["pay", "shop.pays"]),
        ("a*b*c", ["abc", "a.b.c", "aabbcc"], ["acb", "abcd", "ac"]),
        ("*", ["", "x", "a.b"], []),
        ("aa*aa", ["aaaa", "aabaa"], ["aaa", "aa"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_a_star_stands_for_any_characters_and_the_rest_for_itself(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    rule = Rule(pattern, ROUTE, "")
    assert [task for task in (*matching, *others) if rule.matches(task)] == matching


@given(patterns, letters)
def test_it_matches_what_the_same_regular_expression_would(pattern: str, task: str) -> None:
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert Rule(pattern, ROUTE, "").matches(task) == bool(re.fullmatch(expression, task))


def test_the_more_specific_pattern_comes_first() -> None:
    given = ["*", "shop.*", "*.pay", "shop.pay", "shop.p*", "*shop.*"]
    ordered = [rule.pattern for rule in by_weight(Rule(pattern, ROUTE, "") for pattern in given)]
    assert ordered == ["shop.pay", "shop.p*", "shop.*", "*shop.*", "*.pay", "*"]


def test_of_the_same_pattern_the_first_given_wins() -> None:
    assert [rule.origin for rule in by_weight([Rule("a*", ROUTE, "1"), Rule("a*", ROUTE, "2")])] == ["1", "2"]


def test_a_table_names_a_queue_or_says_more() -> None:
    rules = parse_routes({"a": "x", "b": {"priority": "high"}}, "here")
    assert rules == (Rule("a", Route(queue="x"), "here"), Rule("b", Route(priority=7), "here"))


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Route(), "a Route says where to: give it queue=, priority= or both"),
    (
        lambda: Route(queue="a b"),
        "queue name 'a b' has ' ' at position 2; allowed are letters A-Z, digits, '_', '.' and '-'",
    ),
    (
        lambda: Route(priority=10),
        (
            "priority=10: needs a whole number from 0 to 9 (most urgent) or one of critical (9), high (7), normal (5), "
            "low (2), bulk (0)"
        ),
    ),
    (lambda: check_pattern(None), "route None: needs a pattern for names of tasks, as in 'payments.*'"),
    (
        lambda: check_pattern("a" * 201),
        f"route {'a' * 40!r}…: has 201 characters, at most 200 are allowed",
    ),
    (
        lambda: check_pattern("shop.[ab]"),
        (
            "route 'shop.[ab]': '[' is in no task's name; besides what names are made of, only * has a meaning: any "
            "characters"
        ),
    ),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED, ids=[sentence[:50] for _, sentence in REFUSED])
def test_senseless_routes_are_refused_in_a_sentence(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InvalidOptions) as caught:
        make()
    assert str(caught.value) == sentence
