"""The generated parts of the documentation are those that today's code makes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.docs.generate import PARTS, renewed
from tests.docs.pages import ROOT

from holdfast.config import Config


@pytest.mark.parametrize(("page", "part", "make"), PARTS, ids=[f"{page}:{part}" for page, part, _ in PARTS])
def test_a_generated_part_is_up_to_date(page: str, part: str, make: Callable[[], str]) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert text == renewed(text, part, make()), "run `python -m tests.docs.generate`"


def test_every_setting_is_explained() -> None:
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")
    assert not [
        setting.name for setting in Config.settings() if f"| `{setting.name}` | `{setting.variable}` |" not in text
    ]
