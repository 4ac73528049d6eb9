"""Coq is asked once about all theorems, for all tests and processes: to load its libraries takes most of the time.

`make proofs` compiles the theorems. Where it was not run, a row that leans on one is skipped: to compile them takes
longer than all other tests of the ledger.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil

import pytest

from fairopt.proofs.ledger import citing, coq


@pytest.fixture(scope="session")
def said_by_coq(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str] | None:
    """Return what each statement of the house rests on; None where Coq is not there, or has not compiled them."""
    sources = {path.stem: coq.Source.read(path.read_text(encoding="utf-8")) for path in citing.THEOREMS.glob("*.v")}
    if shutil.which("coqtop") is None or not all(map(citing._up_to_date, sources)):
        return None
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all processes
    with (folder / "said_by_coq.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # held until the file is closed
        path = folder / "said_by_coq.json"
        if not path.exists():
            asked = {file: [each.name for each in source.statements] for file, source in sources.items()}
            answers = coq.rests_on(citing.THEOREMS, asked)
            path.write_text(json.dumps([[*key, said] for key, said in answers.items()]), encoding="utf-8")
        return {(file, name): said for file, name, said in json.loads(path.read_text(encoding="utf-8"))}


@pytest.fixture
def coq_is_asked_once(said_by_coq: dict[tuple[str, str], str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `citing.theorem` ask what Coq has said; skip a test that asks where Coq has said nothing."""

    def rests_on(file: str, name: str) -> str:
        if said_by_coq is None:
            pytest.skip("its theorem is not compiled by Coq: make proofs")
        return said_by_coq[file, name]

    monkeypatch.setattr(citing, "_rests_on", rests_on)
