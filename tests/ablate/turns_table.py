"""The safeguards of turns at rates: whoever was let go has its token, and nobody waits for one who does not come."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

CORE = "src/holdfast/core/gates.py"
SQLITE = "src/holdfast/stores/sqlite/"
POSTGRES = "src/holdfast/stores/postgres/"
MIGRATION = POSTGRES + "migrations/0014_fair_lines.sql"
ON_SQLITE = ("tests/contract/test_sqlite.py", "-k", "memory and (rates or gates)")
ON_POSTGRES = ("tests/contract/test_postgres.py", "-k", "rates or gates")
OVERDUE = ("tests/contract/test_turns_clock.py",)

OF_TURNS = (
    Ablation(
        "P9",
        "turns: who comes to a rate stands behind those who wait there",
        CORE,
        "(has_turn or letting_go or gate.key not in usage.lined)",
        "True",
        ON_SQLITE,
    ),
    Ablation(
        "P9",
        "turns: a token is left to who was let go for it",
        CORE,
        "meant = 0 if has_turn else _meant_for_turns(usage, place, gate.pace)",
        "meant = 0",
        ON_SQLITE,
    ),
    Ablation(
        "gates",
        "turns: who is let go spends nothing yet",
        CORE,
        "            if letting_go:\n                takes.append(place)",
        "            if letting_go:\n                takes.append(place)\n                spends.append(gate)",
        ("tests/model/test_state_machine.py", *ON_SQLITE),
    ),
    Ablation(
        "P9",
        "turns: somebody looks again when they are overdue",
        CORE,
        "until = min(until, overdue_at) if meant < gate.pace.burst else overdue_at",
        "pass",
        OVERDUE,
    ),
    Ablation(
        "P9",
        "turns: where several may begin at once a token is left to whoever comes late",
        CORE,
        "min(usage.overdue.get(place, 0), pace.burst // 2)",
        "0",
        OVERDUE,
    ),
    Ablation(
        "P9",
        "SQLite: a turn is overdue after a moment",
        SQLITE + "gates.py",
        "usage.held[place], usage.overdue[place] = fresh, turns - fresh",
        "usage.held[place] = turns",
        OVERDUE,
    ),
    Ablation(
        "P9",
        "PostgreSQL: a turn is overdue after a moment",
        MIGRATION,
        "BETWEEN _now - interval '0.1 second'",
        "BETWEEN _now - interval '1 day'",
        OVERDUE,
    ),
    Ablation(
        "P9",
        "SQLite: a queue with a turn that it does not use gets no other",
        SQLITE + "lines.py",
        "    if place.barrier is not Barrier.RATE:",
        "    if True:",
        OVERDUE,
    ),
    Ablation(
        "P9",
        "PostgreSQL: a queue with a turn that it does not use gets no other",
        POSTGRES + "serving.py",
        "for place in places if place.barrier is Barrier.RATE}",
        "for place in places if False}",
        OVERDUE,
    ),
    Ablation(
        "P9",
        "SQLite: one who must run alone keeps none of its queue waiting",
        SQLITE + "sql/lines.sql",
        " AND r.losses < 2 LIMIT 1000",
        " LIMIT 1000",
        OVERDUE,
    ),
    Ablation(
        "P9",
        "PostgreSQL: one who must run alone keeps none of its queue waiting",
        POSTGRES + "sql/serving.sql",
        " AND r.losses < 2 LIMIT 1000",
        " LIMIT 1000",
        OVERDUE,
    ),
    Ablation(
        "gates",
        "SQLite: whoever ends with a turn tells those who wait there",
        SQLITE + "sql/end_jobs.sql",
        "OR reason = 'rate' OR",
        "OR",
        ON_SQLITE,
    ),
    Ablation(
        "gates",
        "SQLite: a turn is used by its claim, and who waits hears of it",
        SQLITE + "gates.py",
        '            tx.db.execute(SQL["free_one"], (job_id, *place))\n            make_due(tx, place, next_at)\n',
        "            pass\n",
        ON_SQLITE,
    ),
    Ablation(
        "gates",
        "PostgreSQL: a turn is used by its claim",
        MIGRATION,
        "IF EXISTS (SELECT 1 FROM holdfast.slot s WHERE s.job_id = ANY (_leased) AND s.kind = 'rate') THEN",
        "IF false THEN",
        ON_POSTGRES,
    ),
    Ablation(
        "P9",
        "SQLite: those who come last keep nobody out of a rate",
        SQLITE + "lines.py",
        "return any(share_in_line(settings_of(tx, queue), priority) > 0 for queue, priority in lanes)",
        "return any(True for _ in lanes)",
        ON_SQLITE,
    ),
    Ablation(
        "P9",
        "PostgreSQL: those who come last keep nobody out of a rate",
        MIGRATION,
        "AND (s.weight = 0 OR holdfast.comes_last(_priority, s.weights))",
        "AND false",
        ON_POSTGRES,
    ),
    Ablation(
        "gates",
        "turns: who has an overdue one and ends lets nobody begin without a token",
        CORE,
        "    taken[place] = max(0, taken.get(place, 0) - 1)",
        "    usage.held[place] = usage.held.get(place, 0) - 1",
        OVERDUE,
    ),
    Ablation(
        "gates",
        "SQLite: those who come last are not let go in vain",
        SQLITE + "lines.py",
        "        if len(coming) < len(rows):",
        "        if False:",
        OVERDUE,
    ),
    Ablation(
        "gates",
        "PostgreSQL: those who come last are not let go in vain",
        POSTGRES + "lines.py",
        "    if passed_over:  # they wait",
        "    if False:  # they wait",
        OVERDUE,
    ),
    Ablation(
        "P9",
        "PostgreSQL: fifty queues that do not use their turns hide no other one",
        POSTGRES + "serving.py",
        "lanes = LANES_AT_ONCE + max(map(len, busy.values()), default=0)",
        "lanes = LANES_AT_ONCE",
        OVERDUE,
    ),
)
