"""A digest of the code that pages run, so that what was kept from an earlier build counts only for the same code."""

from __future__ import annotations

import hashlib
from pathlib import Path

#: Where code and data lie that pages, notebooks and pictures use.
ROOMS = ("fairopt", "models", "proofs", "benchmarks")
KINDS = {".py", ".toml", ".csv", ".json", ".v"}


def digest(root: Path) -> str:
    """Return a short SHA-256 over all code and data below the root's rooms, and the versions of libraries."""
    found = hashlib.sha256()
    files = [path for room in ROOMS for path in sorted((root / room).rglob("*")) if path.suffix in KINDS]
    for path in [root / "constraints.txt", *files]:
        if path.is_file():
            found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]
