"""Opening a SQLite file: what is wrong with it is said in one sentence, and nothing is half done."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast.core.errors import StoreBroken
from holdfast.stores.sqlite import SqliteStore, opening
from holdfast.stores.sqlite.opening import APPLICATION_ID, migrate, open_reader, open_writer, store_status
from holdfast.stores.sqlite.statements import migrations

NOBODY = 65534


def refusal(path: Path) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(StoreBroken) as caught:
        open_writer(str(path))
    return str(caught.value)


def schema(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [name for (name,) in db.execute("SELECT name FROM sqlite_master ORDER BY name")]


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Root may write everything; so be somebody else for a while. (All threads of the process are.)"""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that any user can reach."""
    directory = Path(tempfile.mkdtemp(prefix="holdfast-test-"))
    directory.chmod(0o755)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


# ---------------------------------------------------------------- what is refused


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "letter.db"
    file.write_text("Dear Sir or Madam, " * 100)
    assert refusal(file) == (
        f"SQLite store {file}: the file is not a SQLite database; name another file, or move this one away "
        "(file is not a database)"
    )
    assert file.read_text().startswith("Dear Sir")


def test_a_damaged_database(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    open_writer(str(file)).close()
    with file.open("r+b") as raw:
        raw.seek(100)  # the header stays, the root of the schema goes
        raw.write(b"\xff" * 200)
    assert refusal(file).startswith(f"SQLite store {file}: the database is damaged; restore it from a backup, or ")


def test_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "jobs.db"
    assert refusal(file) == (
        f"SQLite store {file}: the directory {tmp_path / 'nowhere'} does not exist; create it first"
    )
    assert not file.parent.exists()


def test_a_directory_in_place_of_a_file(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"SQLite store {tmp_path}: this is a directory; name a file in it"


def test_a_file_that_this_user_may_not_write(public: Path) -> None:
    file = public / "jobs.db"
    open_writer(str(file)).close()
    file.chmod(0o444)
    with ordinary_user():
        assert refusal(file) == f"SQLite store {file}: the file is read-only for this user; it must be writable"


def test_a_directory_that_this_user_may_not_write(public: Path) -> None:
    file = public / "jobs.db"
    file.touch()
    file.chmod(0o666)
    public.chmod(0o555)
    expected = (
        f"SQLite store {file}: the directory {public} is read-only for this user; SQLite writes its log beside the file"
    )
    with ordinary_user():
        assert refusal(file) == expected
        file_to_be = public / "new.db"
        assert refusal(file_to_be) == expected.replace(str(file), str(file_to_be))


def test_a_file_that_only_sqlite_finds_it_cannot_write(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = public / "jobs.db"
    open_writer(str(file)).close()
    file.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda path, mode: True)  # as on file systems that lie about it
    with ordinary_user():
        assert "give this user the right to write the file and its directory" in refusal(file)


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE customer (name TEXT)")
        db.commit()
    before = file.read_bytes()
    assert refusal(file) == (
        f"SQLite store {file}: this is the database of another program; give Holdfast a file of its own"
    )
    assert file.read_bytes() == before


def test_a_schema_newer_than_this_version_knows(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    open_writer(str(file)).close()
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 999")
    newest = migrations()[-1][0]
    assert refusal(file) == (
        f"SQLite store {file} has schema version 999, newer than this Holdfast knows ({newest}); "
        "upgrade the holdfast package"
    )


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share = tmp_path / "my share" / "jobs"
    share.mkdir(parents=True)
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path}/my\\040share {kind} rw 0 0\n/dev/sdb {tmp_path}/my ext4 rw 0 0\n"
    )
    monkeypatch.setattr(opening, "_MOUNTS", mounts)
    file = share / "jobs.db"
    assert refusal(file) == (
        f"SQLite store {file}: {share} is on a network file system ({kind}), whose locks cannot be trusted; use a "
        "local disk, or PostgreSQL"
    )
    open_writer(str(tmp_path / "beside.db")).close()  # the share's neighbour is on a local disk


def test_a_local_disk_mounted_inside_a_share_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x / nfs4 rw 0 0\n/dev/sda {tmp_path} ext4 rw 0 0\nrubbish\n")
    monkeypatch.setattr(opening, "_MOUNTS", mounts)
    open_writer(str(tmp_path / "jobs.db")).close()


def test_where_mounts_cannot_be_read_the_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_MOUNTS", tmp_path / "missing")
    open_writer(str(tmp_path / "jobs.db")).close()


# ---------------------------------------------------------------- what is opened


@pytest.mark.parametrize("name", ["jobs.db", "with space.db", "what?.db", "größe#1.db", "file:jobs.db"])
def test_any_file_name_is_taken_literally(name: str, tmp_path: Path) -> None:
    open_writer(str(tmp_path / name)).close()
    assert (tmp_path / name).exists()


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    file.touch()
    with closing(open_writer(str(file))) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("PRAGMA user_version").fetchone() == (migrations()[-1][0],)


def test_what_is_committed_is_durable(tmp_path: Path) -> None:
    with closing(open_writer(str(tmp_path / "jobs.db"))) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    with closing(open_writer(str(file))), closing(open_reader(str(file))) as reader:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM job")
        assert reader.execute("SELECT count(*) FROM job").fetchone() == (0,)


def test_a_private_store_leaves_no_files_behind() -> None:
    async def main() -> Path:
        store = SqliteStore(":memory:")
        await store.open()
        await store.queue_settings()
        home = Path(store.path).parent
        assert home.exists()
        await store.close()
        return home

    assert not asyncio.run(main()).exists()


def test_two_private_stores_have_nothing_in_common_even_if_they_are_never_opened() -> None:
    async def main() -> list[Path]:
        stores = [SqliteStore(":memory:") for _ in range(2)]
        for store in stores:
            await store.close()
        return [Path(store.path).parent for store in stores]

    one, other = asyncio.run(main())
    assert one != other
    assert not one.exists()
    assert not other.exists()


# ---------------------------------------------------------------- migrations

STEP_ONE = (1, "0001_one.sql", "CREATE TABLE one (a);\nCREATE TABLE two (b);\n")
STEP_TWO = (2, "0002_two.sql", "CREATE TABLE three (c);\nINSERT INTO nowhere VALUES (1);\n")
STEP_TWO_MENDED = (2, "0002_two.sql", "CREATE TABLE three (c);\n-- a; comment;\nCREATE TABLE four (d);\n")


def test_a_step_that_fails_leaves_nothing_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "jobs.db"
    monkeypatch.setattr(opening, "migrations", lambda: [STEP_ONE, STEP_TWO])
    assert refusal(file) == f"SQLite store {file}: no such table: nowhere"
    assert schema(file) == ["one", "two"]  # the step before stands
    monkeypatch.setattr(opening, "migrations", lambda: [STEP_ONE, STEP_TWO_MENDED])
    with closing(open_writer(str(file))) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
    assert schema(file) == ["four", "one", "three", "two"]


def test_a_migrated_file_is_not_touched_again(tmp_path: Path) -> None:
    with closing(open_writer(str(tmp_path / "jobs.db"))) as db:
        before = db.total_changes
        migrate(db)
        assert db.total_changes == before
        assert not db.in_transaction


def test_four_processes_may_open_a_new_file_at_the_same_time(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    program = (
        "import sys\n"
        "from holdfast.stores.sqlite.opening import open_writer\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "db = open_writer(sys.argv[1])\n"
        "print(db.execute('SELECT count(*) FROM counter').fetchone()[0], flush=True)\n"
    )
    openers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for opener in openers:
        assert opener.stdout is not None
        assert opener.stdout.readline() == "ready\n"
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("\n")
        opener.stdin.flush()
    assert [opener.communicate(timeout=60)[0] for opener in openers] == ["2\n"] * 4
    assert [opener.returncode for opener in openers] == [0] * 4


def test_the_status_of_a_store_is_told_without_making_or_changing_it(tmp_path: Path) -> None:
    path = tmp_path / "a ?#%.db"
    missing = store_status(str(path))
    assert (missing.exists, missing.schema, bool(missing.pending)) == (False, 0, True)
    assert not path.exists()
    open_writer(str(path)).close()
    made = store_status(str(path))
    assert (made.exists, made.schema, made.pending) == (True, made.newest, ())
    assert made.engine.startswith("SQLite 3.")
    with pytest.raises(StoreBroken, match="does not exist; create it first"):
        store_status(str(tmp_path / "no" / "such.db"))
