"""The one thread that writes: takes what waits, runs it as one transaction, answers after the commit.

Duties:
1. Group commit: all verbs that wait share one `BEGIN IMMEDIATE … COMMIT`, so one fsync serves them all.
2. A verb that fails is undone alone (savepoint); a failed commit fails its whole group.
3. Answers and hints go back with one `call_soon_threadsafe` per event loop and group.
4. Notices commits of other processes by `PRAGMA data_version`, while anybody listens.
5. Refuses to write into a file that no longer has its name: what is accepted there, nobody would find again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from holdfast.core.backpressure import Watermarks
from holdfast.core.errors import HoldfastError, NotOpen, StoreBroken, StoreUnavailable
from holdfast.runtime.clock import Clock
from holdfast.runtime.failpoints import FailpointHit, failpoint
from holdfast.stores.base import Hint
from holdfast.stores.moments import answer_lost, struck
from holdfast.stores.sqlite.errors import translate
from holdfast.stores.sqlite.opening import check_process, file_identity, note_closed, note_open, open_writer
from holdfast.stores.sqlite.serve import serve_freed
from holdfast.stores.sqlite.tenants import tenanted
from holdfast.stores.sqlite.transaction import Tx

T = TypeVar("T")

_GROUP_LIMIT = 64
_WATCH_MIN_S, _WATCH_MAX_S = 0.002, 0.025
_REST_S = 1.0


class _Request(NamedTuple):
    verb: str
    operation: Callable[[Tx], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    deadline: float | None


class Writer:
    """Owns the write connection; see the module's duties."""

    def __init__(self, path: str, *, clock: Clock, watermarks: Watermarks) -> None:
        self._path = path
        self._clock = clock
        self._watermarks = watermarks
        self.tenanted: set[str] = set()
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._listeners: dict[asyncio.AbstractEventLoop, list[Callable[[Hint], None]]] = {}
        self._listeners_lock = threading.Lock()
        self._gate = threading.Lock()
        self._thread: threading.Thread | None = None
        self._db: sqlite3.Connection | None = None
        self._closed = False
        self._pid = 0
        self._file = (0, 0)

    def open(self) -> None:
        """Open the file (blocking) and start the thread."""
        self._db = open_writer(self._path)
        self.tenanted |= tenanted(self._db)
        self._pid = os.getpid()
        self._file = file_identity(self._path)
        note_open(self._path)
        self._thread = threading.Thread(target=self._serve, name="holdfast-sqlite-writer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what waits, then close (blocking)."""
        with self._gate:
            self._closed = True
            if self._thread is not None:
                self._requests.put(None)
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            note_closed(self._path)

    def submit(self, verb: str, operation: Callable[[Tx], T], *, deadline_s: float | None = None) -> asyncio.Future[T]:
        """Ask for one verb; the future is answered after its commit, on the calling loop."""
        self._check_open()
        check_process(self._pid)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        deadline = None if deadline_s is None else self._clock.monotonic() + deadline_s
        with self._gate:  # nothing may come to lie behind the mark of the end, where nobody would answer it
            self._check_open()
            self._requests.put(_Request(verb, operation, future, loop, deadline))
        return future

    def _check_open(self) -> None:
        if self._closed or self._thread is None:
            raise NotOpen(f"SQLite store {self._path} is not open")

    def subscribe(self, callback: Callable[[Hint], None]) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        with self._listeners_lock:
            first = not self._listeners
            self._listeners.setdefault(loop, []).append(callback)
        if first:
            self._requests.put(_IDLE)  # the thread looks from now on

        def leave() -> None:
            with self._listeners_lock:
                callbacks = self._listeners.get(loop, [])
                if callback in callbacks:
                    callbacks.remove(callback)
                if not callbacks:
                    self._listeners.pop(loop, None)

        return leave

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        assert self._db is not None
        watch_s = _WATCH_MIN_S
        seen = self._data_version()
        try:
            while True:
                try:
                    request = self._requests.get(timeout=watch_s if self._listeners else _REST_S)
                except Empty:
                    request = _IDLE
                if request is None:
                    return
                if request is not _IDLE:
                    group = [request]
                    closing = False
                    while len(group) < _GROUP_LIMIT and not closing:
                        try:
                            following = self._requests.get_nowait()
                        except Empty:
                            break
                        if following is None:
                            closing = True
                        elif following is not _IDLE:
                            group.append(following)
                    self._commit(group)
                    if closing:
                        return
                version = self._data_version()
                if version != seen:
                    seen = version
                    watch_s = _WATCH_MIN_S
                    self._deliver([], Hint.ANYTHING)
                else:
                    watch_s = min(_WATCH_MAX_S, watch_s * 1.2)
        except Exception as error:
            self._die(error)
        finally:
            self._db.close()

    def _die(self, error: Exception) -> None:
        """Nothing can be written any more: whoever waits hears it, whoever comes is refused."""
        with self._gate:
            self._closed = True
        trouble = StoreUnavailable(f"SQLite store {self._path} cannot be written any more: {error}", unknown=True)
        while True:
            try:
                request = self._requests.get_nowait()
            except Empty:
                return
            if request is not None and request is not _IDLE:
                self._deliver([(request, None, trouble)], Hint.NOTHING)

    def _data_version(self) -> int:
        assert self._db is not None
        try:
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            return -1

    def _commit(self, group: list[_Request]) -> None:
        """Run a group as one transaction; every request gets exactly one answer."""
        db = self._db
        assert db is not None
        answers: list[tuple[_Request, Any, BaseException | None]] = []
        live: list[_Request] = []
        for request in group:
            if request.future.cancelled() or self._too_late(request):
                answers.append((request, None, StoreUnavailable(f"{request.verb}: dropped at its deadline")))
                continue
            if hit := _strike(f"{request.verb}.begin"):
                answers.append((request, None, hit))
            else:
                live.append(request)
        hints = Hint.NOTHING
        committing = False
        try:
            if live:
                self._check_file()
                db.execute("BEGIN IMMEDIATE")
                now = self._clock.now()
                done = [self._perform(db, request, now) for request in live]
                committing = True
                db.execute("COMMIT")
                for request, (result, error, verb_hints) in zip(live, done, strict=True):
                    answers.append((request, result, error or self._lost_answer(request)))
                    hints |= verb_hints
        except BaseException as error:
            trouble = translate(error, self._path) if isinstance(error, sqlite3.Error) else error
            if committing and isinstance(trouble, StoreUnavailable):
                # After an error of the disk the commit may yet be found in the log; a full disk is a plain no.
                trouble.unknown = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR
            answers.extend((request, None, trouble) for request in live)
            self._deliver(answers, hints)
            self._undo(db)
            return
        self._deliver(answers, hints)

    def _undo(self, db: sqlite3.Connection) -> None:
        """Roll back; a connection that cannot even do that is replaced."""
        with contextlib.suppress(sqlite3.Error):
            if db.in_transaction:
                db.execute("ROLLBACK")
        if db.in_transaction:
            self._check_file()  # an empty one would be made in its place
            db.close()
            self._db = open_writer(self._path)

    def _check_file(self) -> None:
        if file_identity(self._path) != self._file:
            raise StoreBroken(
                f"SQLite store {self._path}: the file was deleted, moved or replaced while it was open, so nothing is "
                "written any more; put it back under its name, or start again"
            )

    def _perform(self, db: sqlite3.Connection, request: _Request, now: float) -> tuple[Any, BaseException | None, Hint]:
        """One verb; its own failure is undone and reported, one of the whole transaction is raised."""
        tx = Tx(db, now, self._watermarks, self.tenanted)
        db.execute("SAVEPOINT verb")
        try:
            result = request.operation(tx)
            if tx.freed:
                serve_freed(tx)
            tx.close_verb()
            failpoint(f"{request.verb}.inside")
        except (
            sqlite3.Error,
            HoldfastError,
            FailpointHit,
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            if not db.in_transaction:  # SQLite has rolled everything back by itself (disk full, I/O error)
                raise
            db.execute("ROLLBACK TO verb")
            db.execute("RELEASE verb")
            match error:
                case sqlite3.Error() | UnicodeEncodeError() | OverflowError():
                    return None, translate(error, self._path), Hint.NOTHING
                case FailpointHit():
                    return None, struck(error), Hint.NOTHING
                case _:
                    return None, error, Hint.NOTHING
        db.execute("RELEASE verb")
        return result, None, tx.hints

    def _too_late(self, request: _Request) -> bool:
        return request.deadline is not None and self._clock.monotonic() > request.deadline

    def _lost_answer(self, request: _Request) -> BaseException | None:
        hit = _strike(f"{request.verb}.committed")
        return None if hit is None else answer_lost(hit)

    def _deliver(self, answers: list[tuple[_Request, Any, BaseException | None]], hints: Hint) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Request, Any, BaseException | None]]]
        by_loop = defaultdict(list)
        for answer in answers:
            by_loop[answer[0].loop].append(answer)
        with self._listeners_lock:
            listeners = {loop: tuple(callbacks) for loop, callbacks in self._listeners.items()} if hints else {}
        for loop in by_loop.keys() | listeners.keys():
            try:
                loop.call_soon_threadsafe(_answer, by_loop.get(loop, []), listeners.get(loop, ()), hints)
            except RuntimeError:  # that loop is closed: nobody is left to be told
                continue


def _answer(
    answers: list[tuple[_Request, Any, BaseException | None]],
    callbacks: tuple[Callable[[Hint], None], ...],
    hints: Hint,
) -> None:
    for request, result, error in answers:
        if request.future.done():
            continue
        if error is None:
            request.future.set_result(result)
        else:
            request.future.set_exception(error)
    for callback in callbacks:
        callback(hints)


def _strike(moment: str) -> BaseException | None:
    """Let a test strike here; what it raises is this request's answer, not the end of the writer."""
    try:
        failpoint(moment)
    except FailpointHit as hit:
        return struck(hit)
    except Exception as error:
        return error
    return None


_IDLE: Any = object()
