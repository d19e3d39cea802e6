"""Limits that operators set for a task or a queue that there cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.scene import scene

from holdfast import Holdfast, InvalidOptions


@pytest.mark.parametrize(
    "name", ["task:", "queue:", "queue:two words", "queue:é", "task:shop send", f"queue:{'x' * 65}"]
)
@scene
async def test_it_is_refused(tmp_path: Path, name: str) -> None:
    async with Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}") as hf:
        with pytest.raises(InvalidOptions, match=r"^limit '(task|queue):.*(must not be empty|allowed)"):
            await hf.limits.set(name, size=1)
        assert await hf.limits.list() == []
        assert not await hf.limits.clear(name), "what was set before can be taken back"
