"""Which store a campaign or a fault test is about: an address that its processes find in its directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.campaign.record import Glance, PostgresGlance, SqliteGlance
from tests.history import StoreRecord, install_audit, read_sqlite
from tests.history.postgres_audit import install_postgres_audit
from tests.history.postgres_record import read_postgres

from holdfast.runtime.clock import Clock
from holdfast.stores.base import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore

_FILE = "store.json"


@dataclass(frozen=True, slots=True)
class Where:
    """A file, or a schema of a PostgreSQL database whose tables are there already."""

    path: str = ""
    url: str = ""
    schema: str = ""
    redis: str = ""
    """Of a transport beside the database, if there is one."""

    @classmethod
    def of(cls, directory: Path) -> Where:
        """What was said to be the store of this directory; else a file in it."""
        said = directory / _FILE
        return cls(**json.loads(said.read_text())) if said.exists() else cls(path=str(directory / "holdfast.db"))

    def say(self, directory: Path) -> None:
        (directory / _FILE).write_text(json.dumps(asdict(self)))

    @property
    def is_postgres(self) -> bool:
        return bool(self.url)

    @property
    def address(self) -> str:
        """For an app, with `settings`."""
        return self.url if self.is_postgres else f"sqlite:///{self.path}"

    @property
    def settings(self) -> dict[str, Any]:
        return {"schema": self.schema, "redis": self.redis} if self.is_postgres else {}

    def store(self, *, clock: Clock | None = None) -> Store:
        """Not yet open."""
        if self.is_postgres:
            return PostgresStore(self.url, schema=self.schema, clock=clock)
        return SqliteStore(self.path, clock=clock)

    def glance(self) -> Glance:
        return PostgresGlance(self.url, self.schema) if self.is_postgres else SqliteGlance(Path(self.path))

    def install_audit(self) -> None:
        if self.is_postgres:
            install_postgres_audit(self.url, self.schema)
        else:
            install_audit(self.path)

    def record(self, *, as_of: float | None = None, ids: Sequence[str] | None = None) -> StoreRecord:
        """What the store has, of all jobs or of some."""
        if self.is_postgres:
            return read_postgres(self.url, self.schema, as_of=as_of, ids=ids)
        return read_sqlite(self.path, as_of=as_of, ids=ids)
