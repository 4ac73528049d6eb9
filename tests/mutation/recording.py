"""A plugin of pytest: what tests give to the verifiers is kept, each as the file that would be decided.

``MUTATION_CORPUS`` names the folder. A file is called by what is in it; ``given.jsonl`` says at what tolerance it was
given, and by which test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

#: Longer files are decided by other tests; here they would take too long for every mutant.
LONGEST = 100_000


def pytest_configure() -> None:
    from fairopt.proofs.verifier import certificates, front, runs, schedules

    for module, name, by in (
        *((certificates, "verify", _as_json), (schedules, "judged", _as_json)),
        *((runs, "decide", _as_text), (schedules, "decide", _as_text)),
        *((runs, "decide_file", _as_file), (front, "decide", _as_file)),
    ):
        setattr(module, name, _kept(getattr(module, name), by))


def _kept(decide: Callable[..., Any], read: Callable[[Any], bytes]) -> Callable[..., Any]:
    def kept(given: Any, tolerance: Fraction | None = None) -> Any:
        with suppress(OSError, TypeError, ValueError, RecursionError):  # what no file can hold
            keep(read(given), tolerance)
        return decide(given) if tolerance is None else decide(given, tolerance)

    return kept


def keep(data: bytes, tolerance: Fraction | None) -> None:
    """Write a file of the corpus, and who gave it."""
    if len(data) <= LONGEST:
        folder, at = Path(os.environ["MUTATION_CORPUS"]), None if tolerance is None else str(tolerance)
        name, test = sha256(data + str(at).encode()).hexdigest()[:16], os.environ.get("PYTEST_CURRENT_TEST", "")
        (folder / name).write_bytes(data)
        with (folder / "given.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([name, at, test.partition(" ")[0]]) + "\n")


def _as_json(data: Any) -> bytes:
    return json.dumps(data).encode()


def _as_text(written: str) -> bytes:
    return written.encode()


def _as_file(path: Path) -> bytes:
    return path.read_bytes()
