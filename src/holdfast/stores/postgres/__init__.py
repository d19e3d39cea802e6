"""The store for production: PostgreSQL as the system of record, shared by any number of processes and machines."""

from __future__ import annotations

from holdfast.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
