"""The verbs that write, and the three moments of each at which a test can strike; the same in every store."""

from __future__ import annotations

from typing import Final

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.failpoints import FailpointHit, declare

VERBS: Final = (
    "insert_jobs",
    "claim_jobs",
    "settle_jobs",
    "register_worker",
    "renew_worker",
    "record_progress",
    "hand_back_worker",
    "unpark_jobs",
    "cancel_jobs",
    "promote_jobs",
    "expire_jobs",
    "reap_workers",
    "prune_jobs",
    "sweep",
    "lead",
    "resign",
    "replay_jobs",
    "edit_dead",
    "purge_dead",
    "set_queue",
    "purge_queue",
    "serve_gates",
    "set_limit",
    "set_paused",
    "set_breaker",
    "set_breaker_figures",
    "set_tenant_weight",
    "set_route",
    "move_jobs",
    "add_api_key",
    "rotate_api_key",
    "revoke_api_key",
    "note_key_uses",
    "record_act",
)
for _verb in VERBS:
    declare(f"{_verb}.begin", f"{_verb}: asked for, nothing has happened")
    declare(f"{_verb}.inside", f"{_verb}: executed, not committed")
    declare(f"{_verb}.committed", f"{_verb}: committed, the answer is not out")

# A run's own transaction, where a store has it.
FINISH_BEGIN = declare("finish.begin", "finish: the effect is there, the success is not, nothing is committed")
FINISH_INSIDE = declare("finish.inside", "finish: effect and success are there, nothing is committed")
FINISH_COMMITTED = declare("finish.committed", "finish: committed, the answer is not out")

# One step of a migration.
MIGRATE_BEGIN = declare("migrate.begin", "migrate: a step is next, nothing of it has happened")
MIGRATE_INSIDE = declare("migrate.inside", "migrate: a step is executed, not committed")
MIGRATE_COMMITTED = declare("migrate.committed", "migrate: a step is committed, others may follow")


def struck(hit: FailpointHit) -> StoreUnavailable:
    """What a caller hears when a test has struck before the commit."""
    return StoreUnavailable(f"struck by a failpoint: {hit}")


def answer_lost(hit: BaseException) -> StoreUnavailable:
    """What a caller hears when a test has struck after the commit."""
    return StoreUnavailable(f"the answer was lost: {hit}", unknown=True)
