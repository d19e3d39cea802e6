"""Files stay small: a file that does one thing is read in one go."""

from __future__ import annotations

from statistics import median

from tests.architecture.sources import sources

LIMIT = 400
MEDIAN = 120

# path -> (lines it may have, why it is better in one piece). A ratchet: shrink the number with the file.
ARGUED: dict[str, tuple[int, str]] = {}


def test_no_file_is_longer_than_the_limit() -> None:
    allowed = {name: lines for name, (lines, _) in ARGUED.items()}
    long = {s.name: s.lines for s in sources() if s.lines > allowed.get(s.name, LIMIT)}
    assert not long, f"split by noun, or argue in ARGUED: {long}"


def test_an_exception_goes_when_it_is_no_longer_needed() -> None:
    sizes = {s.name: s.lines for s in sources()}
    assert not [name for name in ARGUED if sizes.get(name, 0) <= LIMIT]
    assert all(len(reason) > 20 for _, reason in ARGUED.values())


def test_the_median_file_is_short() -> None:
    assert median(s.lines for s in sources() if s.lines) < MEDIAN
