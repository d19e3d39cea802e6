"""The gates of a job as the text that stores keep with its body, and back."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, assert_never

from holdfast.core.breaker import BreakerGate
from holdfast.core.gates import Gate, RateGate, SlotGate, WhenFull
from holdfast.core.rate import Pace

_encode = json.JSONEncoder(separators=(",", ":")).encode


def gates_text(gates: tuple[Gate, ...]) -> str | None:
    """A JSON array of arrays, each beginning with the kind of the gate; None where there are none."""
    return _encode([_listed(gate) for gate in gates]) if gates else None


@lru_cache(1000)
def read_gates(text: str | None) -> tuple[Gate, ...]:
    """What `gates_text` made. The text is ours alone: users' words in it are keys and names."""
    return tuple(_gate(*entry) for entry in json.loads(text)) if text else ()


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
    match kind:
        case "limit":
            key, size, name, when_full = values
            return SlotGate(key, size, name, WhenFull(when_full))
        case "rate":
            key, count, per_s, burst, name = values
            return RateGate(key, Pace(count, per_s, burst), name)
        case "breaker":
            return BreakerGate(*values)
        case _:
            raise ValueError(f"{kind!r} is no kind of gate")
