"""The composition root: with `testing/`, the only code that names a concrete store."""

from __future__ import annotations

from holdfast.app.holdfast import Holdfast

__all__ = ["Holdfast"]
