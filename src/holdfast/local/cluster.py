"""A data directory for a local server: made once, with a random password that only its owner can read."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.core.errors import ConfigError

ROLE = "postgres"


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the server runs as. PostgreSQL refuses to be root, so for root it is `nobody`."""

    uid: int
    gid: int

    @classmethod
    def for_server(cls) -> Account:
        """Us, unless we are root."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        entry = pwd.getpwnam("nobody")
        return cls(entry.pw_uid, entry.pw_gid)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The files of one server: `data/`, the password in `pgpass` (of libpq's own format), the log, the locks."""

    directory: Path

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def pgpass(self) -> Path:
        return self.directory / "pgpass"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def password(self) -> str:
        return self.pgpass.read_text().strip().rpartition(":")[2]

    @property
    def exists(self) -> bool:
        """Whether it was made completely: the password is written last."""
        return self.pgpass.exists()

    def make(self, binaries: Path, *, account: Account, durable: bool) -> None:
        """`initdb`, with passwords everywhere: a trusted socket or port would be open to all users of the machine."""
        self._make_directory(account)
        password = secrets.token_urlsafe(24)
        told = self.directory / "told"
        write_private(told, password, account)
        command = [
            str(binaries / "initdb"), f"--pgdata={self.data}", f"--username={ROLE}", f"--pwfile={told}",
            "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", *([] if durable else ["--no-sync"]),
        ]  # fmt: skip
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=self.directory, **as_user(account))
        except OSError as error:
            raise ConfigError(f"{command[0]} does not run: {error}") from error
        except subprocess.CalledProcessError as error:
            reason = " ".join(error.stderr.split())
            raise ConfigError(
                f"PostgreSQL made no data directory in {self.directory}: {reason} (the server runs as user id "
                f"{account.uid}, which must be able to reach that directory)"
            ) from error
        finally:
            told.unlink()
        write_private(self.pgpass, f"*:*:*:{ROLE}:{password}\n")

    def copy(self, template: Cluster, *, account: Account) -> None:
        """The same with all that is in it, from one whose server is stopped: a tenth of the time of making one."""
        self._make_directory(account)
        subprocess.run(["cp", "-a", template.data, self.data], check=True)
        write_private(self.pgpass, template.pgpass.read_text())

    def _make_directory(self, account: Account) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(self.directory, account.uid, account.gid)
        shutil.rmtree(self.data, ignore_errors=True)  # of a making that was interrupted


def as_user(account: Account) -> dict[str, Any]:
    """Arguments of `subprocess` that drop root's rights; none for others, who may not even ask for it."""
    if os.geteuid() != 0:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def write_private(path: Path, text: str, owner: Account | None = None) -> None:
    """A file that its owner alone can read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    if owner is not None:
        os.chown(path, owner.uid, owner.gid)
