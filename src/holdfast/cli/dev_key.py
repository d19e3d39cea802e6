"""The key of `holdfast dev`: made once, kept in a file for whoever develops here, good for this store alone."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from holdfast.app import Holdfast
from holdfast.core.api_key import Scope, parse_key_text

_FILE = "api_key"
_DAYS = 30


async def dev_key(hf: Holdfast, directory: Path) -> str:
    """The key that is in the file, if it still opens this store; else a new one, which is put there."""
    file = directory / _FILE
    kept = parse_key_text(file.read_text("utf-8").strip()) if file.exists() else None
    now = await hf.keys.now()
    if kept is not None:
        known = await hf.keys.get(kept.id)
        if known is not None and known.opens(kept.secret, now):
            return str(kept)
    made = await hf.keys.create("holdfast dev", scopes=Scope, expires=timedelta(days=_DAYS))
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(made.text + "\n")
    return made.text
