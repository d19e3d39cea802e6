"""Threads with connections of their own that read; a report never waits for the writer, nor holds it up."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.core.errors import NotOpen
from holdfast.stores.sqlite.errors import translate
from holdfast.stores.sqlite.opening import check_process, open_reader

T = TypeVar("T")


class Reader:
    """Runs queries, each as one snapshot, on a small pool of threads."""

    def __init__(self, path: str, *, name: str, threads: int = 2) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"holdfast-sqlite-{name}")
        self._local = threading.local()
        self._pid = os.getpid()
        self._connections: list[sqlite3.Connection] = []

    async def query(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run `read` on a connection that sees one state of the database from begin to end."""
        check_process(self._pid)
        try:
            pending = asyncio.get_running_loop().run_in_executor(self._pool, self._snapshot, read)
        except RuntimeError as closed:
            raise NotOpen(f"SQLite store {self._path} is not open") from closed
        return await pending

    def close(self) -> None:
        self._pool.shutdown(wait=True)
        for connection in self._connections:
            connection.close()

    def _snapshot(self, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return read(connection)
            finally:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise translate(error, self._path) from error

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = open_reader(self._path)
            self._connections.append(connection)
        return connection
