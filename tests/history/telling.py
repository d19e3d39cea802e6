"""The life of one job as a person reads it: what was asked, done and said, in order of time."""

from __future__ import annotations

import time

from tests.history.joined import Joined
from tests.history.records import AuditOp


def tell(joined: Joined, job_id: str) -> str:
    """One line per event; seconds since the first one. Clients and runs use another clock than the store."""
    ahead_s = time.time() - time.monotonic()
    told: list[tuple[float, str]] = []
    for call in joined.calls.get(job_id, ()):
        more = "".join(f", {name} {value}" for name, value in (("key", call.key), ("told", call.told)) if value)
        told.append((call.at + ahead_s, f"client  {call.op}: {call.answer}{more}"))
    for lines in (joined.starts, joined.ends):
        for (job, token), events in lines.items():
            for event in events if job == job_id else ():
                outcome = f" {event.outcome}" if event.outcome else ""
                who = f"attempt {event.attempt}, process {event.pid}, worker {event.worker}"
                told.append((event.at + ahead_s, f"run     {event.event}{outcome}: token {token}, {who}"))
    for row in joined.store.audit or ():
        if row.job_id == job_id:
            verb = {AuditOp.INSERT: "into", AuditOp.DELETE: "out of", AuditOp.FOUND: "found in"}[row.op]
            lease = f", token {row.token}, worker {row.worker}" if row.token is not None else ""
            told.append((row.at, f"store   {verb} {row.state or 'job'}{lease} (row {row.n})"))
    record = joined.store.jobs.get(job_id)
    told += [
        (run.ended_at, f"store   attempt {run.number}: token {run.token}, {run.cause}, {run.worker}")
        for run in (record.attempts if record else ())
    ]
    told.sort()
    began = told[0][0] if told else 0.0
    now = ", ".join(str(place) for place in record.places) if record else "it is not in the store"
    return "\n".join([f"job {job_id}", *(f"{at - began:10.3f} s  {what}" for at, what in told), f"now: {now}"])
