"""Every Python block of the documentation runs, and prints what the page says that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.pages import ROOT, blocks, name_of, pages
from tests.docs.run_page import main
from tests.docs.subprocesses import run_python

WITH_CODE = [
    page for page in pages() if any(b.language == "python" and not b.title for b in blocks(page.read_text("utf-8")))
]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    run_python("-m", "tests.docs.run_page", str(page), cwd=tmp_path)


def test_the_readme_shows_the_quickstart_as_it_is() -> None:
    example = (ROOT / "examples" / "quickstart.py").read_text("utf-8").partition('"""\n\n')[2]
    [first, *_] = [b.text for b in blocks((ROOT / "README.md").read_text("utf-8")) if b.language == "python"]
    assert first == example


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```python\nprint(6 * 7)\n```\n\n```text\n41\n```\n", "the code prints\n42"),
        ("```python\nimport asyncio\n```\n```python\nawait asyncio.sleep(0)\nassert False\n```\n", "AssertionError"),
        ("```python\nno_such_name\n```\n", "NameError"),
    ],
)
def test_a_page_that_is_wrong_is_noticed(page: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(page, "utf-8")
    with pytest.raises((SystemExit, AssertionError, NameError)) as caught:
        main(tmp_path / "page.md")
    assert complaint in f"{caught.typename}: {caught.value}"


def test_the_pages_show_what_their_code_prints() -> None:
    outputs = [b for page in WITH_CODE for b in blocks(page.read_text("utf-8")) if b.language == "text"]
    assert len(outputs) > 10, "the pages show hardly any output: the comparison would check nothing"
