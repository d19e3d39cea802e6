"""The table of safeguards must not rot: every text to be replaced is still there, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ablate.ablation import Ablation
from tests.ablate.flow_table import FLOW_CONTROL
from tests.ablate.table import ABLATIONS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("ablation", [*ABLATIONS, *FLOW_CONTROL], ids=lambda each: f"{each.promise}: {each.safeguard}")
def test_the_safeguard_is_where_the_table_says(ablation: Ablation) -> None:
    assert (ROOT / ablation.file).read_text().count(ablation.old) == 1
    assert ablation.new != ablation.old


@pytest.mark.parametrize("promise", ["P1", "P2", "P3", "P4", "P5", "P6", "P8", "P9", "P10"])
def test_every_promise_has_a_safeguard_to_take_out(promise: str) -> None:
    assert any(ablation.promise == promise for ablation in ABLATIONS)


def test_the_documented_table_names_every_safeguard_and_no_survivor() -> None:
    text = (ROOT / "docs" / "promises.md").read_text()
    missing = [each.safeguard for each in ABLATIONS if each.safeguard not in text]
    assert not missing, f"run `make ablate`: the table in docs/promises.md does not have {missing}"
    assert "**not caught**" not in text
