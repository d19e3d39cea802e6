"""Who does not use it does not pay for it: nothing is imported, and a missing package is told of in a sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast import ConfigError, Holdfast
from holdfast.app import log_output
from holdfast.observability import exposition, metrics_of


@pytest.mark.parametrize("package", ["prometheus_client", "structlog", "opentelemetry"])
def test_it_is_imported_only_when_it_is_used(package: str) -> None:
    code = (
        "import asyncio, sys, holdfast.observability, holdfast.cli.commands\n"
        "from holdfast import Holdfast\n"
        "hf = Holdfast(':memory:')\n"
        "async def main():\n"
        "    async with hf, hf.worker(): await holdfast.observability.readiness(hf)\n"
        "asyncio.run(main())\n"
        f"sys.exit({package!r} in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.setattr(exposition.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'holdfast\[metrics\]'"):
        metrics_of(Holdfast(":memory:"))
    monkeypatch.setitem(sys.modules, "structlog", None)
    with pytest.raises(ConfigError, match=r"pip install 'holdfast\[logs\]'"):
        log_output.formatter("json")
