"""Runs many commands, each in a process of its own that is forked after the imports: those are most of the time.

Reads a list of commands as JSON, writes one line of JSON per command: exit code, output, error output.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

from holdfast.cli.main import run


def main() -> None:
    for words in json.load(sys.stdin):
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = os.fork()
            if child == 0:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                run(words)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            err.seek(0)
            print(json.dumps([code, out.read(), err.read()]), flush=True)


if __name__ == "__main__":
    main()
