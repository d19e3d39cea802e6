"""The safeguards whose absence some seed of the simulation shows: what it takes is a rare order of events."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

SEEDS = ("tests/simulation/test_simulation.py", "-k", "in_these_seeds")
MIXED = ("tests/simulation/test_mixed_fleet.py",)
LONELY = ("tests/simulation/test_alone.py",)
FADING = ("tests/simulation/test_simulation.py", "-k", "again_and_again and fade")

IN_THE_SIMULATION = (
    Ablation(
        "P1",
        "an insert whose only answer is missing when time is up is unknown, not refused",
        "src/holdfast/client/enqueuer.py",
        "if not (unknown or error.unknown) or",
        "if not unknown or",
        SEEDS,
    ),
    Ablation(
        "P5",
        "a lease is trusted from before the request that renewed it",
        "src/holdfast/worker/heartbeat.py",
        "            self._trusted_until_s = asked_s + self._lease_s",
        "            self._trusted_until_s = self._clock.monotonic() + self._lease_s",
        FADING,
    ),
    Ablation(
        "P5",
        "whoever loses the lease stops its runs before anything else",
        "src/holdfast/worker/session.py",
        """        self.hurry(Interruption.LEASE_LOST)
        await self._fetcher.stop()""",
        """        await self._fetcher.stop()""",
        FADING,
    ),
    Ablation(
        "P5",
        "a lease that could not be renewed in time is given up by the clock alone",
        "src/holdfast/worker/heartbeat.py",
        """            if left_s <= 0:
                return self._lose()""",
        """            if left_s <= 0:
                left_s = 0.1""",
        FADING,
    ),
    Ablation(
        "P3",
        "a worker's last outcomes are written before it signs off",
        "src/holdfast/worker/session.py",
        "        await self._settler.close()",
        "        pass",
        SEEDS,
    ),
    Ablation(
        "P10",
        "work is looked for also when no hint came",
        "src/holdfast/worker/fetcher.py",
        "await self.pause(self._poll_s)",
        "await self.pause(3600.0)",
        SEEDS,
    ),
    Ablation(
        "P10",
        "a store that is out of reach ends no upkeep",
        "src/holdfast/upkeep/periodic.py",
        "except StoreUnavailable as error:",
        "except ZeroDivisionError as error:",
        SEEDS,
    ),
    Ablation(
        "P10",
        "a store that is out of reach ends no look for cancellations",
        "src/holdfast/worker/cancels.py",
        "except StoreError:",
        "except ZeroDivisionError:",
        SEEDS,
    ),
    Ablation(
        "P10",
        "a store that is out of reach ends nobody's wait for a result",
        "src/holdfast/client/endings.py",
        "except StoreError:",
        "except ZeroDivisionError:",
        SEEDS,
    ),
    Ablation(
        "P2",
        "what was parked as unknown is lifted by whoever knows it",
        "src/holdfast/upkeep/unparker.py",
        "await self.store.unpark_jobs(reason=UNKNOWN_TASK, keys=self._registry.names())",
        "0",
        ("tests/attacks/test_deploys_and_clocks.py", "-k", "unparked_by_who_knows_it"),
    ),
    Ablation(
        "P2",
        "what was parked as unknown is handed to who knows it, not to whoever is quicker",
        "src/holdfast/worker/fetcher.py",
        "more = await self._fetch_parked()",
        "more = False",
        (*MIXED, "tests/attacks/test_deploys_and_clocks.py"),
    ),
    Ablation(
        "P10",
        "what is parked again and again is unparked less and less often",
        "src/holdfast/upkeep/unparker.py",
        "min(2 * self._rest_s, _AT_LEAST_EVERY_S) if unparked else _EVERY_S",
        "_EVERY_S",
        MIXED,
    ),
    Ablation(
        "poison",
        "what must run alone is not handed over beside others",
        "src/holdfast/stores/sqlite/sql/claim_jobs.sql",
        "WHERE p.losses < 2",
        "",
        ("tests/contract/test_sqlite.py", "-k", "parking"),
    ),
    Ablation(
        "poison",
        "PostgreSQL: what must run alone is not handed over beside others",
        "src/holdfast/stores/postgres/sql/claim_jobs.sql",
        "AND p.key = asked.key AND p.losses < 2",
        "AND p.key = asked.key",
        ("tests/contract/test_postgres.py", "-k", "parking"),
    ),
    Ablation(
        "P10",
        "where nothing else is to be done, jobs that must run alone follow one another",
        "src/holdfast/worker/fetcher.py",
        "self._alone_at_once = self._only_alone and not more",
        "self._alone_at_once = False",
        LONELY,
    ),
    Ablation(
        "P9",
        "a job that ran alone is followed by as much time for ordinary work, if there is any",
        "src/holdfast/worker/fetcher.py",
        "self._only_alone = self._only_alone and not claim.jobs",
        "pass",
        LONELY,
    ),
)
