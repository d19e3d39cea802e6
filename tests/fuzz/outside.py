"""What the outside may send: texts, numbers, JSON and bytes, each leaning towards what breaks decoders."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
from hypothesis.strategies import SearchStrategy

#: Deeper than Python's own recursion limit, and than any parser's.
ABYSS = 100_000
#: Python refuses to write, and to read, integers of more than 4,300 digits.
UNWRITABLE = 10**5_000
#: No float is as large.
BEYOND_FLOATS = 10**400

#: Lone surrogates and NUL among them: what `st.text()` leaves out, `os.fsdecode` and JSON's escapes do bring.
any_text = st.text(st.characters(), max_size=40) | st.sampled_from(
    [
        "",
        " ",
        "\0",
        "\ud800",
        "a\udcffb",
        "\u202e",
        "٣",
        "NaN",
        "null",
        "-0",
        "1e999",
        "x" * 5_000,
        "'",
        '"',
        "\n",
        "%s",
    ]
)
plain_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
numbers: SearchStrategy[Any] = (
    st.integers()
    | st.floats()
    | st.sampled_from([0, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**4_000, BEYOND_FLOATS])
    | st.sampled_from([1, -1]).map(lambda sign: sign * UNWRITABLE)  # not named: Hypothesis could not write it either
)
scalars: SearchStrategy[Any] = st.none() | st.booleans() | numbers | any_text


def as_word(number: Any) -> str:
    """A number as it is typed."""
    try:
        return str(number)
    except ValueError:
        return "9" * 5_000


def trees(leaves: SearchStrategy[Any], keys: SearchStrategy[str] = any_text) -> SearchStrategy[Any]:
    """Lists and objects of these."""
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )


#: As a caller's objects are: also what no JSON has.
any_value = trees(scalars)
#: What every store must take, and a worker must get as it was.
good_value = trees(
    st.none()
    | st.booleans()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain_text,
    plain_text,
)


@st.composite
def near_json(draw: st.DrawFn, value: SearchStrategy[Any] = any_value) -> bytes:
    """JSON text, or nearly so: repeated keys, NaN, half an escape, a cut end, bytes that are no text."""
    tree = draw(value)
    try:
        text = json.dumps(tree, ensure_ascii=draw(st.booleans()))
    except ValueError:  # an integer that cannot be written
        text = "9" * 5_000
    written = text.encode("utf-8", "surrogatepass")
    match draw(st.integers(0, 6)):
        case 0:
            return written[: draw(st.integers(0, len(written)))]
        case 1:
            at = draw(st.integers(0, len(written)))
            return written[:at] + draw(st.binary(max_size=4)) + written[at:]
        case 2:
            return b'{"a": ' + written + b', "a": ' + written + b"}"
        case 3:
            return b" \n" + written + b"\t"
        case _:
            return written


raw_bytes: SearchStrategy[bytes] = (
    st.binary(max_size=200)
    | near_json()
    | st.sampled_from(
        [
            b"",
            b"null",
            b"[" * ABYSS,
            b'{"a":' * ABYSS,
            b"[" * ABYSS + b"]" * ABYSS,
            b'"\\ud800"',
            b'"\\u0000"',
            b"9" * 5_000,
            b"-" + b"9" * 5_000,
            b"1e999",
            b"NaN",
            b"\xff\xfe",
            b"\xef\xbb\xbf{}",
            b'"' + b"x" * 100_000 + b'"',
            b"\x00",
        ]
    )
)
