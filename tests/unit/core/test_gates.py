"""Who may pass: the rule that every store asks, by examples and under any sequence."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.breaker import BreakerGate, BreakerState
from holdfast.core.gates import (
    Barrier,
    Candidate,
    Passed,
    Place,
    RateGate,
    Rules,
    Skipped,
    SlotGate,
    Usage,
    Waits,
    WhenFull,
    admit,
    gates_of,
    places_of,
)
from holdfast.core.rate import Pace

NOW = 1.7e9
ONE = SlotGate("one", 1)
POST = RateGate("post", Pace(1, 60.0, 2))
BANK = BreakerGate("bank", 3, 60.0, 30.0)
AT_ONE, AT_POST, AT_BANK = Place(Barrier.LIMIT, "one"), Place(Barrier.RATE, "post"), Place(Barrier.BREAKER, "bank")


def job(*gates: SlotGate | RateGate | BreakerGate, tenant: str = "", has: frozenset[Place] = frozenset()) -> Candidate:
    return Candidate("shop.send", "mail", tenant, gates, has)


def test_whoever_has_no_gates_passes_and_takes_nothing() -> None:
    assert admit([job(), job()], Usage(NOW)) == [Passed(), Passed()]


def test_a_limit_has_so_many_slots() -> None:
    usage = Usage(NOW)
    assert admit([job(ONE), job(ONE)], usage) == [Passed((AT_ONE,)), Waits(AT_ONE)]
    assert usage.held == {AT_ONE: 1}
    assert admit([job(ONE, has=frozenset([AT_ONE]))], usage) == [Passed()], "it has its slot already"


def test_a_full_limit_may_skip_or_replace() -> None:
    usage = Usage(NOW, {AT_ONE: 1})
    skip, instead = ONE._replace(when_full=WhenFull.SKIP), ONE._replace(when_full=WhenFull.REPLACE)
    assert admit([job(skip), job(instead)], usage) == [Skipped(AT_ONE), Waits(AT_ONE, replaces=True)]


def test_whoever_waits_has_taken_nothing() -> None:
    usage = Usage(NOW, {AT_ONE: 1})
    assert admit([job(SlotGate("two", 2), POST, ONE)], usage) == [Waits(AT_ONE)]
    assert usage == Usage(NOW, {AT_ONE: 1})


def test_tokens_are_spent_by_those_who_pass() -> None:
    usage = Usage(NOW)
    first, second, third = admit([job(POST)] * 3, usage)
    assert first == second == Passed((), ("post",))
    assert third == Waits(AT_POST, NOW + 60)
    assert usage.full_at == {"post": NOW + 120}


def test_a_breaker_that_is_open_holds_back_until_it_is_half_open() -> None:
    opened = Usage(NOW, breakers={"bank": BreakerState((), NOW + 5)})
    assert admit([job(BANK)], opened) == [Waits(AT_BANK, NOW + 5)]
    held = Usage(NOW, breakers={"bank": BreakerState((), NOW + 5, held=True)})
    assert admit([job(BANK)], held) == [Waits(AT_BANK)], "nobody knows until when"


def test_half_open_lets_one_probe_through() -> None:
    usage = Usage(NOW, breakers={"bank": BreakerState((), NOW)})
    assert admit([job(BANK), job(BANK)], usage) == [Passed((AT_BANK,)), Waits(AT_BANK)]


def test_a_closed_breaker_is_no_gate() -> None:
    assert admit([job(BANK)] * 2, Usage(NOW, {AT_BANK: 1})) == [Passed(), Passed()]


def test_the_same_gate_twice_is_one_run_through_it() -> None:
    usage = Usage(NOW, breakers={"bank": BreakerState((), NOW)})
    assert admit([job(ONE, POST, BANK, ONE, POST, BANK)], usage) == [Passed((AT_ONE, AT_BANK), ("post",))]
    assert usage.full_at == {"post": NOW + 60}


def test_pauses_come_first() -> None:
    rules = Rules(frozenset({"shop.send"}), frozenset({"acme"}))
    usage = Usage(NOW, rules=rules)
    at = Place(Barrier.PAUSED, "task:shop.send")
    assert admit([job(ONE, tenant="acme")], usage) == [Waits(at)]
    usage.rules = replace(rules, paused_tasks=frozenset())
    assert admit([job(ONE, tenant="acme"), job(ONE)], usage) == [
        Waits(Place(Barrier.PAUSED, "tenant:acme")),
        Passed((AT_ONE,)),
    ]
    usage.rules = Rules(paused_tenants=frozenset({""}))
    assert admit([job()], usage) == [Passed()], "nobody is no tenant"


def test_operators_set_limits_by_name_for_all_of_its_keys() -> None:
    rules = Rules(sizes={"api": 0, "one": 3}, paces={"post": Pace(5, 1.0, 5)})
    named = SlotGate("api:42", 9, "api")
    assert gates_of(job(named, ONE, POST, BANK), rules) == (
        named._replace(size=0),
        ONE._replace(size=3),
        POST._replace(pace=Pace(5, 1.0, 5)),
        BANK,
    )


def test_operators_put_limits_on_whole_queues_and_tasks() -> None:
    pace = Pace(5, 1.0, 5)
    rules = Rules(sizes={"queue:mail": 2, "queue:other": 1}, paces={"task:shop.send": pace})
    expected = (SlotGate("queue:mail", 2, "queue:mail"), RateGate("task:shop.send", pace, "task:shop.send"))
    assert gates_of(job(), rules) == expected
    own = SlotGate("queue:mail", 5, "queue:mail")
    assert gates_of(job(own), rules) == (own._replace(size=2), expected[1]), "what the task has is not added again"
    assert places_of([job()], rules) == {Place(Barrier.LIMIT, "queue:mail"), Place(Barrier.RATE, "task:shop.send")}


def test_what_operators_say_of_a_whole_task_is_beside_its_limits_with_keys() -> None:
    pace = Pace(5, 1.0, 5)
    rules = Rules(sizes={"task:shop.send": 2}, paces={"task:shop.send": pace})
    keyed = (
        SlotGate("task:shop.send/42", 1, "task:shop.send"),
        RateGate("task:shop.send/42", POST.pace, "task:shop.send"),
    )
    whole = SlotGate("task:shop.send", 2, "task:shop.send"), RateGate("task:shop.send", pace, "task:shop.send")
    assert gates_of(job(*keyed), rules) == (*keyed, *whole)
    elsewhere = SlotGate("task:shop.take/42", 1, "task:shop.take")
    assert gates_of(job(elsewhere), rules) == (elsewhere, *whole)


def test_rules_say_whom_they_concern() -> None:
    assert not Rules(sizes={"api": 1}).concern_everybody, "only those that carry it"
    for rules in (
        Rules(paused_tasks=frozenset("t")),
        Rules(paused_tenants=frozenset("t")),
        Rules(sizes={"task:t": 1}),
        Rules(paces={"task:t": Pace(1, 1.0, 1)}),
    ):
        assert rules.concern_everybody
    queue = Rules(sizes={"queue:mail": 1})
    assert (queue.concern_everybody, queue.concern_queue("mail"), queue.concern_queue("other")) == (False, True, False)
    assert Rules(paces={"queue:mail": Pace(1, 1.0, 1)}).concern_queue("mail")


def test_a_quicker_pace_does_not_pay_for_a_slower_one() -> None:
    usage = Usage(NOW, full_at={"post": NOW + 3600})
    quick = POST._replace(pace=Pace(10, 1.0, 1))
    [waits] = admit([job(quick)], usage)
    assert isinstance(waits, Waits)
    assert waits.until is not None
    assert abs(waits.until - NOW - 0.1) < 1e-6
    assert abs(usage.full_at["post"] - NOW - 0.1) < 1e-6, "which the store is to keep"
