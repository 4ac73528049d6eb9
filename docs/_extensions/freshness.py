"""A digest of the code that pages run, so that what was kept from an earlier build counts only for the same code."""

from __future__ import annotations

import hashlib
from pathlib import Path

#: Where code and data lie that pages, notebooks and pictures use.
ROOMS = ("fairopt", "models", "proofs", "benchmarks")
KINDS = {".py", ".toml", ".csv", ".json", ".v"}


def digest(root: Path) -> str:
    """Return a short SHA-256 over names and contents of all code and data below the root's rooms."""
    found = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix in KINDS and path.is_file():
                found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]
