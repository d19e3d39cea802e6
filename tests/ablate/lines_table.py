"""The safeguards of fairness at gates: turns of lanes, tags of tenants, and who comes anew."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

CORE = "src/holdfast/core/"
SQLITE = "src/holdfast/stores/sqlite/"
POSTGRES = "src/holdfast/stores/postgres/"
MIGRATION = POSTGRES + "migrations/0014_fair_lines.sql"
ON_SQLITE = ("tests/contract/test_sqlite.py", "-k", "memory-lines")
ON_POSTGRES = ("tests/contract/test_postgres.py", "-k", "lines.")
TURNS = ("tests/unit/core/test_turns.py",)
TAGS = ("tests/unit/core/test_line_tags.py",)

OF_LINES = (
    Ablation(
        "P9",
        "lines: whoever is let go pays for its lane",
        CORE + "turns.py",
        "need=None if len(self._price) == 1 else self._price[lane]",
        "need=None if len(self._price) == 1 else 0.0",
        TURNS,
    ),
    Ablation(
        "P9",
        "lines: the others come nearer to their turn",
        CORE + "turns.py",
        "need=max(0.0, self._need(other) - paid)",
        "need=self._need(other)",
        TURNS,
    ),
    Ablation(
        "order",
        "lines: weight 0 waits until nobody else does",
        CORE + "turns.py",
        "    return first or {",
        "    return first | {",
        TURNS,
    ),
    Ablation(
        "order",
        "lines: of lanes that need the same the oldest goes",
        CORE + "turns.py",
        "(self._need(lane), self._lanes[lane].first)",
        "(self._need(lane), lane)",
        TURNS,
    ),
    Ablation(
        "P9",
        "lines: a tenant's next job is one cost behind its last",
        CORE + "tenancy.py",
        "return min(before + cost, FURTHEST_TAG - 1)",
        "return before",
        TAGS,
    ),
    Ablation(
        "P9",
        "lines: who comes again and again pays for each time",
        CORE + "tenancy.py",
        "return min(max(reached, furthest_behind, 0) + cost - 1, FURTHEST_TAG - 1)",
        "return min(max(reached, furthest_behind, 0), FURTHEST_TAG - 1)",
        TAGS,
    ),
    Ablation(
        "P9",
        "lines: a first job is before the second of anybody",
        CORE + "tenancy.py",
        "return min(max(reached, furthest_behind, 0) + cost - 1, FURTHEST_TAG - 1)",
        "return min(max(reached, furthest_behind, 0) + cost, FURTHEST_TAG - 1)",
        TAGS,
    ),
    Ablation(
        "P9",
        "lines: where it is forgotten how far a lane has come nobody is overtaken for long",
        CORE + "tenancy.py",
        "max(reached, furthest_behind, 0)",
        "reached",
        TAGS,
    ),
    Ablation(
        "order",
        "lines: who comes back has its place among those of its tenant",
        CORE + "tenancy.py",
        "    if after is not None:\n        return after\n",
        "",
        TAGS,
    ),
    Ablation(
        "P9",
        "SQLite: who begins to wait gets a tag",
        SQLITE + "lines.py",
        "    if not tag:\n        return 0\n",
        "    return 0\n",
        ON_SQLITE,
    ),
    Ablation(
        "P9",
        "SQLite: whose turn it is at a gate is remembered",
        SQLITE + "serve.py",
        "    line.keep()\n",
        "",
        ON_SQLITE,
    ),
    Ablation(
        "P9",
        "SQLite: who was kept by a pause does not come before all others",
        SQLITE + "serve.py",
        "if job.tag and comes_anew(",
        "if False and comes_anew(",
        ON_SQLITE,
    ),
    Ablation(
        "P9",
        "SQLite: who is moved while he waits stands in the line of his new lane",
        SQLITE + "sql/moving.sql",
        "UPDATE parked SET queue = ?, priority = ?,",
        "UPDATE parked SET queue = ?, priority = coalesce(priority, ?),",
        ON_SQLITE,
    ),
    Ablation(
        "P9",
        "PostgreSQL: who begins to wait gets a tag",
        MIGRATION,
        "    IF NEW.tag <= 0 OR",
        "    IF true OR",
        ON_POSTGRES,
    ),
    Ablation(
        "P9",
        "PostgreSQL: those of one claim stand in the order of their places",
        MIGRATION,
        "JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[p.id]) ORDER BY p.n;",
        "JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[p.id]) ORDER BY p.n DESC;",
        ON_POSTGRES,
    ),
    Ablation(
        "P9",
        "PostgreSQL: whose turn it is at a gate is remembered",
        POSTGRES + "serving.py",
        "    await _keep_turns(tx, line)\n",
        "",
        ON_POSTGRES,
    ),
    Ablation(
        "P9",
        "PostgreSQL: who was kept by a pause does not come before all others",
        POSTGRES + "serving.py",
        "return place._replace(tag=0, seq=None) if let_go.anew else place",
        "return place",
        ON_POSTGRES,
    ),
    Ablation(
        "P9",
        "PostgreSQL: who is moved while he waits stands in the line of his new lane",
        MIGRATION,
        "BEFORE UPDATE OF reason, key, queue, priority",
        "BEFORE UPDATE OF reason",
        ON_POSTGRES,
    ),
    Ablation(
        "rule 10",
        "PostgreSQL: a line is read by its own index, however long",
        MIGRATION,
        "CREATE INDEX parked_in_line ON holdfast.parked (reason, key, queue, priority, line, seq);",
        "CREATE INDEX parked_in_line ON holdfast.parked (line, seq);",
        ("tests/postgres/test_fair_lines.py",),
    ),
    Ablation(
        "rule 10",
        "PostgreSQL: a tenant's neighbours in a line are found by their own index",
        MIGRATION,
        "CREATE INDEX parked_by_tenant ON holdfast.parked (reason, key, queue, priority, tenant, seq) WHERE line > 0;",
        "",
        ("tests/postgres/test_fair_lines.py",),
    ),
)
