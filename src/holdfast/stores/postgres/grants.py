"""What each kind of process may do, as SQL for whoever gives rights in a database: no more than its duty needs.

Duties:
- `dashboard` reads, and changes nothing.
- `api` reads, enqueues and cancels, and notes who did so and when keys are used.
- `operator` does what `api` does, and what a person decides: dead letters, settings of queues, keys of the API.
- `worker` claims, settles and keeps the cluster in order; also enqueues and cancels. Dead letters it only adds.
- `migrator` makes the tables, and owns them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.core.errors import InvalidOptions
from holdfast.core.outcome import storable
from holdfast.core.shown import shown
from holdfast.core.urls import check_schema

_WAITING = ("ready", "timer", "parked", "blocked")
_ATTACHED = ("expiry", "slot", "member", "arrival")

#: Privileges by table, beside the right to read, which all but the migrator have.
_ENQUEUE: dict[str, str] = {
    "job": "INSERT",
    "tagged": "INSERT",
    "idempotency_key": "INSERT, UPDATE",
    "depth": "INSERT, UPDATE",
    "depth_change": "INSERT, UPDATE, DELETE",
    "tenant_tag": "INSERT, UPDATE",
    "tenant_note": "INSERT",
    "unique_key": "INSERT, UPDATE",
    "gate": "INSERT, UPDATE, DELETE",
    "turn": "INSERT, UPDATE, DELETE",
    "active": "UPDATE",
    "done": "INSERT",
    **dict.fromkeys((*_WAITING, *_ATTACHED), "INSERT, UPDATE, DELETE"),
}
_SERVE: dict[str, str] = _ENQUEUE | {
    "setting_change": "INSERT",
    "api_key": "UPDATE (used_at, failed_at)",
}
_DECIDE: dict[str, str] = _SERVE | {
    "job": "INSERT, UPDATE, DELETE",
    "tagged": "INSERT, DELETE",
    "dead": "UPDATE, DELETE",
    "attempt": "UPDATE, DELETE",
    "progress": "DELETE",
    "unique_key": "INSERT, UPDATE, DELETE",
    "queue_setting": "INSERT, UPDATE",
    "tenant_setting": "INSERT, UPDATE, DELETE",
    "rule": "INSERT, UPDATE, DELETE",
    "breaker_setting": "INSERT, UPDATE, DELETE",
    "route": "INSERT, UPDATE, DELETE",
    "breaker": "INSERT, UPDATE, DELETE",
    "api_key": "INSERT, UPDATE",
}
_WORK: dict[str, str] = _ENQUEUE | {
    "job": "INSERT, DELETE",
    "tagged": "INSERT, DELETE",
    "idempotency_key": "INSERT, UPDATE, DELETE",
    "active": "INSERT, UPDATE, DELETE",
    "worker": "INSERT, UPDATE, DELETE",
    "done": "INSERT, UPDATE, DELETE",
    "dead": "INSERT",
    "attempt": "INSERT, DELETE",
    "progress": "INSERT, UPDATE, DELETE",
    "leader": "INSERT, UPDATE, DELETE",
    "tenant_tag": "INSERT, UPDATE, DELETE",
    "tenant_note": "INSERT, UPDATE, DELETE",
    "lane_reached": "INSERT, UPDATE",
    "unique_key": "INSERT, UPDATE, DELETE",
    "breaker": "INSERT, UPDATE, DELETE",
}
_TABLES: Mapping[str, Mapping[str, str]] = {
    "dashboard": {},
    "api": _SERVE,
    "operator": _DECIDE,
    "worker": _WORK,
}
_FAIR = ("cost_of", "next_tag", "last_waiting", "give_tags", "guess_tags", "insert_fair_jobs")
_ENQUEUING = (
    "clock",
    "parked_since",
    "insert_jobs",
    "insert_new_jobs",
    "insert_gated_jobs",
    "take_keys",
    "take_seen_unique",
    "line_tag",
    *_FAIR,
)
#: Whoever ends a job may free what others wait for.
_SERVING = (
    *_ENQUEUING,
    "hold_gates",
    "look_after",
    "lanes_at",
    "comes_last",
    "is_lined",
    "said",
    "is_alone",
    "take_slots",
    "give_slots",
    "keep_out",
)
_FUNCTIONS = {
    "dashboard": ("clock",),
    "api": _SERVING,
    "operator": _SERVING,
    "worker": (
        *_SERVING,
        "timeline",
        *("claim_jobs", "claim_entries", "claim_limited", "claim_limited_jobs", "lease_limited", "pick_jobs"),
        *("claim_picked", "claim_judged", "free_slots"),
        *("settle_jobs", "settle_runs", "settle_attached", "settle_successes", "settle_outcomes"),
    ),
}
_SEQUENCES = {"dashboard": (), "api": ("place",), "operator": ("place",), "worker": ("place", "run")}
DUTIES = (*_TABLES, "migrator")


#: Around a block of code: not `$$`, which a role's name may hold.
_QUOTE = "$holdfast$"


def grants(schema: str, roles: Sequence[tuple[str, str]]) -> str:
    """The statements that give each role its rights, by duty; run by the owner of the tables, after every migration.

    A role keeps what it was given before, so one that is to do less now has to be revoked what it no longer needs.
    """
    check_schema(schema)
    return "\n".join(line for duty, role in roles for line in _lines(schema, duty, _quoted(role))) + "\n"


def _lines(schema: str, duty: str, role: str) -> list[str]:
    if duty not in DUTIES:
        raise InvalidOptions(f"there is no duty {shown(duty)}; there are {', '.join(DUTIES)}")
    if duty == "migrator":
        give = f"EXECUTE format('GRANT CREATE ON DATABASE %I TO %I', current_database(), {_literal(role)})"
        return [f"-- {duty}", f"DO {_QUOTE} BEGIN {give}; END {_QUOTE};"]
    return [
        f"-- {duty}",
        f"GRANT USAGE ON SCHEMA {schema} TO {role};",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};",
        *(f"GRANT {what} ON {schema}.{table} TO {role};" for table, what in _TABLES[duty].items()),
        *(f"GRANT USAGE ON SEQUENCE {schema}.{name} TO {role};" for name in _SEQUENCES[duty]),
        *(f"GRANT EXECUTE ON FUNCTION {schema}.{name} TO {role};" for name in _FUNCTIONS[duty]),
    ]


def _quoted(role: str) -> str:
    if not role or _QUOTE in role or storable(role, len(role)) != role:
        raise InvalidOptions(f"{shown(role)} is not the name of a role")
    escaped = role.replace('"', '""')
    return f'"{escaped}"'


def _literal(quoted: str) -> str:
    name = quoted[1:-1].replace('""', '"').replace("'", "''")
    return f"'{name}'"
