"""The embedded store: one SQLite file, one writer thread per process, several processes per file."""

from __future__ import annotations

from holdfast.stores.sqlite.opening import store_status
from holdfast.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "store_status"]
