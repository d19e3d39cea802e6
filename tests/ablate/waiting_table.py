"""The safeguards of jobs that wait for a limit, have lost their body or are enqueued again, on both stores."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

POSTGRES = "src/holdfast/stores/postgres/"
SQLITE = "src/holdfast/stores/sqlite/"
BODIES = "tests/faults/test_rules_bodies.py"
IN_HAND = "tests/faults/test_rules_limits_in_hand.py"
KEPT = "slot_is_not_kept"


WHILE_WAITING = (
    Ablation(
        "rule 8",
        "PostgreSQL: a repeated enqueue that finds everything there writes a row",
        POSTGRES + "insert.py",
        "if not placed and (existing or",
        "if False and (existing or",
        ("tests/faults/test_rules_callers.py", "-k", "rule_8_a_repeat"),
    ),
    Ablation(
        "rule 11",
        "no slot is kept for a queue that nobody claims from",
        SQLITE + "serve.py",
        "served = waiter.standing, waiter.share is not None",
        "served = waiter.standing, True",
        ("tests/contract/test_sqlite.py", "-k", KEPT),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: no slot is kept for a queue that nobody claims from",
        POSTGRES + "lines.py",
        "comes_last=share == 0) if share is not None else ()",
        "comes_last=share == 0)",
        ("tests/contract/test_postgres.py", "-k", KEPT),
    ),
    Ablation(
        "rule 11",
        "slots that were kept for a queue go on to others when it is paused",
        SQLITE + "queues.py",
        "    if settings.paused:\n        free_reserved",
        "    if False:\n        free_reserved",
        ("tests/contract/test_sqlite.py", "-k", "limits.pausing"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: slots that were kept for a queue go on to others when it is paused",
        POSTGRES + "store.py",
        "if settings.paused or last_priorities(settings):",
        "if last_priorities(settings):",
        ("tests/contract/test_postgres.py", "-k", "limits.pausing"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: a reap does not wait for a limit that is held elsewhere",
        POSTGRES + "end.py",
        """    tx.freed |= set(places_of_rows(""",
        """    await tx.fetch("serving.look_after", ["limit"], ["k"], True)
    tx.freed |= set(places_of_rows(""",
        (IN_HAND, "-k", "reap"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: a sweep passes over a limit that is held elsewhere",
        POSTGRES + "sweep.py",
        """"serving.look_after", *columns_of([place]), False)
    while""",
        """"serving.look_after", *columns_of([place]), True)
    while""",
        (IN_HAND, "-k", "passes_over"),
    ),
    Ablation(
        "rule 2",
        "a scheduled job without a body ends",
        SQLITE + "waiting.py",
        "            bury_headless(tx, job_id, attempt)",
        "            continue",
        (BODIES, "-k", "promoted"),
    ),
    Ablation(
        "rule 2",
        "PostgreSQL: a scheduled job without a body ends",
        POSTGRES + "sql/waiting.sql",
        "FROM due t LEFT JOIN holdfast.job j",
        "FROM due t JOIN holdfast.job j",
        (BODIES, "-k", "promoted"),
    ),
    Ablation(
        "rule 2",
        "PostgreSQL: a dead letter without a body is not lost by a replay",
        POSTGRES + "sql/ended.sql",
        "ANY ($1) AND EXISTS (SELECT 1 FROM holdfast.job j WHERE j.id = d.job_id)\nRETURNING",
        "ANY ($1)\nRETURNING",
        (BODIES, "-k", "replayed"),
    ),
)
