"""The safeguards of slots in the PostgreSQL store: sizes that change, operators who speak, claims of several parts."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

POSTGRES = "src/holdfast/stores/postgres/"
BEYOND = POSTGRES + "migrations/0012_slots_beyond.sql"
SIZES = "tests/faults/test_rules_sizes_of_limits.py"
SERVED = "tests/faults/test_rules_served_gates.py"
REPLACED = "tests/faults/test_rules_replaced.py"
LOOKS = "tests/attacks/test_postgres_second_looks.py"
STILL = "    PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.setting', 0));\n"
AT_THE_HEAD = """    _now := holdfast.clock();
    PERFORM 1 FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE;
    IF FOUND"""
FREED = "    await free_all_slots(tx, leases)\n"
CLEARED = """    cleared = [lease for lease in leases if not is_suspect(cause, lease.token, suspects)]
    await record_attempts(tx, [Attempt(lease, cause, ErrorInfo("", why)) for lease in cleared])
    await give_back(tx, cleared)
"""
LOST = '    returned = await _after_loss(tx, lost, Cause.LEASE_EXPIRED, "the worker\'s lease ran out")\n'
SETTLED = "    await free_all_slots(tx, [lease for lease, _ in settled])\n"

OF_POSTGRES_SLOTS = (
    Ablation(
        "rule 11",
        "PostgreSQL: beside slots with numbers beyond its size nobody takes one of a limit at once with others",
        BEYOND,
        "x.held + x.many > x.size OR (x.highest > x.size AND NOT _alone)",
        "x.held + x.many > x.size",
        (SIZES, "-k", "do_not_exceed"),
    ),
    Ablation(
        "P8",
        "PostgreSQL: an operator does not wait for ever for a claim that was stopped",
        POSTGRES + "sql/rules.sql",
        "SELECT set_config('lock_timeout', '8s', true), pg_advisory_xact_lock("
        "hashtextextended('holdfast.setting', 0))\n\n",
        "SELECT pg_advisory_xact_lock(hashtextextended('holdfast.setting', 0))\n\n",
        ("tests/attacks/test_postgres_talkative.py", "-k", "stopped"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: who takes a slot alone waits for those who go the short way",
        POSTGRES + "sql/rules.sql",
        "pg_advisory_xact_lock(hashtextextended('holdfast.setting', 0)),\n       set_config",
        "set_config",
        (SIZES, "-k", "did_not_see_them"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: who takes a slot alone is waited for by those who go the short way",
        BEYOND,
        STILL + AT_THE_HEAD,
        AT_THE_HEAD,
        (SIZES, "-k", "at_once and head or did_not_see_them and head or operators and head"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: what has to be done alone is done alone",
        POSTGRES + "engine.py",
        "alone = alone or is_to_be_alone(error)",
        "alone = False",
        (SIZES, "-k", "do_not_exceed"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: of several sizes of one limit that are taken at once the smallest counts",
        BEYOND,
        "min(a.size) AS size",
        "max(a.size) AS size",
        (SIZES, "-k", "none_of_a_smaller"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: of several sizes of one limit that are judged at once each counts for its own jobs",
        BEYOND,
        "dense_rank() OVER (PARTITION BY a.kind, a.key ORDER BY a.size) AS rank",
        "1 AS rank",
        (SIZES, "-k", "each_count"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: what was judged is judged again where others came before it was written",
        BEYOND,
        "CONTINUE WHEN holdfast.take_slots(_some.ids, _some.kinds, _some.keys, _some.sizes);",
        "CONTINUE WHEN holdfast.take_slots(_some.ids, _some.kinds, _some.keys, "
        "array_fill(1000000, ARRAY[cardinality(_some.ids)]));",
        (SIZES, "-k", "judged_again"),
    ),
    Ablation(
        "rule 11",
        "PostgreSQL: operators wait for a claim of a job that must run alone",
        POSTGRES + "claim.py",
        '    await tx.fetch("rules.still")\n    await _hold_lease(tx, worker)\n    scanned',
        "    await _hold_lease(tx, worker)\n    scanned",
        (SIZES, "-k", "must_run_alone"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: operators wait for whoever serves gates by what was said before",
        POSTGRES + "serving.py",
        '    await tx.fetch("rules.still")  # else',
        "    # else",
        (SERVED, "-k", "raised or taken_back or queue_is_paused"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: a probe keeps the gate of its breaker",
        BEYOND,
        "(g.kind <> 'breaker' OR NOT EXISTS (",
        "(true OR NOT EXISTS (",
        (SERVED, "-k", "probe"),
    ),
    Ablation(
        "order",
        "PostgreSQL: a settlement frees slots before it locks joins",
        POSTGRES + "settle.py",
        SETTLED,
        "    from holdfast.stores.postgres.end import _arrive\n\n"
        "    await _arrive(tx, [lease.job_id for lease, _ in settled])\n" + SETTLED,
        (SERVED, "-k", "joins and settled"),
    ),
    Ablation(
        "order",
        "PostgreSQL: jobs that are handed back free their slots before joins are locked",
        POSTGRES + "workers.py",
        FREED + CLEARED,
        CLEARED + FREED,
        (SERVED, "-k", "joins and handed"),
    ),
    Ablation(
        "order",
        "PostgreSQL: jobs of the dead free their slots before joins are locked",
        POSTGRES + "workers.py",
        "    await free_all_slots(tx, lost)\n" + LOST,
        LOST + "    await free_all_slots(tx, lost)\n",
        (SERVED, "-k", "joins and reaped"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: one gate in a slow hand makes nobody forget the others",
        POSTGRES + "serving.py",
        "            with contextlib.suppress(StoreUnavailable):  # for too long",
        "            if True:  # for too long",
        (SERVED, "-k", "slow_hand"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: what a claim has leased does not wait for gates for longer than the claim may take",
        POSTGRES + "claim_verbs.py",
        "_PATIENCE = 0.8",
        "_PATIENCE = 8.0",
        (LOOKS, "-k", "do_not_wait_for_one"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: nobody waits for long for a number that somebody else has in hand",
        BEYOND,
        "lock_timeout = '200ms'",
        "lock_timeout = '5s'",
        (LOOKS, "-k", "number"),
    ),
    Ablation(
        "P3",
        "PostgreSQL: what a second look leases is told of",
        POSTGRES + "claim.py",
        'if row[_KIND] != "attached" or row[0] not in seen]',
        "if row[0] not in seen]",
        (LOOKS, "-k", "second_look"),
    ),
    Ablation(
        "P9",
        "PostgreSQL: what is looked at twice is counted once",
        POSTGRES + "claim.py",
        "other.scanned.get(lane, 0) - again[lane]",
        "other.scanned.get(lane, 0)",
        (LOOKS, "-k", "second_look"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: a job of a paused queue that must run alone stops nobody, the short way",
        BEYOND,
        "                AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = l.queue AND s.paused)\n"
        "            UNION ALL",
        "            UNION ALL",
        (LOOKS, "-k", "paused"),
    ),
    Ablation(
        "gates",
        "PostgreSQL: an older job replaces no newer one",
        POSTGRES + "passing.py",
        "        if newer is not None:",
        "        if False:",
        ("tests/contract/test_postgres.py", "-k", "full_limits"),
    ),
    Ablation(
        "gates",
        "PostgreSQL: whoever replaces others begins anew where one of them is in somebody's hand",
        POSTGRES + "passing.py",
        'if not tx.is_last_try and await tx.fetch("passing.left_at"',
        'if False and await tx.fetch("passing.left_at"',
        (REPLACED,),
    ),
)
