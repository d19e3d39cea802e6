"""A job's claim of a unique key as the text that stores keep with its body, and back: for its replay."""

from __future__ import annotations

import contextlib
import json
from typing import Final

from holdfast.core.state import LIVE, State
from holdfast.core.unique import Rekeyed, UniqueClaim

_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


def unique_text(claim: UniqueClaim | None) -> str | None:
    """A JSON array: the key, and where they are not the usual ones, for how long it is held and in which states."""
    if claim is None:
        return None
    if claim.for_s is None and claim.states == LIVE:
        return _encode([claim.key])
    return _encode([claim.key, claim.for_s, sorted(claim.states)])


def rekeyed_text(text: str | None, rekeyed: Rekeyed | None) -> str | None:
    """The claim with the other key; None where it is not one of the key of before."""
    claim = read_unique(text)
    if claim is None or rekeyed is None or claim.key != rekeyed.before or rekeyed.after == rekeyed.before:
        return None
    return unique_text(claim._replace(key=rekeyed.after))


def read_unique(text: str | None) -> UniqueClaim | None:
    """What `unique_text` made, as far as it matters for a replay; None for what makes no sense, as after a slip by
    hand."""
    if text is None:
        return None
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        key, for_s, states = (*json.loads(text), None, None)[:3]
        if isinstance(key, str) and (for_s is None or type(for_s) in (int, float)):
            return UniqueClaim(key, LIVE if states is None else frozenset(map(State, states)), for_s)
    return None
