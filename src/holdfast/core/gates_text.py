"""The gates of a job as the text that stores keep with its body, and back."""

from __future__ import annotations

import contextlib
import json
from functools import lru_cache
from typing import Any, Final, assert_never

from holdfast.core.breaker import BreakerGate
from holdfast.core.gates import Gate, RateGate, SlotGate, WhenFull
from holdfast.core.rate import Pace

UNREADABLE: Final = SlotGate("unreadable", 0, "unreadable")
"""In place of gates that make no sense, as after a slip by hand: such a job waits, visibly, and holds up nobody else.
An operator may let it run all the same, by a size for this limit."""

_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode
_POLICIES: Final = {policy.value: policy for policy in WhenFull}


def gates_text(gates: tuple[Gate, ...]) -> str | None:
    """A JSON array of arrays, each beginning with the kind of the gate; None where there are none."""
    return _encode([_listed(gate) for gate in gates]) if gates else None


def limit_in_text(key: str) -> str:
    """What stands in the text of all who have to pass this limit, and of nobody else: within users' words, it would
    be quoted."""
    return f"{_encode(['limit', key])[:-1]},"


@lru_cache(1000)
def read_gates(text: str | None) -> tuple[Gate, ...]:
    """What `gates_text` made. The text is ours alone: users' words in it are keys and names."""
    if not text:
        return ()
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        entries, end = _decode(text)
        if isinstance(entries, list) and end == len(text):
            return tuple([_gate(*entry) for entry in entries])
    return (UNREADABLE,)


def _listed(gate: Gate) -> list[Any]:
    match gate:
        case SlotGate():
            return ["limit", *gate]
        case RateGate(key, pace, name):
            return ["rate", key, *pace, name]
        case BreakerGate():
            return ["breaker", *gate]
        case _:
            assert_never(gate)


def _gate(kind: str, *values: Any) -> Gate:
    """Once for every job with a limit: no more is done than has to be."""
    if kind == "limit":
        key, size, name, when_full = values
        if type(key) is str and type(size) is int and type(name) is str and when_full in _POLICIES:
            return SlotGate(key, size, name, _POLICIES[when_full])
    match kind, values:
        case "rate", [str(key), int() | float() as count, int() | float() as per_s, int(burst), str(name)] if count > 0:
            return RateGate(key, Pace(count, per_s, burst), name)
        case "breaker", [str(name), int(failures), int() | float() as window_s, int() | float() as open_for_s]:
            return BreakerGate(name, failures, window_s, open_for_s)
        case _:
            raise ValueError(f"{kind!r} {values!r} is no gate")
