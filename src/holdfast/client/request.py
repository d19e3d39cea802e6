"""One call on its way into the store: task, arguments and options, turned into a `NewJob`."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from holdfast.client.arguments import Signature, encode_call, encode_json
from holdfast.client.gating import Flow
from holdfast.client.placing import NO_PATTERNS, Patterns, Placement, Routing
from holdfast.config import Config
from holdfast.core.gates import Gate
from holdfast.core.ids import new_job_id
from holdfast.core.job import KeyClaim, NewJob
from holdfast.core.once_options import Debounce, Once
from holdfast.core.options import NO_OPTIONS, CallOptions, TaskOptions, check_debounce, check_limits
from holdfast.core.retry import RetryPolicy
from holdfast.core.trace import headers_of
from holdfast.core.unique import UniqueClaim
from holdfast.core.unset import UNSET, given

_METADATA_LIMIT = 16_384
_OPTIONS_LIMIT = 65_536


class Request(NamedTuple):
    """A call that has not been enqueued; made by `task.request(…)`, taken by `hf.enqueue_many`."""

    task: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    options: CallOptions = NO_OPTIONS
    signature: Signature | None = None
    """None: known by name only, so its arguments are not checked here."""


def build_job(
    request: Request, config: Config, routing: Routing | None = None, operators: Patterns = NO_PATTERNS
) -> NewJob:
    """Check, encode and say where it goes; nothing has been stored when this raises. Operators' patterns go by way of
    the routing: with them there has to be one."""
    task, args, kwargs, options, signature = request
    if signature is not None:
        defaults = signature.task.options
        payload = signature.encode(args, kwargs, limit=config.payload_limit)
    else:
        defaults = _UNKNOWN_TASK
        payload = encode_call(task, args, kwargs, limit=config.payload_limit)
    is_placed = routing is not None or defaults.tenant != ""
    if options is NO_OPTIONS and not is_placed and not defaults.flows:  # the ordinary call
        max_attempts = None if signature is None else defaults.retry.max_attempts
        # By place, as everybody passes here: by name it takes twice as long.
        return NewJob(new_job_id(), task, defaults.queue, defaults.priority, payload, "", None, max_attempts)
    if is_placed:
        (queue, _), (priority, _), (tenant, _) = (routing or _NO_ROUTING).place(request, defaults, operators)
    else:
        queue, priority = given(options.queue, defaults.queue), given(options.priority, defaults.priority)
        tenant = given(options.tenant, "")
    gates: tuple[Gate, ...] = ()
    unique: UniqueClaim | None = None
    delay_s = options.delay_s
    once = once_of_call(request)
    if defaults.flows or once is not None:
        check_debounce(once, options)
        flow = Flow(request)
        gates = flow.gates(defaults)
        unique = None if once is None else flow.claim(once, tenant)
        delay_s = once.wait_s if isinstance(once, Debounce) else delay_s
    return NewJob(
        new_job_id(),
        task,
        queue,
        priority,
        payload,
        tenant=tenant,
        options=_overrides(options, defaults),
        max_attempts=_max_attempts(request, defaults),
        tags=options.tags,
        metadata=None
        if options.metadata is None
        else encode_json("metadata", dict(options.metadata), limit=_METADATA_LIMIT),
        headers=None if options.metadata is None else headers_of(options.metadata),
        delay_s=delay_s,
        run_at=options.run_at,
        expires_in_s=options.expires_in_s,
        expires_at=options.expires_at,
        key=None
        if options.key is None
        else KeyClaim(options.key, _fingerprint(request, payload), given(options.key_window_s, config.key_window_s)),
        gates=gates,
        unique=unique,
    )


def once_of_call(request: Request) -> Once | None:
    """What makes it one too many: as the call says or, where it says nothing, its task."""
    defaults = _UNKNOWN_TASK if request.signature is None else request.signature.task.options
    return given(request.options.once, defaults.once)


def placement_of(request: Request, config: Config, routing: Routing, operators: Patterns = NO_PATTERNS) -> Placement:
    """Where the job of a call would go, and why; checked as an enqueue is."""
    build_job(request, config, routing, operators)
    task = _UNKNOWN_TASK if request.signature is None else request.signature.task.options
    return routing.place(request, task, operators)


_UNKNOWN_TASK = TaskOptions()
_NO_ROUTING = Routing(())


def _fingerprint(request: Request, payload: bytes) -> bytes:
    """The same call has the same fingerprint, whether its arguments were given by position or by name."""
    call = payload if request.signature is None else request.signature.canonical(request.args, request.kwargs)
    return hashlib.sha256(request.task.encode() + b"\x00" + call).digest()


def _max_attempts(request: Request, defaults: TaskOptions) -> int | None:
    if isinstance(request.options.retry, RetryPolicy):
        return request.options.retry.max_attempts
    return None if request.signature is None else defaults.retry.max_attempts


def _overrides(options: CallOptions, defaults: TaskOptions) -> bytes | None:
    """What this call changes for its run; None when it leaves all to the task."""
    soft_s = given(options.soft_timeout_s, defaults.soft_timeout_s)
    hard_s = given(options.timeout_s, defaults.timeout_s)
    check_limits(soft_s, hard_s)
    changed: dict[str, Any] = {}
    if options.timeout_s is not UNSET:
        changed["timeout"] = hard_s
    if options.soft_timeout_s is not UNSET:
        changed["soft_timeout"] = soft_s
    if isinstance(options.retry, RetryPolicy):
        changed["retry"] = options.retry.to_data()
    return encode_json("options", changed, limit=_OPTIONS_LIMIT) if changed else None
