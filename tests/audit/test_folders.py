"""A folder stands for the files in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fairopt import audit
from fairopt.audit.explaining import explain
from fairopt.datasets import dataset_path
from fairopt.errors import BadInput

SAMPLES = dataset_path("SOURCES.md").parent / "clusters"
NAMES = ("sshare.txt", "assoc.txt", "nodes.txt", "qos.txt", "squeue.txt")


def test_a_folder_is_the_files_in_it(tmp_path: Path) -> None:
    for name in NAMES:
        shutil.copy(SAMPLES / "slurm" / name, tmp_path)
    found = audit(tmp_path, policies=[])
    assert found.source == "slurm"
    assert found.to_json() == audit(sorted(tmp_path.iterdir()), policies=[]).to_json()
    name = found.market.users[0]
    assert explain(tmp_path, name, policies=[]).row.name == name


def test_what_nobody_reads_in_a_folder_is_named(tmp_path: Path) -> None:
    for name in NAMES:
        shutil.copy(SAMPLES / "slurm" / name, tmp_path)
    (tmp_path / "notes.md").write_text("# To do\n\nAsk for more GPUs.\n")
    found = audit(tmp_path, policies=[])
    assert [each.value for each in found.unplaced if each.place == "the folder"] == ["notes.md"]
    assert audit(tmp_path, importer="slurm", policies=[]).unplaced == found.unplaced


def test_a_folder_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no file in it"):
        audit(tmp_path)
