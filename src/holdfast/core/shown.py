"""How values are shown in sentences: one that was refused, shortly and whatever it is; and how many of something."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def shown(value: object, limit: int = 80) -> str:
    """Its `repr`, cut. Never an error: an integer of 5,000 digits has none, and that of a user's class may raise."""
    try:
        return repr(value)[:limit]
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
