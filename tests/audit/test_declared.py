"""What a file's own status states is computed again: a number that is changed there is found, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.alternatives import compared
from fairopt.datasets import dataset_path
from fairopt.discovery import IMPORTERS, load
from fairopt.importing.imported import read_with
from fairopt.models import SlurmFairTree, SlurmMultifactor
from fairopt.report import Statement

SAMPLES = Path(dataset_path("SOURCES.md")).parent / "clusters"


def values(name: str, *files: Path) -> list[Statement]:
    found = read_with(load(IMPORTERS, name), files)
    return list(compared(EntitlementAccounts(found.problem), found.declared, [], found.counted))


def queue(document: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    return next(each for each in document["items"] if (each["kind"], each["metadata"]["name"]) == (kind, name))


def kueue_total(document: dict[str, Any]) -> None:
    status = queue(document, "ClusterQueue", "nlp")["status"]
    flavor = next(each for each in status["flavorsUsage"] if each["name"] == "h100")
    next(each for each in flavor["resources"] if each["name"] == "nvidia.com/gpu")["total"] = "25"


def kueue_waiting(document: dict[str, Any]) -> None:
    queue(document, "ClusterQueue", "nlp")["status"]["pendingWorkloads"] = 5


def kueue_not_let_run(document: dict[str, Any]) -> None:
    """A workload of nlp has quota, and an admission check holds it: usage is what the other takes."""
    works = [each for each in document["items"] if each["kind"] == "Workload"]
    own = next(each for each in works if each["status"].get("admission", {}).get("clusterQueue") == "nlp")
    own["status"]["conditions"] = [{"type": "Admitted", "status": "False"}]


def volcano_running(document: dict[str, Any]) -> None:
    queue(document, "Queue", "language")["status"]["running"] = 3


def kai_requested(document: dict[str, Any]) -> None:
    queue(document, "Queue", "research")["status"]["requested"]["nvidia.com/gpu"] = "23"


@pytest.mark.parametrize(
    ("name", "sample", "change", "said"),
    [
        ("kueue", "kueue/cluster.json", kueue_total, ["nlp, flavorsUsage nvidia.com/gpu:h100 total: the file says 25"]),
        ("kueue", "kueue/cluster.json", kueue_waiting, ["nlp, pendingWorkloads: the file says 5"]),
        ("volcano", "volcano/capacity.json", volcano_running, ["language, running: the file says 3"]),
        ("kai", "kai/cluster.yaml", kai_requested, ["research, requested h100: the file says 23"]),
    ],
)
def test_a_changed_status_is_found(
    name: str, sample: str, change: Callable[[dict[str, Any]], None], said: list[str], tmp_path: Path
) -> None:
    assert not [str(each) for each in values(name, SAMPLES / sample) if each.differs]
    document = yaml.safe_load((SAMPLES / sample).read_text())
    change(document)
    (tmp_path / "now.json").write_text(json.dumps(document))
    wrong = [str(each) for each in values(name, tmp_path / "now.json") if each.differs]
    assert [each.partition(", the sum")[0] for each in wrong] == said


def test_a_workload_that_a_check_holds_has_quota_and_does_not_run(tmp_path: Path) -> None:
    document = json.loads((SAMPLES / "kueue/cluster.json").read_text())
    kueue_not_let_run(document)
    (tmp_path / "now.json").write_text(json.dumps(document))
    wrong = [each.what for each in values("kueue", tmp_path / "now.json") if each.differs]
    assert "admittedWorkloads" in wrong
    assert "reservingWorkloads" not in wrong
    assert {each.partition(" ")[0] for each in wrong} == {"admittedWorkloads", "flavorsUsage"}


def test_what_yarn_says_is_used_is_the_dominant_part_of_a_partition(tmp_path: Path) -> None:
    config, status = SAMPLES / "yarn/capacity-scheduler.xml", SAMPLES / "yarn/scheduler.json"
    found = [
        each for each in values("yarn", config, status) if "absoluteUsed" in each.what and each.computed is not None
    ]
    assert (len(found), [str(each) for each in found if each.differs]) == (7, [])
    text = status.read_text()
    assert '"absoluteUsedCapacity": 62.5' in text
    (tmp_path / "scheduler.json").write_text(text.replace('"absoluteUsedCapacity": 62.5', '"absoluteUsedCapacity": 60'))
    wrong = [each for each in values("yarn", config, tmp_path / "scheduler.json") if each.differs]
    assert "absoluteUsedCapacity of a100: the file says 60" in str(wrong[0])


def test_columns_of_sshare_are_computed_under_the_rule_that_agrees(tmp_path: Path) -> None:
    text = (SAMPLES / "slurm/sshare.txt").read_text()
    (tmp_path / "sshare.txt").write_text(text.replace("0.888889||0.843750", "0.8||0.843750"))
    found = read_with(load(IMPORTERS, "slurm"), [tmp_path / "sshare.txt"])
    both = compared(
        EntitlementAccounts(found.problem), found.declared, [SlurmFairTree(), SlurmMultifactor()], found.counted
    )
    [wrong] = [each for each in both if each.differs]
    assert str(wrong) == "hep, EffectvUsage: the file says 0.8, slurm-fair-tree computes 0.888889"
