"""Ways to break a history in which users had transactions of their own (P6)."""

from __future__ import annotations

from dataclasses import replace

from tests.history.breaking import Mutations, Pick
from tests.history.story import Histories

MUTATIONS = Mutations()


@MUTATIONS.breaks("P6")
def effect_without_success(h: Histories, pick: Pick) -> Histories | None:
    job = pick([job for job, record in h.store.jobs.items() if job not in h.store.effects and record.places])
    if job is None:
        return None
    return replace(h, store=replace(h.store, effects={**h.store.effects, job: (99,)}))


@MUTATIONS.breaks("P6")
def success_without_effect(h: Histories, pick: Pick) -> Histories | None:
    job = pick(sorted(h.store.effects))
    if job is None:
        return None
    kept = {other: tokens for other, tokens in h.store.effects.items() if other != job}
    return replace(h, store=replace(h.store, effects=kept))


@MUTATIONS.breaks("P6")
def effect_twice(h: Histories, pick: Pick) -> Histories | None:
    job = pick(sorted(h.store.effects))
    if job is None:
        return None
    return replace(h, store=replace(h.store, effects={**h.store.effects, job: h.store.effects[job] * 2}))


@MUTATIONS.breaks("P6")
def effect_of_another_run(h: Histories, pick: Pick) -> Histories | None:
    job = pick(sorted(h.store.effects))
    if job is None:
        return None
    return replace(h, store=replace(h.store, effects={**h.store.effects, job: (h.store.effects[job][0] + 50,)}))


@MUTATIONS.breaks("P6")
def job_without_its_order(h: Histories, pick: Pick) -> Histories | None:
    job = pick(sorted(h.store.orders))
    return None if job is None else replace(h, store=replace(h.store, orders=h.store.orders - {job}))


@MUTATIONS.breaks("P6")
def order_without_its_job(h: Histories, pick: Pick) -> Histories | None:
    call = pick([call for call in h.calls if call.job_id == "unknown-absent"])
    return None if call is None else replace(h, store=replace(h.store, orders=h.store.orders | {call.job_id}))
