"""The Lua scripts by name. What they do, and which keys they touch, is said at the head of each."""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import NamedTuple


class Script(NamedTuple):
    """A script and the name by which a server that has run it knows it."""

    text: str
    sha: str


def _load(name: str) -> Script:
    text = (resources.files(__package__) / "lua" / f"{name}.lua").read_text("utf-8")
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


PUBLISH = _load("publish")
FETCH = _load("fetch")
ENSURE = _load("ensure")
RELEASE = _load("release")
RECOVER = _load("recover")
WATCH = _load("watch")
INSPECT = _load("inspect")
