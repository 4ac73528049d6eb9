"""Put a package where Python finds it, as pip would, but without the network: ``python installing.py FOLDER SITE``."""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def install(package: Path, to: Path, place: Callable[[Path, Path], Any] = shutil.copy) -> dict[str, Any]:
    """Put a template's package into the folder ``to``, and return what its ``pyproject.toml`` says."""
    settings = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    for module in settings["tool"]["setuptools"]["py-modules"]:
        place(package / f"{module}.py", to / f"{module}.py")
    info = to / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    header = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(header, encoding="utf-8")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return settings


if __name__ == "__main__":
    install(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), lambda source, link: link.symlink_to(source))
