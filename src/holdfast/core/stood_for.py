"""What an exception stands for that only wraps another one: the one inside is what has happened. Nothing is imported.

These say so by themselves; `__cause__` of others may be anything, and is not looked at.
"""

from __future__ import annotations

from typing import Final

from holdfast.core.exception_names import lineage, qualified

#: Class -> the attribute that holds the other exception, where there is one.
_INSIDE: Final = {
    "urllib.error.URLError": "reason",
    "urllib3.exceptions.MaxRetryError": "reason",
    "sqlalchemy.exc.DBAPIError": "orig",
    "django.db.utils.Error": "__cause__",
}
_DEEPEST: Final = 5


def stood_for(exc: BaseException) -> list[BaseException]:
    """The exception itself, and what is inside it, the outermost first."""
    found = [exc]
    while len(found) < _DEEPEST and (inside := _inside(found[-1])) is not None:
        found.append(inside)
    return found


def names_of(exc: BaseException) -> list[str]:
    """By which it may be called: its own, those of its bases, then those of what it stands for."""
    return [name for each in stood_for(exc) for name in lineage(type(each))]


def _inside(exc: BaseException) -> BaseException | None:
    try:
        for base in type(exc).__mro__:
            if attribute := _INSIDE.get(qualified(base)):
                inside = getattr(exc, attribute, None)
                return inside if isinstance(inside, BaseException) else None
    except BaseException:  # others' code: it may do anything, even exit or cancel, and then tells nothing
        return None
    return None
