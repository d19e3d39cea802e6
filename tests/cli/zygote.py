"""Runs commands, each in a process of its own that is forked after the imports: those are most of the time.

Reads one line of JSON per command (words, directory, environment) and answers with one: exit code, output, error
output. It starts no thread, so that forking is safe.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile

from holdfast.cli.main import run


def main() -> None:
    gc.freeze()  # what is shared with the children is not to be copied by looking at it
    for line in sys.stdin:
        words, directory, environment = json.loads(line)
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = os.fork()
            if child == 0:
                os.chdir(directory)
                os.environ.clear()
                os.environ.update(environment)
                for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), out.fileno(), err.fileno())):
                    os.dup2(file, number)
                run(words)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            err.seek(0)
            print(json.dumps([code, out.read(), err.read()]), flush=True)


if __name__ == "__main__":
    main()
