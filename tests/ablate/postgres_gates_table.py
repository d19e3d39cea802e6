"""The safeguards of gates in the PostgreSQL store: how each is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

POSTGRES = "src/holdfast/stores/postgres/"
FLOW = POSTGRES + "migrations/0008_flow.sql"
SLOTS = POSTGRES + "migrations/0011_slots.sql"
BEYOND = POSTGRES + "migrations/0012_slots_beyond.sql"
REPLAYS = POSTGRES + "migrations/0013_unique_replays.sql"
UNIQUE_REPLAYS = "tests/faults/test_rules_unique_replays.py"
NUMBERED = "tests/faults/test_rules_numbered_slots.py"
#: How a claim that goes the short way begins.
STILL = """    PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.setting', 0));
    _now := holdfast.clock();
    PERFORM 1 FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE;
"""
IN_HAND = "tests/faults/test_rules_limits_in_hand.py"
BETWEEN = "tests/faults/test_rules_between_statements.py"
ONE_STATEMENT = "tests/faults/test_rules_one_statement.py"
MOVED = "tests/attacks/test_postgres_moving.py"
HANDED_ON = "tests/attacks/test_postgres_handed_on.py"
ASTRAY = "tests/attacks/test_postgres_astray.py"
PAUSED = "tests/attacks/test_postgres_pauses.py"


def _contract(topic: str) -> tuple[str, ...]:
    return ("tests/contract/test_postgres.py", "-k", topic)


AT_POSTGRES_GATES = (
    Ablation(
        "rule 11",
        "PostgreSQL: no number of a slot is beyond the size of its limit",
        BEYOND,
        "h.highest, least(a.size, 2 * (h.held + a.many) + 16)::int4",
        "h.highest, (2 * (h.held + a.many) + 16)::int4",
        (BETWEEN, "-k", "rule_11"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: no number of a slot is taken twice",
        SLOTS,
        "ADD PRIMARY KEY (key, kind, number)",
        "ADD PRIMARY KEY (key, kind, number, job_id)",
        (BETWEEN, "-k", "rule_11"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: whoever begins to wait at a limit waits for those who free its slots",
        SLOTS,
        "                ORDER BY s.ctid FOR UPDATE OF s) h GROUP BY h.key",
        "                ORDER BY s.ctid) h GROUP BY h.key",
        (NUMBERED, "-k", "while_a_slot_is_being_freed"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: whoever begins to wait at a limit is kept out by all that he was judged by",
        SLOTS,
        "ON n.key = f.key WHERE coalesce(n.held, 0) < f.held",
        "ON n.key = f.key WHERE false",
        (NUMBERED, "-k", "while_a_slot_is_being_freed"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: whoever frees slots looks for gates once more when he has them",
        BEYOND,
        "    IF _keys IS NULL OR NOT EXISTS (SELECT 1 FROM holdfast.gate) THEN",
        "    IF _keys IS NULL OR _held = '{}' THEN",
        (NUMBERED, "-k", "begins_to_wait"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: whoever was let go runs with the slot that was kept for it",
        BEYOND,
        "            RETURN;  -- kept for one who was let go",
        "            NULL;",
        (NUMBERED, "-k", "kept_for_a_job"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: operators wait for a claim that goes the short way",
        BEYOND,
        STILL + "    IF NOT FOUND",
        STILL.partition("\n")[2] + "    IF NOT FOUND",
        (NUMBERED, "-k", "operators_wait"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: a claim the short way needs a valid lease",
        BEYOND,
        "    IF FOUND AND NOT EXISTS (SELECT 1 FROM holdfast.rule) THEN",
        "    IF NOT EXISTS (SELECT 1 FROM holdfast.rule) THEN",
        (NUMBERED, "-k", "lease"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: a claim the short way holds its worker's row until it commits",
        BEYOND,
        "lease_until > holdfast.clock() FOR KEY SHARE;\n    IF FOUND",
        "lease_until > holdfast.clock();\n    IF FOUND",
        (NUMBERED, "-k", "reaped"),
    ),
    Ablation(
        "order",
        "PostgreSQL: a freed slot is for those who wait, not for whoever comes, the short way",
        BEYOND,
        "    IF EXISTS (SELECT 1 FROM holdfast.gate) AND EXISTS (\n        SELECT 1 FROM unnest(_limits)",
        "    IF false AND EXISTS (\n        SELECT 1 FROM unnest(_limits)",
        (IN_HAND, "-k", "whoever_comes and short"),
    ),
    Ablation(
        "order",
        "PostgreSQL: a freed slot is for those who wait, not for whoever comes",
        FLOW,
        "AND d.key = ANY (ARRAY[g.key])\n        WHERE d.freed;",
        "AND d.key = ANY (ARRAY[g.key])\n        WHERE false;",
        (IN_HAND, "-k", "whoever_comes and longer"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: a settlement makes the gates due whose slots it frees",
        BEYOND,
        "        UPDATE holdfast.gate g SET due_at = _now, freed = true\n",
        "        UPDATE holdfast.gate g SET due_at = g.due_at\n",
        _contract("limits"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: whoever frees slots of gates that are in somebody's hand comes again",
        POSTGRES + "serving.py",
        "        for place in there:  # in somebody's hand",
        "        for place in ():",
        ("tests/attacks/test_postgres_stalled.py",),
    ),
    Ablation(
        "rule 4",
        "PostgreSQL: a success of a job with a slot sees who has just begun to wait for it",
        SLOTS,
        """    IF EXISTS (SELECT 1 FROM holdfast.member) AND EXISTS (
        SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (_settled_ids)""",
        """    IF false AND EXISTS (
        SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (_settled_ids)""",
        (ONE_STATEMENT, "-k", "rule_4 and succeed"),
    ),
    Ablation(
        "rule 4",
        "PostgreSQL: any end of a job with a slot sees who has just begun to wait for it",
        SLOTS,
        "    IF EXISTS (SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (_settled_ids))",
        "    IF false AND EXISTS (SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (_settled_ids))",
        (ONE_STATEMENT, "-k", "rule_4 and slot and bury"),
    ),
    Ablation(
        "gates",
        "PostgreSQL: tokens are spent in the claim's transaction",
        SLOTS,
        "    IF cardinality(_rates) > 0 THEN\n        UPDATE",
        "    IF false THEN\n        UPDATE",
        _contract("rates"),
    ),
    Ablation(
        "gates",
        "PostgreSQL: the sweep tells only of waiters that were left behind",
        POSTGRES + "sweep.py",
        "in let_go.items() if place in late)",
        "in let_go.items())",
        _contract("rates"),
    ),
    Ablation(
        "P8",
        "PostgreSQL: parked jobs have an age, too",
        POSTGRES + "sql/queues.sql",
        "UNION ALL SELECT holdfast.parked_since(q.queue)",
        "UNION ALL SELECT NULL::timestamptz",
        _contract("watermarks"),
    ),
    Ablation(
        "gates",
        "PostgreSQL: whoever is held back at its claim keeps no slot",
        POSTGRES + "passing.py",
        "                freed.append(job_id)",
        "                pass",
        _contract("gates"),
    ),
    Ablation(
        "gates",
        "PostgreSQL: a success reaches a breaker that is not closed",
        SLOTS,
        """        WHERE b.open_until IS NOT NULL) THEN
        RETURN;
    END IF;
    IF NOT _attached THEN""",
        """        WHERE false) THEN
        RETURN;
    END IF;
    IF NOT _attached THEN""",
        _contract("breakers"),
    ),
    Ablation(
        "P4",
        "PostgreSQL: a unique key that somebody else was quicker with is read again",
        REPLAYS,
        "        WHERE u.xmin::text = _befores[array_position(_job_ids, excluded.job_id)]\n",
        "        WHERE true\n",
        (BETWEEN, "-k", "rule_6"),
    ),
    Ablation(
        "unique",
        "PostgreSQL: an open window outlasts its pruned job",
        POSTGRES + "ended.py",
        'await tx.fetch("ended.drop_closed_unique", past, tx.now)',
        'await tx.fetch("ended.drop_unique", past)',
        ("tests/contract/test_unique_clock.py", "-k", "postgres"),
    ),
    Ablation(
        "unique",
        "PostgreSQL: that a pruned job was cancelled is remembered with its window",
        POSTGRES + "ended.py",
        "            if cancelled:\n",
        "            if False:\n",
        ("tests/contract/test_unique_clock.py", "-k", "postgres"),
    ),
    Ablation(
        "P4",
        "PostgreSQL: a unique key is taken from the row that was looked at, not from a job that lives again since",
        REPLAYS,
        "        WHERE u.xmin::text = _befores[array_position(_job_ids, excluded.job_id)]\n",
        "        WHERE u.job_id <> excluded.job_id\n",
        (UNIQUE_REPLAYS, "-k", "takes_no_key"),
    ),
    Ablation(
        "P4",
        "PostgreSQL: a replay holds the unique keys that it asks for",
        POSTGRES + "unique.py",
        '        await tx.many("ended.hold_unique", ',
        '        await tx.many("ended.hold_unique", [] and ',
        (UNIQUE_REPLAYS, "-k", "under_way or two_replays"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: jobs that are moved are held before it is read where they are",
        POSTGRES + "sql/moving.sql",
        "SELECT job_id, losses FROM holdfast.ready WHERE job_id = ANY ($1) FOR UPDATE SKIP LOCKED",
        "SELECT job_id, losses FROM holdfast.ready WHERE job_id = ANY ($1)",
        (MOVED, "-k", "moved_twice or two_move"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: a gate is looked at again where somebody was in another's hand",
        POSTGRES + "sql/serving.sql",
        "CASE WHEN d.over AND (",
        "CASE WHEN false AND (",
        (MOVED, "-k", "somebodys_hand"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: what operators say while a claim waits for a gate holds for it",
        FLOW,
        "    IF _claiming AND holdfast.said() IS DISTINCT FROM _said THEN",
        "    IF false THEN",
        (PAUSED, "-k", "longer"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: a purge leaves alone what was moved away",
        POSTGRES + "waiting.py",
        "_end_waiting(tx, waiting, reason=reason, queue=queue)",
        "_end_waiting(tx, waiting, reason=reason)",
        (MOVED, "-k", "purged"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: who claims a job that must run alone holds gates only once",
        POSTGRES + "claim.py",
        "            return Claim(await take(tx, worker, rows), scanned)",
        "            if jobs := await take(tx, worker, rows):\n                return Claim(jobs, scanned)",
        ("tests/attacks/test_postgres_lonely.py",),
    ),
    Ablation(
        "order",
        "PostgreSQL: who is held back with a slot hands it on at once",
        POSTGRES + "passing.py",
        "                tx.freed |= candidate.has",
        "                pass",
        (HANDED_ON, "-k", "let_go_by_that_claim"),
    ),
    Ablation(
        "order",
        "PostgreSQL: the slot of one who is held back is for those who wait, not for whoever comes",
        SLOTS,
        "SET due_at = _now, freed = true FROM freed f",
        "SET due_at = _now FROM freed f",
        (HANDED_ON, "-k", "newcomer"),
    ),
    Ablation(
        "order",
        "PostgreSQL: no slot is kept for a job that comes last",
        POSTGRES + "lines.py",
        "comes_last=share == 0) if",
        "comes_last=False) if",
        _contract("last_lanes"),
    ),
    Ablation(
        "order",
        "PostgreSQL: slots kept for jobs of a lane go on when it is put last",
        POSTGRES + "store.py",
        "if settings.paused or last_priorities(settings):",
        "if settings.paused:",
        _contract("last_lanes"),
    ),
    Ablation(
        "order",
        "PostgreSQL: who stands behind others in the line of a gate for no reason is found by the sweep",
        POSTGRES + "sweep.py",
        "            astray += strays\n",
        "",
        (ASTRAY, "-k", "waits_at_its_gate"),
    ),
    Ablation(
        "order",
        "PostgreSQL: what an earlier version lets go from behind others is not behind those of its lane",
        POSTGRES + "sweep.py",
        '    await tx.fetch("sweep.step_forward", limit)\n',
        "",
        (ASTRAY, "-k", "stood_at_its_gate"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: whoever is taken from the unknown stands where he was moved to",
        POSTGRES + "claim.py",
        "if (queue, priority) != (place.queue, place.priority):",
        "if False:",
        (MOVED, "-k", "unknown"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: operators wait for a claim that judges",
        BEYOND,
        "    PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.setting', 0));\n    _said",
        "    _said",
        ("tests/attacks/test_postgres_talkative.py",),
    ),
)
