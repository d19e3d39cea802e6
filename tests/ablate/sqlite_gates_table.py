"""The safeguards of gates, unique keys and operators' words in the SQLite store."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

STORE = "src/holdfast/stores/sqlite/"


def _contract(topic: str) -> tuple[str, ...]:
    return ("tests/contract/test_sqlite.py", "-k", f"memory and ({topic})")


AT_SQLITES_GATES = (
    Ablation(
        "gates",
        "SQLite: a token is spent in the claim's transaction",
        STORE + "gates.py",
        "    if spent:\n",
        "    if False:\n",
        _contract("rates"),
    ),
    Ablation(
        "gates",
        "SQLite: whoever is held back at its claim keeps no slot",
        STORE + "admission.py",
        "            if job.candidate.has:\n",
        "            if False:\n",
        _contract("gates or rates or limits or rules"),
    ),
    Ablation(
        "gates",
        "SQLite: slots that a verb has freed go on in its transaction",
        STORE + "writer.py",
        "            if tx.freed:\n",
        "            if False:\n",
        _contract("limits"),
    ),
    Ablation(
        "gates",
        "SQLite: who waits for a token or a breaker is looked at when it is time",
        STORE + "admission.py",
        "            if until is not None:\n",
        "            if False:\n",
        _contract("rates or breakers"),
    ),
    Ablation(
        "gates",
        "SQLite: a breaker that turns makes its gate due",
        STORE + "settle.py",
        "        make_due(tx, Place(Barrier.BREAKER, name), tx.now",
        "        tx.freed or (tx.now",
        _contract("breakers"),
    ),
    Ablation(
        "gates",
        "SQLite: a word of an operator makes all gates due",
        STORE + "rules.py",
        "    make_all_due(tx)\n",
        "",
        _contract("rules or rates"),
    ),
    Ablation(
        "gates",
        "SQLite: a slot of a limit is held by a job, and freed with its run",
        STORE + "end.py",
        "    if slots:\n",
        "    if False:\n",
        _contract("limits"),
    ),
    Ablation(
        "order",
        "SQLite: whoever comes last in its lane waits behind the others",
        STORE + "serve.py",
        "if comes_last and not behind and place.barrier is not Barrier.PAUSED:",
        "if False:",
        _contract("last_lanes"),
    ),
    Ablation(
        "order",
        "SQLite: no slot is kept for a job that comes last",
        STORE + "serve.py",
        "comes_last=comes_last)",
        "comes_last=False)",
        ("tests/attacks/test_lanes_that_come_last.py", "-k", "sqlite"),
    ),
    Ablation(
        "order",
        "SQLite: slots kept for jobs of a lane go on when it is put last",
        STORE + "queues.py",
        "        free_left_to_last(tx, queue, last)\n",
        "        pass\n",
        _contract("last_lanes"),
    ),
    Ablation(
        "order",
        "a job that comes last keeps its slot of a limit where it would replace whoever came meanwhile",
        "src/holdfast/core/gates.py",
        "if place.key in replacing",
        "if False",
        _contract("last_lanes"),
    ),
    Ablation(
        "order",
        "SQLite: the sweep finds who stands behind others for no reason",
        STORE + "serve.py",
        "    _step_forward(tx, limit=limit)\n",
        "",
        ("tests/attacks/test_sqlite_astray.py",),
    ),
    Ablation(
        "P8",
        "SQLite: parked jobs are part of a queue's depth",
        STORE + "transaction.py",
        "row = (queue, change, parked.get(queue, 0))",
        "row = (queue, change, 0)",
        _contract("gates or watermarks or moving or limits"),
    ),
    Ablation(
        "gates",
        "SQLite: the sweep tells only of waiters that were left behind",
        STORE + "serve.py",
        "left += outcome.unparked if row in late else 0",
        "left += outcome.unparked",
        _contract("rates"),
    ),
    Ablation(
        "P8",
        "SQLite: parked jobs have an age, too",
        STORE + "sql/transaction.sql",
        "FROM parked WHERE queue = ?1 ORDER BY job_id LIMIT 100",
        "FROM parked WHERE false",
        _contract("watermarks"),
    ),
    Ablation(
        "unique",
        "SQLite: a unique key is taken with the insert",
        STORE + "insert.py",
        "    unique.take(tx, jobs, taking)\n",
        "",
        _contract("unique"),
    ),
    Ablation(
        "unique",
        "SQLite: who is replaced is cancelled",
        STORE + "insert.py",
        "    unique.replace(tx, taking)\n",
        "",
        _contract("unique"),
    ),
    Ablation(
        "audit",
        "SQLite: a change that changes nothing is not on record twice",
        STORE + "rules.py",
        "    if before == after:\n",
        "    if False:\n",
        ("tests/faults/test_store_moments.py", "-k", "set_"),
    ),
)
