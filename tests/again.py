"""Tells a test that is broken from one that is unsteady: the few that failed run once more, alone, and are named.

`python -m tests.again CODE` follows the whole run that ended with CODE. The tests share two cores with each other, with
PostgreSQL and with whatever else the machine does; one that waited in vain there and passes alone has shown a defect,
its own or Holdfast's, and says so at the end of the run. It is no reason to refuse a change that has nothing to do with
it. What fails twice is, and so are more than a few at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

A_FEW = 3
_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main(code: int) -> int:
    failed = _failed()
    if code != 1 or not 0 < len(failed) <= A_FEW:  # interrupted, refused, broken in earnest
        return code
    print(f"\nOnce more, alone: {', '.join(failed)}", flush=True)
    again = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *failed]
    if (repeated := subprocess.run(again).returncode) != 0:
        return repeated
    print("UNSTEADY, failed among the others and passed alone. Look into each; its failure is told above:")
    print("\n".join(f"  {test}" for test in failed))
    return 0


def _failed() -> list[str]:
    return sorted(json.loads(_FAILED.read_text())) if _FAILED.exists() else []


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
