"""Ids as the histories spell them: the text of the UUID, whatever a store keeps."""

from __future__ import annotations

from uuid import UUID


def text_id(stored: bytes | str) -> str:
    return str(UUID(bytes=stored)) if isinstance(stored, bytes) else stored
