"""The safeguards: which promise each keeps, how it is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation
from tests.ablate.lines_table import OF_LINES
from tests.ablate.postgres_table import ON_POSTGRES
from tests.ablate.redis_table import ON_REDIS
from tests.ablate.simulation_table import IN_THE_SIMULATION
from tests.ablate.supervision_table import UNDER_A_SUPERVISOR
from tests.ablate.tenants_table import OF_TENANTS
from tests.ablate.threads_table import IN_THREADS
from tests.ablate.turns_table import OF_TURNS
from tests.ablate.waiting_table import WHILE_WAITING

STORE = "src/holdfast/stores/sqlite/"
POSTGRES = "src/holdfast/stores/postgres/"
CONTRACT = "tests/contract/test_sqlite.py"


def _contract(topic: str) -> tuple[str, ...]:
    return (CONTRACT, "-k", f"memory and ({topic})")


SQLITE_AND_SHARED = (
    Ablation(
        "P1",
        "the log is flushed to the disk at every commit",
        STORE + "opening.py",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = OFF",
        ("tests/unit/stores",),
    ),
    Ablation(
        "P1",
        "answers go out after the commit",
        STORE + "writer.py",
        """                db.execute("COMMIT")
                for""",
        """                db.execute("ROLLBACK")
                for""",
        _contract("insert"),
    ),
    Ablation(
        "P1",
        "nothing is written into a file that has lost its name",
        STORE + "writer.py",
        """                self._check_file()
                db.execute("BEGIN IMMEDIATE")""",
        """                db.execute("BEGIN IMMEDIATE")""",
        ("tests/faults/test_sqlite_file.py", "-k", "takes_nothing_more"),
    ),
    Ablation(
        "P1",
        "an insert without an answer is repeated with the same ids",
        "src/holdfast/client/enqueuer.py",
        "return unknown or self._clock.monotonic() - asked < self._config.wait_s",
        "return False",
        ("tests/faults", "-k", "insert or E3 or rule_8"),
    ),
    Ablation(
        "P2",
        "one settlement per lease: the live row goes with the ending",
        STORE + "settle.py",
        """        removed = tx.db.executemany(SQL["leave_active"], [row[2:] for row in rows]).rowcount""",
        """        removed = applied""",
        _contract("settle or fencing"),
    ),
    Ablation(
        "P2",
        "an insert of the same id makes no second job",
        STORE + "insert.py",
        """            if not _exists(tx, job.id):
                tx.db.execute(SQL["body"], row)
                fresh.append(job)""",
        """            if not _exists(tx, job.id):
                tx.db.execute(SQL["body"], row)
            fresh.append(job)""",
        _contract("insert"),
    ),
    Ablation(
        "P3",
        "a lost run is recorded with its cause",
        STORE + "settle.py",
        """    record_attempt(tx, lease, cause, ErrorInfo("", why))
    if poison""",
        """    if poison""",
        _contract("attempts or reap"),
    ),
    Ablation(
        "P3",
        "a retry is recorded with its error",
        STORE + "settle.py",
        "record_attempt(tx, lease, Cause.RETRY, error)",
        "pass",
        _contract("attempts or fencing"),
    ),
    Ablation(
        "P3",
        "a claim whose answer was lost is found and handed back",
        "src/holdfast/worker/session.py",
        "if token not in self._runs:",
        "if False:",
        ("tests/faults",),
    ),
    Ablation(
        "rule 10",
        "only leases are reaped that had run out when the clock was believed",
        "src/holdfast/upkeep/reaper.py",
        "reap_workers(limit=_BATCH, as_of=now)",
        "reap_workers(limit=_BATCH)",
        ("tests/faults/test_rules_clock_and_limits.py", "-k", "between_the_look_and_the_reaping"),
    ),
    Ablation(
        "P4",
        "the key is kept with the job",
        STORE + "insert.py",
        """            tx.db.execute(SQL["take_key"], row)""",
        """            del row""",
        _contract("keys"),
    ),
    Ablation(
        "P4",
        "the same key with another request is a conflict",
        "src/holdfast/stores/judging.py",
        "same = holder.fingerprint == job.key.fingerprint",
        "same = True",
        _contract("keys"),
    ),
    Ablation(
        "P4",
        "a key is scoped to its tenant",
        "src/holdfast/stores/judging.py",
        "scope = (job.tenant, job.key.key)",
        'scope = ("", job.key.key)',
        _contract("keys"),
    ),
    Ablation(
        "P5",
        "settlements are fenced by token",
        STORE + "sql/settle_jobs.sql",
        """-- name: lease
DELETE FROM active WHERE job_id = ? AND token = ? AND worker = ?""",
        """-- name: lease
DELETE FROM active WHERE job_id = ?1 AND ?2 IS NOT NULL AND worker = ?3""",
        _contract("fencing"),
    ),
    Ablation(
        "P5",
        "settlements are fenced by worker",
        STORE + "sql/settle_jobs.sql",
        """-- name: lease
DELETE FROM active WHERE job_id = ? AND token = ? AND worker = ?""",
        """-- name: lease
DELETE FROM active WHERE job_id = ?1 AND token = ?2 AND ?3 IS NOT NULL""",
        _contract("fencing"),
    ),
    Ablation(
        "P5",
        "progress is fenced",
        STORE + "sql/settle_jobs.sql",
        "WHERE job_id = :job AND token = :token AND worker = :worker",
        "WHERE job_id = :job AND :token IS NOT NULL AND :worker IS NOT NULL",
        _contract("fencing"),
    ),
    Ablation(
        "P5",
        "a claim needs a valid lease",
        STORE + "sql/claim_jobs.sql",
        "SELECT 1 FROM worker WHERE id = ? AND lease_until > ?",
        "SELECT 1 WHERE ?1 IS NOT NULL AND ?2 IS NOT NULL",
        _contract("claim"),
    ),
    Ablation(
        "P5",
        "a renewal never makes a worker anew",
        STORE + "sql/workers.sql",
        "UPDATE worker SET lease_until = ? WHERE id = ?",
        "INSERT INTO worker (lease_until, id, host, pid, concurrency, queues, started_at) "
        "VALUES (?1, ?2, '', 0, 0, '[]', 0.0) ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until",
        _contract("leases"),
    ),
    Ablation(
        "P5",
        "reaping removes the worker before its leases move",
        STORE + "sql/workers.sql",
        "DELETE FROM worker WHERE id IN (SELECT id FROM worker WHERE lease_until <= ? LIMIT ?) RETURNING id",
        "SELECT id FROM worker WHERE lease_until <= ? LIMIT ?",
        _contract("leases or reap or claim"),
    ),
    Ablation(
        "P5",
        "a worker that lost its lease writes no outcome and starts over",
        "src/holdfast/worker/heartbeat.py",
        """            except LeaseLost:
                return self._lose()""",
        """            except LeaseLost:
                continue""",
        ("tests/faults", "tests/integration", "-k", "lease or identity or zombie"),
    ),
    Ablation(
        "P8",
        "a queue closes at its high watermark",
        STORE + "insert.py",
        "refused, taking = _judge(tx, jobs, shut)",
        "refused, taking = _judge(tx, jobs, {})",
        _contract("watermarks"),
    ),
    Ablation(
        "P8",
        "it opens only at its low watermark",
        "src/holdfast/core/backpressure.py",
        "    return closed",
        "    return False",
        _contract("watermarks"),
    ),
    Ablation(
        "P8",
        "the outcomes that wait to be written are bounded",
        "src/holdfast/worker/settler.py",
        "if len(self._buffer) + self._in_flight >= self._bound:",
        "if False:",
        ("tests/unit/worker",),
    ),
    Ablation(
        "P9",
        "lanes share by weight, none is starved",
        "src/holdfast/core/fairness.py",
        "per_weight = (slots - sum(carried.values())) / sum(weights.values())",
        "weights = {lane: float(10**lane.priority) for lane in lanes}\n"
        "        per_weight = (slots - sum(carried.values())) / sum(weights.values())",
        ("tests/unit/core/test_fairness.py",),
    ),
    Ablation(
        "P9",
        "a lane believed empty is asked once a second",
        "src/holdfast/core/fairness.py",
        "return self.hinted or now_s - self.asked_at_s >= PROBE_EVERY_S",
        "return self.hinted",
        ("tests/unit/core/test_fairness.py",),
    ),
    Ablation(
        "rule 1",
        "jobs without a worker row are reaped",
        STORE + "workers.py",
        """    lost += tx.db.execute(SQL["leases_without_worker"], (limit,)).fetchall()""",
        "",
        ("tests/faults", "tests/contract", "-k", "without_a_worker or orphan or rule_1"),
    ),
    Ablation(
        "rule 4",
        "an arrival at a join counts once",
        STORE + "end.py",
        """arrivals[join_id] += tx.db.execute(SQL["arrive"], (join_id, job_id)).rowcount""",
        """arrivals[join_id] += 1""",
        _contract("joins"),
    ),
    Ablation(
        "rule 5",
        "a cancelled job that would run again is cancelled instead",
        STORE + "settle.py",
        "if lease.cancel_reason is None:",
        "if True:",
        _contract("cancel"),
    ),
    Ablation(
        "rule 9",
        "a refused row is found by halving its batch",
        "src/holdfast/runtime/batcher.py",
        "is_guilt_among_them = len(items) > 1 and self._is_data_error(exc)",
        "is_guilt_among_them = False",
        ("tests/unit/runtime/test_batcher.py",),
    ),
    Ablation(
        "rule 10",
        "nothing is reaped while the clocks disagree",
        "src/holdfast/upkeep/reaper.py",
        """        if not trusted:
            return rest_s""",
        "",
        ("tests/faults", "-k", "rule_10 or clock"),
    ),
    Ablation(
        "rule 11",
        "whatever stops a run frees its slot",
        STORE + "settle.py",
        """    free_slots(tx, [lease.job_id])
    tx.enter_ready(""",
        """    tx.enter_ready(""",
        _contract("limits"),
    ),
    Ablation(
        "rule 11",
        "a slot is taken in the claim's transaction",
        STORE + "claim.py",
        "    take(tx, passed, usage)\n",
        "",
        _contract("limits"),
    ),
    Ablation(
        "order",
        "a handed-back job gets its old place back",
        STORE + "settle.py",
        "(lease.queue, lease.priority, lease.tag, lease.seq, *_again(lease, lease.attempt - 1))",
        '(lease.queue, lease.priority, lease.tag, tx.take_numbers("seq", 1), *_again(lease, lease.attempt - 1))',
        _contract("order"),
    ),
    Ablation(
        "limits",
        "a soft limit reaches the children of a TaskGroup",
        "src/holdfast/worker/soft_limit.py",
        "class SoftTimeoutCancel(SoftTimeout, asyncio.CancelledError):",
        "class SoftTimeoutCancel(SoftTimeout):",
        ("tests/integration", "-k", "soft"),
    ),
    Ablation(
        "poison",
        "a job that keeps killing its process ends as poison",
        "src/holdfast/core/loss.py",
        "    after = Losses(before.losses + 1, before.crashes + (1 if was_alone else 0))",
        "    after = Losses(before.losses + 1, before.crashes)",
        _contract("reap"),
    ),
    Ablation(
        "poison",
        "a task that keeps killing its own process ends as poison",
        "src/holdfast/core/loss.py",
        "    after = Losses(before.losses, before.crashes + 1)",
        "    after = before",
        _contract("reap"),
    ),
    Ablation(
        "isolate",
        "an isolate dies with its worker, whatever it does",
        "src/holdfast/runtime/processes.py",
        "        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)",
        "        pass",
        ("tests/unit/runtime/test_processes.py", "tests/isolation/test_programs.py", "-k", "die"),
    ),
    Ablation(
        "isolate",
        "an isolate ends when its worker hangs up",
        "src/holdfast/worker/isolation/process.py",
        "        os._exit(0)  # nobody is left to whom anything of this matters",
        "",
        ("tests/isolation/test_starting.py", "-k", "hangs_up"),
    ),
    Ablation(
        "isolate",
        "an isolate that does not end at the hard limit of its run is killed",
        "src/holdfast/worker/isolation/running.py",
        "            thread.start()",
        "            pass",
        ("tests/isolation/test_kills.py", "-k", "hard_limit and (backtrack or spin)"),
    ),
    Ablation(
        "isolate",
        "the hard limit of an isolated run does not wait for the event loop of its worker",
        "src/holdfast/worker/isolation/running.py",
        "        timer = thread = threading.Timer(limit_s + self._kill_after_s, kill_overdue)",
        "        loop = asyncio.get_running_loop()\n"
        "        after_s, call = limit_s + self._kill_after_s, loop.call_soon_threadsafe\n"
        "        timer = thread = threading.Timer(after_s, call, [kill_overdue])",
        ("tests/isolation/test_kills.py", "-k", "blocks_the_event_loop"),
    ),
    Ablation(
        "isolate",
        "a process that dies before it begins with a job is not held against the job",
        "src/holdfast/worker/isolation/running.py",
        "            case Died(why=why, began=False):",
        "            case Died(why=why, began=False) if not why:",
        ("tests/isolation/test_crashes.py", "-k", "before_it_begins"),
    ),
    Ablation(
        "isolate",
        "a run whose job belongs to another by now is killed at once",
        "src/holdfast/worker/isolation/running.py",
        "                            isolate.kill()  # others may be running it by now",
        "                            pass",
        ("tests/isolation/test_kills.py", "-k", "declared_dead"),
    ),
    Ablation(
        "poison",
        "what must run alone is claimed by itself",
        STORE + "sql/claim_jobs.sql",
        "WHERE r.queue = ? AND r.priority = ? AND r.losses < 2",
        "WHERE r.queue = ? AND r.priority = ?",
        _contract("reap"),
    ),
    Ablation(
        "P8",
        "of those who wait for a full queue only the first looks",
        "src/holdfast/client/waiting_line.py",
        "line = self._lines.setdefault(queue, WaitingLine(self._clock))",
        "line = WaitingLine(self._clock)",
        ("tests/attacks/test_full_queue.py", "tests/unit/client/test_waiting_line.py"),
    ),
    Ablation(
        "P9",
        "rumours get half of the slots at most while there is known work",
        "src/holdfast/core/fairness.py",
        "return capacity // 2 or self._turn",
        "return capacity",
        ("tests/unit/core/test_fairness.py", "tests/attacks/test_rumours.py"),
    ),
    Ablation(
        "P5",
        "what was given back is not started when its thread comes free",
        "src/holdfast/worker/executor.py",
        """            if run.interruption is not None:
                raise _NotStarted""",
        "",
        ("tests/attacks/test_waiting_for_a_thread.py", "tests/unit/worker"),
    ),
    Ablation(
        "P10",
        "a heartbeat goes on when one renewal fails",
        "src/holdfast/worker/heartbeat.py",
        "            except Exception:  # whatever is wrong with it: time decides",
        "            except TimeoutError:",
        ("tests/attacks/test_settling.py", "tests/faults/test_lost_answers.py", "tests/faults/test_store_away.py"),
    ),
    Ablation(
        "leader",
        "a lead is trusted for one lease and no longer",
        "src/holdfast/upkeep/leader.py",
        "return self._clock.monotonic() < self._trusted_until_s",
        "return self._trusted_until_s > 0",
        ("tests/integration/test_leader.py",),
    ),
    Ablation(
        "leader",
        "trust in a lead counts from before the request",
        "src/holdfast/upkeep/leader.py",
        "self._trusted_until_s = asked_s + self._lease_s",
        "self._trusted_until_s = self._clock.monotonic() + self._lease_s",
        ("tests/integration/test_leader.py",),
    ),
    Ablation(
        "P6",
        "a success inside a transaction is fenced by token and worker",
        POSTGRES + "sql/finish.sql",
        """    DELETE FROM holdfast.active WHERE job_id = $1 AND token = $2 AND worker = $3
""",
        """    DELETE FROM holdfast.active WHERE job_id = $1 AND $2::int8 > 0 AND $3::uuid IS NOT NULL
""",
        ("tests/transactions/test_finish_inside.py", "-k", "lost_its_job"),
    ),
    Ablation(
        "P6",
        "a commit without an answer is looked up",
        POSTGRES + "finish.py",
        "await self._find_out(*run, lease_lost=lease_lost)",
        "raise",
        ("tests/transactions/test_finish_crashes.py", "-k", "without_an_answer"),
    ),
    Ablation(
        "P6",
        "a commit under way is not interrupted",
        "src/holdfast/worker/finishing.py",
        "await asyncio.shield(task)",
        "await task",
        ("tests/transactions/test_finish_inside.py", "-k", "under_way"),
    ),
    Ablation(
        "P6",
        "an error of ours leaves the user's transaction as it was",
        POSTGRES + "guests.py",
        """            await guest.execute("ROLLBACK TO SAVEPOINT holdfast")
""",
        "",
        ("tests/transactions/test_enqueue_inside.py", "-k", "key and asyncpg"),
    ),
    Ablation(
        "P6",
        "the wait for a key inside a user's transaction is bounded",
        POSTGRES + "migrations/0002_insert_jobs.sql",
        "SET lock_timeout = '500ms'",
        "",
        ("tests/transactions/test_enqueue_inside.py", "-k", "another_open_transaction and asyncpg"),
    ),
    Ablation(
        "P6",
        "a queue is made known outside of the user's transaction",
        POSTGRES + "visits.py",
        "await self._gates.meet(jobs)",
        "",
        ("tests/transactions", "-k", "all_sorts or blocks_nobody"),
    ),
    Ablation(
        "rule 7",
        "in a user's transaction nothing is written that others wait for",
        POSTGRES + "visits.py",
        """        [(now_us, *here)] = await guest.fetch(sql["visits.arrive"])
""",
        """        [(now_us, *here)] = await guest.fetch(sql["visits.arrive"])
        await guest.fetch(sql["queues.set_gates"], ["default"], [False])
""",
        ("tests/transactions/test_others_go_on.py", "-k", "blocks_nobody"),
    ),
    Ablation(
        "P6",
        "workers are told of a job once its transaction has committed",
        POSTGRES + "outbox.py",
        "        self._tell(hints)",
        "        return",
        ("tests/transactions/test_enqueue_inside.py", "-k", "workers_everywhere and asyncpg"),
    ),
)

ABLATIONS = (
    *SQLITE_AND_SHARED,
    *ON_POSTGRES,
    *WHILE_WAITING,
    *IN_THREADS,
    *UNDER_A_SUPERVISOR,
    *IN_THE_SIMULATION,
    *OF_LINES,
    *OF_TURNS,
    *OF_TENANTS,
    *ON_REDIS,
)
