"""The OpenAPI document and the API say the same: what schemathesis makes of the one, tried on the other.

Whether a call fits its task is for the task to say, and no schema of the API does; so a request that fits the document
may be refused with 422, and the check that forbids it is left out. All others are on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = os.environ.get("HOLDFAST_TEST_EXAMPLES", "20")
LEFT_OUT = "positive_data_acceptance"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("phases", ["examples,coverage", "fuzzing", "stateful"])
def test_no_request_breaks_the_api_or_the_document(phases: str, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    command = [sys.executable, "-m", "tests.http.schema_server"]
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        address, key = server.stdout.readline().split()
        script = Path(sys.executable).with_name("schemathesis")
        ended = subprocess.run(
            [
                script, "run", f"{address}/openapi.json", "-H", f"Authorization: Bearer {key}", "--phases", phases,
                "--exclude-checks", LEFT_OUT, "--max-examples", EXAMPLES, "--seed", "20261118", "--no-color",
            ],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        server.communicate()
    assert ended.returncode == 0, ended.stdout[-20_000:]
    assert server.returncode == 0
