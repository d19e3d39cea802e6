"""The three histories side by side, indexed by job, and the rules of this judgement. Judges nothing itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.history.moves import Move, moves_of
from tests.history.records import Answer, ClientCall, Op, RunEvent, RunLine, StoreRecord

from holdfast.core.state import ENDINGS

Run = tuple[str, int]
"""A job and a token."""


@dataclass(frozen=True, slots=True)
class Rules:
    quiescent: bool
    max_attempts: int
    crash_budget: int


@dataclass(frozen=True, slots=True)
class Joined:
    calls: Mapping[str, list[ClientCall]]
    """By the id that was asked with."""
    starts: Mapping[Run, list[RunLine]]
    ends: Mapping[Run, list[RunLine]]
    run_tokens: Mapping[str, set[int]]
    with_effect: frozenset[str]
    """Jobs that had at least one effect."""
    store: StoreRecord
    moves: Mapping[str, list[Move]]
    """Empty without an audit."""
    rules: Rules

    @classmethod
    def of(cls, calls: Iterable[ClientCall], lines: Iterable[RunLine], store: StoreRecord, rules: Rules) -> Joined:
        by_id: dict[str, list[ClientCall]] = defaultdict(list)
        for call in calls:
            by_id[call.job_id].append(call)
        run_tokens: dict[str, set[int]] = defaultdict(set)
        by_event: dict[RunEvent, dict[Run, list[RunLine]]] = {event: {} for event in RunEvent}
        for line in lines:
            by_event[line.event].setdefault(line.run, []).append(line)
            run_tokens[line.job_id].add(line.token)
        return cls(
            calls=dict(by_id),
            starts=by_event[RunEvent.START],
            ends=by_event[RunEvent.END],
            run_tokens=run_tokens,
            with_effect=frozenset(job_id for job_id, _ in by_event[RunEvent.EFFECT]),
            store=store,
            moves=moves_of(store.audit or ()),
            rules=rules,
        )

    def answers(self, job_id: str, op: Op) -> list[ClientCall]:
        """The calls with this id that may have had their effect: answered ok, unknown, or cut off."""
        calls = [call for call in self.calls.get(job_id, ()) if call.op is op]
        asked = [call for call in calls if call.answer is Answer.ASKED]
        answered = [call for call in calls if call.answer is not Answer.ASKED]
        cut_off = asked[len(answered) :]
        return [call for call in answered if call.answer is not Answer.FAIL] + cut_off

    def claims(self, job_id: str) -> list[int | None]:
        """The tokens of this job's claims in the order in which they happened, as the audit has them."""
        return [move.after.token for move in self.moves.get(job_id, ()) if move.after and move.claims]

    def tokens(self, job_id: str) -> set[int]:
        """Every token known of this job, from whatever source."""
        tokens: set[int | None] = {*self.run_tokens.get(job_id, ()), *self.claims(job_id)}
        if record := self.store.jobs.get(job_id):
            tokens.update(row.token for row in record.attempts)
            tokens.update(place.token for place in record.places)
        return {token for token in tokens if token is not None}

    def pruned(self, job_id: str) -> bool:
        """It had ended, and was removed afterwards."""
        moves = self.moves.get(job_id, ())
        if job_id in self.store.jobs or not moves:
            return False
        return moves[-1].target is None and moves[-1].source in ENDINGS
