"""The safeguards of the PostgreSQL store: how each is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

POSTGRES = "src/holdfast/stores/postgres/"
FAULTS = "tests/faults/"
BETWEEN = FAULTS + "test_rules_between_statements.py"
LOST = FAULTS + "test_postgres_lost_answers.py"
ONE_STATEMENT = FAULTS + "test_rules_one_statement.py"

FLOW = POSTGRES + "migrations/0008_flow.sql"
SLOTS = POSTGRES + "migrations/0011_slots.sql"
_FENCED = (
    "WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND (a.worker = _worker) IS TRUE AND NOT a.attached"
)
#: Of the statement for successes that nothing hangs on, and of that for any outcome.
SUCCESSES = (
    """    IF NOT _attached THEN
        RETURN QUERY
        WITH moment AS MATERIALIZED (
            SELECT holdfast.clock() AS now
        ), run AS (
            DELETE FROM holdfast.active a USING unnest(_ids, _tokens, _results) AS s (job_id, token, result)
            """
    + _FENCED
)
OUTCOMES = (
    """                  traceback, fingerprint, words)
        """
    + _FENCED
)


def _contract(topic: str) -> tuple[str, ...]:
    return ("tests/contract/test_postgres.py", "-k", topic)


ON_POSTGRES = (
    Ablation(
        "P10",
        "PostgreSQL: the server ends a transaction that was left in the middle of a statement",
        POSTGRES + "connections.py",
        """        return f"{_DURABLE}; {_BOUNDED.format(longest_ms=round(1000 * LONGEST_S))}\"""",
        """        return _DURABLE""",
        (FAULTS + "test_silent_sessions.py",),
    ),
    Ablation(
        "P2",
        "PostgreSQL: an insert of the same id makes no second job",
        POSTGRES + "migrations/0002_insert_jobs.sql",
        """        ON CONFLICT DO NOTHING
        RETURNING id, queue""",
        """        RETURNING id, queue""",
        _contract("insert"),
    ),
    Ablation(
        "P2",
        "PostgreSQL: an insert that finds its ids goes on by the way that leaves them alone",
        POSTGRES + "insert.py",
        "if not isinstance(error.__cause__, asyncpg.UniqueViolationError):",
        "if error:",
        _contract("insert"),
    ),
    Ablation(
        "P2",
        "PostgreSQL: an insert without an answer is unknown, not failed",
        POSTGRES + "errors.py",
        """_PERHAPS_COMMITTED = ("08", "57P", "XX")""",
        """_PERHAPS_COMMITTED = ("57P", "XX")""",
        (LOST, "-k", "unknown"),
    ),
    Ablation(
        "P3",
        "PostgreSQL: a renewal tells of leases whose claim was never answered",
        POSTGRES + "sql/workers.sql",
        "ON a.worker = $1 AND a.started_at",
        "ON a.worker = $1 AND false AND a.started_at",
        (FAULTS + "test_rules.py", "-k", "rule_2_a_renewal and postgres"),
    ),
    Ablation(
        "P3",
        "PostgreSQL: a settlement whose answer was lost is known again",
        POSTGRES + "settle.py",
        "verdict or (Verdict.ALREADY if recorded[run] in causes(settlement) else Verdict.LOST)",
        "verdict or Verdict.LOST",
        _contract("settle or fencing"),
    ),
    Ablation(
        "P4",
        "PostgreSQL: a key that somebody else was quicker with is read again",
        POSTGRES + "insert.py",
        "        if ours >= wanted.keys() and await",
        "        if await",
        (BETWEEN, "-k", "rule_6"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: successes are fenced by token",
        SLOTS,
        SUCCESSES,
        SUCCESSES.replace("a.token = s.token AND ", ""),
        _contract("fencing"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: successes are fenced by worker",
        SLOTS,
        SUCCESSES,
        SUCCESSES.replace(" AND (a.worker = _worker) IS TRUE", ""),
        _contract("fencing"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: any outcome by one statement is fenced by token",
        FLOW,
        OUTCOMES,
        OUTCOMES.replace("a.token = s.token AND ", ""),
        (ONE_STATEMENT, "-k", "rule_3"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: any outcome by one statement is fenced by worker",
        FLOW,
        OUTCOMES,
        OUTCOMES.replace(" AND (a.worker = _worker) IS TRUE", ""),
        _contract("fencing"),
    ),
    Ablation(
        "P2",
        "PostgreSQL: one statement settles nothing that somebody waits for",
        FLOW,
        OUTCOMES,
        OUTCOMES.replace(" AND NOT a.attached", ""),
        (ONE_STATEMENT, "-k", "rule_4"),
    ),
    Ablation(
        "P2",
        "PostgreSQL: one statement sees a request to cancel that was just made",
        FLOW,
        """                  CASE WHEN a.cancel_reason IS NOT NULL AND s.state IN ('scheduled', 'ready', 'parked')
                       THEN 'cancelled' ELSE s.state END""",
        """                  s.state""",
        (ONE_STATEMENT, "-k", "rule_5"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: other outcomes are fenced by token",
        POSTGRES + "sql/settle_jobs.sql",
        "WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND (a.worker = $1) IS TRUE",
        "WHERE a.job_id = ANY (ARRAY[s.job_id]) AND (a.worker = $1) IS TRUE",
        _contract("fencing"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: other outcomes are fenced by worker",
        POSTGRES + "sql/settle_jobs.sql",
        "WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND (a.worker = $1) IS TRUE",
        "WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND $1::uuid IS NOT NULL",
        _contract("fencing"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: a claim needs a valid lease",
        FLOW,
        "FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE\n    ), asked",
        "FROM holdfast.worker WHERE id = _worker FOR KEY SHARE\n    ), asked",
        _contract("claim"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: a claim holds its worker's row until it commits",
        FLOW,
        "lease_until > holdfast.clock() FOR KEY SHARE\n    ), asked",
        "lease_until > holdfast.clock()\n    ), asked",
        (BETWEEN, "-k", "rule_1"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: reaping removes the worker before its leases move",
        POSTGRES + "sql/workers.sql",
        "DELETE FROM holdfast.worker WHERE id = ANY (ARRAY(",
        "UPDATE holdfast.worker SET pid = pid WHERE id = ANY (ARRAY(",
        _contract("leases or reap or claim"),
    ),
    Ablation(
        "rule 4",
        "PostgreSQL: an arrival at a join counts once",
        POSTGRES + "migrations/0001_tables.sql",
        """    counted  bool NOT NULL DEFAULT true,
    PRIMARY KEY (join_id, job_id)""",
        """    counted  bool NOT NULL DEFAULT true""",
        (BETWEEN, "-k", "dies_twice"),
    ),
    Ablation(
        "rule 4",
        "PostgreSQL: a run that somebody waits for takes the longer way",
        POSTGRES + "sql/insert_jobs.sql",
        "UPDATE holdfast.active SET attached = true",
        "UPDATE holdfast.active SET attached = attached",
        (BETWEEN, *_contract("joins")[:1], "-k", "joins or begins_to_wait"),
    ),
    Ablation(
        "rule 7",
        "PostgreSQL: reaping waits for nobody's transaction",
        POSTGRES + "sql/workers.sql",
        "SELECT ctid FROM holdfast.active WHERE worker = ANY ($1) FOR UPDATE SKIP LOCKED",
        "SELECT ctid FROM holdfast.active WHERE worker = ANY ($1) FOR UPDATE",
        (BETWEEN, "-k", "rule_7"),
    ),
    Ablation(
        "order",
        "PostgreSQL: a claim that came back short looks again from the ground",
        POSTGRES + "claim_verbs.py",
        "        if short:  # from above",
        "        if False:  # from above",
        (BETWEEN, "-k", "below_the_floor"),
    ),
    Ablation(
        "P10",
        "PostgreSQL: a silent connection does not cost the lease",
        POSTGRES + "beats.py",
        "limit_s = max(_RENEWAL_S, lease_s * _RENEWAL)",
        "limit_s = 3600.0",
        (LOST, "-k", "heartbeat"),
    ),
    Ablation(
        "P5",
        "PostgreSQL: the heartbeat's thread shares no connection with the worker's event loop",
        POSTGRES + "beats.py",
        """"workers.lag", worker, lag_s, line=self._line)""",
        """"workers.lag", worker, lag_s)""",
        _contract("another_event_loop"),
    ),
    Ablation(
        "P6",
        "PostgreSQL: a connection that has fallen silent amid a run's transaction is given up",
        POSTGRES + "finish.py",
        "async with asyncio.timeout(_TIDY_S):",
        "async with contextlib.AsyncExitStack():",
        ("tests/transactions/test_finish_crashes.py", "-k", "fallen_silent"),
    ),
    Ablation(
        "P6",
        "PostgreSQL: a commit that is never answered is asked about over another connection",
        POSTGRES + "finish.py",
        "async with asyncio.timeout(_COMMIT_S):",
        "async with contextlib.AsyncExitStack():",
        ("tests/transactions/test_finish_crashes.py", "-k", "never_answered"),
    ),
)
