"""How soon after its worker's death a job ran again, from the histories: figures for the report, no judgement."""

from __future__ import annotations

from collections import defaultdict

from tests.history.joined import Joined

from holdfast.core.cause import Cause

_LOST = (Cause.WORKER_LOST, Cause.LEASE_EXPIRED)


class Recovering:
    """Fed with jobs part by part; asked at the end, with the times of the kills."""

    def __init__(self) -> None:
        self._again: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def saw(self, joined: Joined) -> None:
        """Note, per lost worker, when each of its jobs began to run again."""
        starts: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for (job_id, token), lines in joined.starts.items():
            starts[job_id].append((token, lines[0].at))
        for job_id, record in joined.store.jobs.items():
            for row in record.attempts:
                if row.cause in _LOST and row.worker:
                    later = [at for token, at in starts[job_id] if token > row.token]
                    if later:
                        self._again[row.worker][job_id] = min(later)

    def first_s(self, killed: dict[str, float]) -> dict[str, float]:
        """Per worker that was killed at a time: seconds until the first of its jobs ran again, if it had any."""
        return {
            worker: min(self._again[worker].values()) - at for worker, at in killed.items() if self._again.get(worker)
        }
