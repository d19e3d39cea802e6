"""What errors are found by: a fingerprint of what is the same in all that failed alike, and the words of a message."""

from __future__ import annotations

import hashlib
import re

_MOST_WORDS = 100
_LONGEST_WORD = 100

# What differs from one failure to the next of the same kind, in this order: what is quoted, then what has digits.
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
# The second half is what has begun alike and has no digit: it is passed over as a whole, because to look at it again
# from each of its letters would take the square of its length.
_VARIABLE = re.compile(r"\b(?:[a-fA-F-]*+\d[\w.:-]*|(?P<plain>[a-fA-F-]++))")
_SPACE = re.compile(r"\s+")
_FRAME = re.compile(r'^  File "(?P<file>[^"\n]*)", line \d+, in (?P<function>.+)$', re.MULTILINE)
_WORD = re.compile(r"\w+")


def fingerprint_of(error_type: str, message: str, traceback: str) -> str:
    """16 hexadecimal digits of the type, the message without what varies, and the place that raised.

    The place is file and function, not the line: a fingerprint outlives a release that moved the code. Of the file only
    the name and its directory count, because machines differ in what is before.
    """
    if not error_type and not message:
        return ""
    same = _SPACE.sub(" ", _VARIABLE.sub(lambda found: found["plain"] or "#", _QUOTED.sub("'#'", message))).strip()
    frames = _FRAME.findall(traceback)
    file, function = frames[-1] if frames else ("", "")
    place = "/".join(re.split(r"[\\/]", file)[-2:])
    text = "\0".join((error_type, same, place, function))
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def words_of(text: str) -> list[str]:
    """The words of a text as they are looked for: small letters, each once, in order; a bounded number of them."""
    found = dict.fromkeys(word[:_LONGEST_WORD] for word in _WORD.findall(text.lower()))
    return list(found)[:_MOST_WORDS]
