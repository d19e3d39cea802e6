"""`python -m holdfast`: the command line, for where its entry point is not on the path."""

from __future__ import annotations

from holdfast_command import run

if __name__ == "__main__":
    run()
