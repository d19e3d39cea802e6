"""The safeguards of turns at rates: whoever was let go has its token, and nobody waits for one who does not come."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

CORE = "src/holdfast/core/gates.py"
SQLITE = "src/holdfast/stores/sqlite/"
POSTGRES = "src/holdfast/stores/postgres/"
MIGRATION = POSTGRES + "migrations/0014_fair_lines.sql"
ON_SQLITE = ("tests/contract/test_sqlite.py", "-k", "memory and (rates or gates)")
ON_POSTGRES = ("tests/contract/test_postgres.py", "-k", "rates or gates")
LAPSING = ("tests/contract/test_turns_clock.py",)

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
        "kept = 0 if has_turn else usage.held.get(place, 0)",
        "kept = 0",
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
        "turns: somebody looks again when turns have lapsed",
        CORE,
        "until = min(until, lapsed_at) if kept < gate.pace.burst else lapsed_at",
        "pass",
        LAPSING,
    ),
    Ablation(
        "P9",
        "SQLite: a turn lapses",
        SQLITE + "gates.py",
        '                tx.db.execute(SQL["lapse"], (place.key, tx.now - TURN_KEPT_S))\n',
        "",
        LAPSING,
    ),
    Ablation(
        "P9",
        "SQLite: a turn that has lapsed is no turn at the claim",
        SQLITE + "sql/gates.sql",
        " AND (kind != 'rate' OR kept_at >= ?2)",
        " AND ?2",
        LAPSING,
    ),
    Ablation(
        "P9",
        "PostgreSQL: a turn lapses",
        MIGRATION,
        "s.kept_at < _now - interval '5 seconds'",
        "s.kept_at < _now - interval '1 day'",
        LAPSING,
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
        POSTGRES + "passing.py",
        "    if turns:\n",
        "    if False:\n",
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
        "CASE WHEN s.weight = 0 THEN false WHEN s.weights IS NULL THEN true",
        "CASE WHEN true THEN true WHEN s.weights IS NULL THEN true",
        ON_POSTGRES,
    ),
)
