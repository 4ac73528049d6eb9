"""Coq is asked once about all theorems, for all tests and processes: to load its libraries takes most of the time."""

from __future__ import annotations

import fcntl
import json
import os
import shutil

import pytest

from fairopt.proofs.ledger import citing, coq


@pytest.fixture(scope="session")
def said_by_coq(theorems_compiled: None, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str] | None:
    """Return what each statement of the house rests on; None where Coq is not installed."""
    if shutil.which("coqtop") is None:
        return None
    sources = {path.stem: coq.Source.read(path.read_text(encoding="utf-8")) for path in citing.THEOREMS.glob("*.v")}
    assert all(map(citing._up_to_date, sources)), "a theorem does not compile: make proofs"
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
    if said_by_coq is not None:
        monkeypatch.setattr(citing, "_rests_on", lambda file, name: said_by_coq[file, name])
