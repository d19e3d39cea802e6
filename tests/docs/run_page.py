"""Runs a page's Python blocks, in order, in one namespace, with `await` at the top level as `python -m asyncio` has it.

A block with a title is a file, not a part of the session. A `text` block right after a Python block is what that block
prints (`...` stands for anything).
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import sys
from pathlib import Path
from typing import Any

from tests.docs.pages import Block, blocks

_CHECKER = doctest.OutputChecker()


def main(page: Path) -> None:
    found = blocks(page.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for block, following in zip(found, [*found[1:], None], strict=True):
            if block.language == "python" and not block.title:
                printed = _run(block, page.name, namespace, runner)
                if following is not None and following.language == "text" and following.line - block.last_line <= 3:
                    _compare(following, printed, page.name)


def _run(block: Block, page: str, namespace: dict[str, Any], runner: asyncio.Runner) -> str:
    padded = "\n" * (block.line - 1) + block.text  # so that tracebacks name the page's own lines
    code = compile(padded, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(eval(code, namespace))
        else:
            exec(code, namespace)
    return printed.getvalue()


def _compare(expected: Block, printed: str, page: str) -> None:
    if not _CHECKER.check_output(expected.text, printed, doctest.ELLIPSIS):
        raise SystemExit(f"{page}:{expected.line}: the page says\n{expected.text}and the code prints\n{printed}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
