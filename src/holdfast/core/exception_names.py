"""Exception types by name: what data can hold, and what is compared without importing anybody's classes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, cast

ExceptionRef: TypeAlias = type[BaseException] | str


def lineage(cls: type) -> Iterator[str]:
    """Qualified and bare names of a class and its bases, the most specific first."""
    for base in cls.__mro__:
        yield qualified(base)
        yield base.__name__


def listed(names: Sequence[str], among: object) -> bool:
    """Whether any of a lineage's names is among those."""
    return any(name in cast(Collection[str], among) for name in names)


def qualified(cls: type) -> str:
    """`module.qualname`."""
    return f"{cls.__module__}.{cls.__qualname__}"


def name_of(ref: object) -> str | None:
    """The name of an exception type that is given as such, or as text; None for what is neither."""
    match ref:
        case type() if issubclass(ref, BaseException):
            return qualified(ref)
        case str() if ref and not ref.isspace():
            return ref
    return None


NAME_HINT: Final = "give one as in 'TimeoutError' or 'shop.errors.Declined'"


def can_be_name(name: str | None) -> bool:
    """Whether a type can be called so: `module.qualname`, or the last part of it. Modules may have odd names."""
    parts = (name or "").split(".")
    return all(parts) and parts[-1].isidentifier() and not any(letter.isspace() for letter in name or "")


def refs_of(value: object) -> Collection[object] | None:
    """One exception or a list of them, as a list; None for what is neither."""
    if isinstance(value, (str, type)):
        return (value,)
    if not isinstance(value, Collection) or isinstance(value, (bytes, Mapping)):
        return None
    return value
