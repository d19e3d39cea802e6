"""What `pip install` stands for where no package index can be reached; see `walk`. Not a part of Holdfast.

A directory has to hold a project with the extra that is asked for; anything else has to be importable. Then the active
environment finds what this one has, and gets the commands.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tomllib
from importlib.metadata import entry_points
from pathlib import Path


def install(requirement: str, environment: Path) -> None:
    path, extra = re.fullmatch(r"([^\[]+)(?:\[(\w+)\])?", requirement).groups()  # type: ignore[union-attr]
    if os.sep in path:
        project = tomllib.loads((Path(path) / "pyproject.toml").read_text("utf-8"))["project"]
        assert extra is None or extra in project["optional-dependencies"], f"there is no extra {extra}"
        commands, sources = project["scripts"], [str((Path(path) / "src").resolve())]
    else:
        commands = {each.name: each.value for each in entry_points(group="console_scripts", name=path)}
        sources = []
    assert commands, f"{requirement} has no command"
    [packages] = environment.glob("lib/python*/site-packages")
    with (packages / "stand_in.pth").open("a") as paths:
        paths.write("\n".join([*sources, sysconfig.get_path("purelib"), ""]))
    for name, target in commands.items():
        module, _, function = target.partition(":")
        script = environment / "bin" / name
        python = environment / "bin" / "python"
        script.write_text(f"#!{python}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        script.chmod(0o755)


if __name__ == "__main__":
    for word in sys.argv[2:]:
        if not word.startswith("-"):
            install(word, Path(os.environ["VIRTUAL_ENV"]))
