"""How a value that was refused is shown in the sentence that refuses it: shortly, and whatever it is."""

from __future__ import annotations


def shown(value: object, limit: int = 80) -> str:
    """Its `repr`, cut. Never an error: an integer of 5,000 digits has none, and that of a user's class may raise."""
    try:
        return repr(value)[:limit]
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
