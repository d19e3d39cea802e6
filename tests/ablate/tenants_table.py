"""The safeguards of fairness between tenants: how each is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

CORE = "src/holdfast/core/"
SQLITE = "src/holdfast/stores/sqlite/"
POSTGRES = "src/holdfast/stores/postgres/"
MIGRATION = POSTGRES + "migrations/0008_flow.sql"
ON_SQLITE = ("tests/contract/test_sqlite.py", "-k", "memory and tenants")
ON_POSTGRES = ("tests/contract/test_postgres.py", "-k", "tenants")

OF_TENANTS = (
    Ablation(
        "P9",
        "tenants: a job is one cost behind its tenant's last",
        CORE + "tenancy.py",
        "return last + cost if waiting else base",
        "return base",
        ("tests/unit/core/test_tenancy.py",),
    ),
    Ablation(
        "P9",
        "tenants: nobody pays for what was cancelled",
        CORE + "tenancy.py",
        "return last + cost if waiting else base",
        "return last + cost",
        ("tests/unit/core/test_tenancy.py",),
    ),
    Ablation(
        "P9",
        "tenants: a claim says how far its lane has come",
        SQLITE + "claim.py",
        "    reach(tx, *lane, rows[-1][1])\n",
        "",
        ON_SQLITE,
    ),
    Ablation(
        "P9",
        "tenants: jobs without one are one where there are others",
        SQLITE + "insert.py",
        "        mark_tenanted(tx, named)",
        "        tx.tenanted.update(named)",
        ("tests/unit/stores/test_with_tenants.py",),
    ),
    Ablation(
        "P9",
        "tenants: many that are unparked together do not shut others out",
        SQLITE + "workers.py",
        "if tag and queue in tx.tenanted:",
        "if False:",
        ON_SQLITE,
    ),
    Ablation(
        "P9",
        "PostgreSQL: a claim says how far its lane has come",
        MIGRATION,
        """FROM leased WHERE tag > 0 GROUP BY queue, priority ORDER BY queue COLLATE "C", priority
        ON CONFLICT (queue, priority, stripe) DO UPDATE SET tag = excluded.tag WHERE excluded.tag > x.tag
    )
    SELECT a.job_id""",
        """FROM leased WHERE false GROUP BY queue, priority ORDER BY queue COLLATE "C", priority
        ON CONFLICT (queue, priority, stripe) DO UPDATE SET tag = excluded.tag WHERE excluded.tag > x.tag
    )
    SELECT a.job_id""",
        ON_POSTGRES,
    ),
    Ablation(
        "P9",
        "PostgreSQL: producers of one tenant give tags one after the other",
        MIGRATION,
        "    ORDER BY t.queue, t.priority, t.tenant FOR UPDATE OF t;",
        "    ORDER BY t.queue, t.priority, t.tenant;",
        ("tests/postgres/test_tenants.py", "-k", "goes_on_behind"),
    ),
    Ablation(
        "P9",
        "PostgreSQL: numbers are in the order of arrival, also where some jobs need tags",
        POSTGRES + "transaction.py",
        """                self._tails += tails
                places = [place for place in places if place.seq is not None]
""",
        """                self._tails += [place for place in tails if place.queue in self.tenanted]
                places = [place for place in places if place not in self._tails]
""",
        ON_POSTGRES,
    ),
    Ablation(
        "P9",
        "PostgreSQL: every process hears that a queue has tenants",
        POSTGRES + "gates.py",
        "            if tenanted:\n",
        "            if False:\n",
        ("tests/postgres/test_tenants.py", "-k", "hears"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: tags in a user's transaction lock nothing",
        POSTGRES + "tenants.py",
        '"tenants.guess_tags" if tx.is_guest else "tenants.give_tags"',
        '"tenants.give_tags"',
        ("tests/transactions/test_tenants.py", "-k", "holds_up_nobody"),
    ),
    Ablation(
        "P9",
        "PostgreSQL: what was given in a user's transaction counts",
        MIGRATION,
        "AND n.tag > t.tag\n",
        "AND false\n",
        ("tests/transactions/test_tenants.py", "-k", "counts_for_later"),
    ),
    Ablation(
        "P9",
        "PostgreSQL: floors of lanes with tags stay a moment behind",
        POSTGRES + "floors.py",
        "SLACK_S = 0.05",
        "SLACK_S = 0.0",
        ("tests/unit/stores/test_floors.py",),
    ),
    Ablation(
        "P8",
        "a queue closes at its high watermark of age",
        CORE + "backpressure.py",
        " or (ages is not None and age_s >= ages.high_s)",
        "",
        ("tests/unit/core/test_backpressure.py",),
    ),
    Ablation(
        "P8",
        "it opens only at its low watermark of age",
        CORE + "backpressure.py",
        " and (ages is None or age_s <= ages.low_s)",
        "",
        ("tests/unit/core/test_backpressure.py",),
    ),
)
