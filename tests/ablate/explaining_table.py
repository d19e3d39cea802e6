"""Safeguards of the answer to "why is it waiting": what it must not pretend; each with the tests that must go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

WAITING = "tests/integration/test_explain_waiting.py"
CAPACITY = "tests/unit/client/test_capacity.py"

OF_EXPLAINING = (
    Ablation(
        "explain",
        "who waits for a free slot is told so",
        "src/holdfast/client/capacity.py",
        "        if not self.free:",
        "        if False:",
        (CAPACITY, WAITING),
    ),
    Ablation(
        "explain",
        "a slot that has only just become free is no sign of a bound",
        "src/holdfast/client/capacity.py",
        "self.free > self._lately.stirred",
        "self.free > 0",
        (CAPACITY,),
    ),
    Ablation(
        "explain",
        "each waiter at a rate has an estimate of its own",
        "src/holdfast/client/hindrances.py",
        "next_s + before * gate.pace.gap_s",
        "next_s + waiting * gate.pace.gap_s",
        (WAITING,),
    ),
    Ablation(
        "explain",
        "the time of a job that nobody may or can start is no estimate",
        "src/holdfast/client/hindrances.py",
        "each.kind in _BY_HAND or (",
        "(",
        (WAITING,),
    ),
    Ablation(
        "explain",
        "a limit's pace is that of its own jobs",
        "src/holdfast/stores/sqlite/sql/circumstances.sql",
        "instr(gates, :text) > 0",
        "true",
        ("tests/contract/test_sqlite.py", "-k", "ended_lately"),
    ),
)
