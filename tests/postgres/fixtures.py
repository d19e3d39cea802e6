"""PostgreSQL for tests: a fresh schema (cheap), a fresh database, or a server of their own to stop and kill."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psycopg
import pytest
from psycopg import sql
from tests.postgres import shared

from holdfast.local import LocalPostgres


@dataclass(frozen=True, slots=True)
class PostgresSchema:
    """A name that nothing exists under yet, in a database that other tests use as well."""

    url: str
    schema: str


class StartPostgres(Protocol):
    """What the fixture `start_postgres` is."""

    def __call__(self, *, settings: Mapping[str, str] | None = None, binaries: Path | None = None) -> LocalPostgres: ...


@dataclass(frozen=True, slots=True)
class Admin:
    """The superuser's own connection to the server under test, for what a test cannot do for itself."""

    url: str
    connection: psycopg.Connection[tuple[object, ...]]

    def url_of(self, database: str) -> str:
        """`sslmode=disable` halves what a connection costs the driver, who would first prepare and ask for TLS."""
        base, _, parameters = self.url.partition("?")
        kept = parameters or "sslmode=disable"
        return f"{base.rpartition('/')[0]}/{database}?{kept}"

    def create_database(self, *, template: str = "template1") -> str:
        """Its name."""
        name = f"holdfast_test_{secrets.token_hex(6)}"
        self.connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
        return name

    def drop_database(self, name: str) -> None:
        self.connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def postgres_admin() -> Iterator[Admin]:
    """The server that HOLDFAST_TEST_POSTGRES_URL names (as superuser), else the one that this test run shares."""
    if url := os.environ.get("HOLDFAST_TEST_POSTGRES_URL"):
        with psycopg.connect(url, autocommit=True) as connection:
            yield Admin(url, connection)
        return
    with shared.shared_server() as server:
        shared.make_logins_cheap(server)
        with psycopg.connect(server.url, autocommit=True) as connection:
            yield Admin(server.url, connection)


@pytest.fixture(scope="session")
def _database_of_this_process(postgres_admin: Admin) -> Iterator[str]:
    name = postgres_admin.create_database()
    yield name
    postgres_admin.drop_database(name)


@pytest.fixture(scope="session")
def _dropper(postgres_admin: Admin, _database_of_this_process: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(postgres_admin.url_of(_database_of_this_process), autocommit=True) as connection:
        yield connection


@pytest.fixture
def postgres_schema(
    postgres_admin: Admin, _database_of_this_process: str, _dropper: psycopg.Connection[tuple[object, ...]]
) -> Iterator[PostgresSchema]:
    """A fresh schema's name, and the url of this process's database; whatever is in it goes with the test."""
    place = PostgresSchema(postgres_admin.url_of(_database_of_this_process), f"hf_{secrets.token_hex(6)}")
    yield place
    # A failed test may have left transactions open, which the drop would wait for in vain.
    _dropper.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    _dropper.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(place.schema)))


@pytest.fixture
def postgres_database(postgres_admin: Admin) -> Iterator[str]:
    """The url of a fresh, empty database."""
    name = postgres_admin.create_database()
    yield postgres_admin.url_of(name)
    postgres_admin.drop_database(name)


@pytest.fixture
def postgres_url(postgres_database: str) -> str:
    """The same by its plainest name."""
    return postgres_database


@pytest.fixture(scope="session")
def postgres_template() -> Iterator[Callable[[Path], Path]]:
    """A prepared directory per version, to copy for servers of tests' own."""
    made: dict[Path, LocalPostgres] = {}

    def prepared(binaries: Path) -> Path:
        if binaries not in made:
            made[binaries] = LocalPostgres(shared.own_directory(), settings=shared.QUICK, binaries=binaries)
            with made[binaries] as server:
                shared.make_logins_cheap(server)
        return made[binaries].directory

    yield prepared
    for server in made.values():
        shutil.rmtree(server.directory)


@pytest.fixture
def start_postgres(postgres_template: Callable[[Path], Path]) -> Iterator[StartPostgres]:
    """Starts a server for this test alone: `start_postgres(settings={"fsync": "on"}, binaries=…)`."""
    started: list[LocalPostgres] = []

    def start(*, settings: Mapping[str, str] | None = None, binaries: Path | None = None) -> LocalPostgres:
        chosen = binaries or shared.chosen_binaries()
        server = LocalPostgres(
            shared.own_directory(),
            settings=shared.QUICK | dict(settings or {}),
            binaries=chosen,
            template=postgres_template(chosen),
            temporary=True,
        )
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.close()


@pytest.fixture
def own_postgres(start_postgres: StartPostgres) -> LocalPostgres:
    """A server for this test alone, to stop, restart and kill."""
    return start_postgres()
