"""The SQL of earlier versions as it was released, one folder for each version of the schema.

`python -m tests.compat.frozen` copies the SQL of now into the folder of the newest version. It is run when a version is
released; from then on its folder is not changed any more.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from holdfast.stores.postgres import statements
from holdfast.stores.postgres.statements import DEFAULT_SCHEMA, migrations, read_statements

HERE = Path(__file__).parent
_SOURCE = Path(statements.__file__).parent / "sql"


def versions() -> list[int]:
    """Of those that are kept."""
    return sorted(int(folder.name[1:]) for folder in HERE.glob("v*"))


def frozen(version: int, schema: str) -> Mapping[str, str]:
    """All statements of a version, by name."""
    return read_statements(HERE / f"v{version}", schema)


def freeze() -> None:
    """Keep the SQL of now."""
    folder = HERE / f"v{migrations(DEFAULT_SCHEMA)[-1][0]}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))


if __name__ == "__main__":
    freeze()
