"""Who leads: one holder per role, by the store's clock, under terms that only grow."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from holdfast.core.job import WorkerId
from holdfast.stores.base import Lead, Store
from holdfast.testing.contracts.arrange import LONG_S

ROLE = "contract"


async def _lead(store: Store, holder: WorkerId, *, lease_s: float = LONG_S, role: str = ROLE) -> Lead | None:
    return await store.lead(role, holder, lease_s=lease_s)


async def _led(store: Store, holder: WorkerId, *, lease_s: float = LONG_S) -> int:
    """Lead, and insist on it; the term."""
    lead = await _lead(store, holder, lease_s=lease_s)
    assert lead is not None, f"nobody else holds {ROLE}, so {holder} must get it"
    return lead.term


async def check_one_holder_leads_and_others_do_not(store: Store) -> None:
    one, other = uuid4(), uuid4()
    await _led(store, one)
    assert await _lead(store, other) is None, "it is held"
    assert await _lead(store, one) is not None, "the holder is not touched by others' asking"


async def check_prolonging_keeps_the_term(store: Store) -> None:
    one = uuid4()
    terms = {await _led(store, one) for _ in range(3)}
    assert len(terms) == 1, f"nothing has changed hands: {terms}"


async def check_a_lead_that_ran_out_goes_to_whoever_asks_under_a_higher_term(store: Store) -> None:
    one, other = uuid4(), uuid4()
    first = await _led(store, one, lease_s=0)
    second = await _led(store, other)
    assert second > first, f"it has changed hands: {first}, {second}"
    assert await _lead(store, one) is None, "and the old holder has to wait like anybody else"


async def check_prolonging_makes_the_lead_last(store: Store) -> None:
    one, other = uuid4(), uuid4()
    await _led(store, one, lease_s=0)
    await _led(store, one)
    assert await _lead(store, other) is None, "the second lease counts, not the first"


async def check_a_lead_that_ran_out_and_that_nobody_took_may_be_prolonged(store: Store) -> None:
    one = uuid4()
    first = await _led(store, one, lease_s=0)
    assert await _led(store, one) == first, "nobody has led in between"


async def check_resigning_frees_the_role_at_once(store: Store) -> None:
    one, other = uuid4(), uuid4()
    first = await _led(store, one)
    await store.resign(ROLE, one)
    second = await _led(store, other)
    assert second > first, f"terms grow over a resignation, too: {first}, {second}"


async def check_only_the_holder_can_resign(store: Store) -> None:
    one, other = uuid4(), uuid4()
    await store.resign(ROLE, other)  # nobody leads: nothing happens
    await _led(store, one)
    await store.resign(ROLE, other)
    assert await _lead(store, other) is None, "it is still held"


async def check_a_former_leaders_resignation_changes_nothing(store: Store) -> None:
    one, other, third = uuid4(), uuid4(), uuid4()
    await _led(store, one, lease_s=0)
    await _led(store, other)
    await store.resign(ROLE, one)  # of one who was stopped, and has woken
    assert await _lead(store, third) is None, "it is held by another"


async def check_roles_are_independent(store: Store) -> None:
    one, other = uuid4(), uuid4()
    await _led(store, one)
    assert await _lead(store, other, role="another") is not None, "nobody holds that one"
    await store.resign("another", one)
    assert await _lead(store, one, role="another") is None, "holding one role says nothing of another"


async def check_of_many_who_ask_at_once_one_leads(store: Store) -> None:
    crowd = [uuid4() for _ in range(20)]
    terms: list[int] = []
    for _ in range(3):
        leads = await asyncio.gather(*(_lead(store, each) for each in crowd))
        [(leader, lead)] = [(each, lead) for each, lead in zip(crowd, leads, strict=True) if lead is not None]
        terms.append(lead.term)
        crowd.remove(leader)
        await store.resign(ROLE, leader)
    assert terms == sorted(set(terms)), f"each has a term of its own, higher than the one before: {terms}"


async def check_who_leads_is_told(store: Store) -> None:
    one, other = uuid4(), uuid4()
    assert await store.leading(ROLE) is None, "nobody has asked for it"
    first = await _led(store, one)
    assert await store.leading(ROLE) == Lead(first)
    assert await store.leading("another") is None, "that is another role"
    await store.resign(ROLE, one)
    assert await store.leading(ROLE) is None, "nobody holds it any more"
    second = await _led(store, other)
    assert await store.leading(ROLE) == Lead(second)


async def check_a_lead_that_ran_out_is_nobodys(store: Store) -> None:
    await _led(store, uuid4(), lease_s=0)
    assert await store.leading(ROLE) is None
