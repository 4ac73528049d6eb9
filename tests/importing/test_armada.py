"""Armada's files: what is taken, what is named as having no place, and that nothing breaks on bad ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import CHANGES, STRANGE, Spot, answered_or_refused, mutated, spots

from fairopt.audit.settings import read_setting, with_settings
from fairopt.errors import BadInput, NotCapable
from fairopt.importing import armada
from fairopt.importing.armada_objects import FIELDS, emit
from fairopt.importing.documents import found_in
from fairopt.importing.imported import read_with
from fairopt.importing.unplaced import TAKEN
from fairopt.problem import Gangs, Market
from fairopt.program import INFINITY

SAMPLES = Path(str(files("fairopt.datasets") / "clusters" / "armada"))
CLUSTER, SCHEDULER, SUBMIT = SAMPLES / "cluster.json", SAMPLES / "scheduler.yaml", SAMPLES / "submit.yaml"
WHOLE = json.loads(CLUSTER.read_text())


def by_name(gangs: Gangs) -> dict[str, tuple[Any, ...]]:
    return {
        name: tuple(row)
        for name, *row in zip(gangs.names, gangs.gpus, gangs.on, gangs.tier, gangs.preemptible, strict=True)
    }


def test_a_queue_is_a_user_and_one_over_its_priority_factor_its_weight() -> None:
    market: Market = armada.read(CLUSTER, SCHEDULER, SUBMIT).problem
    assert market.users == ("research", "students", "serving", "retired", "vision")
    assert market.weight.tolist() == [1, Fraction(2, 5), 2, Fraction(1, 1000), 1]
    assert (market.types, market.capacity.tolist()) == (("A100", "H100"), [16, 8])
    owed = market.entitlements
    assert owed is not None
    assert owed.columns == ("A100", "H100", "cpu:pool", "memory:pool")
    assert not owed.guarantee.any()
    assert owed.stock.tolist() == [224, 1664 * 2**30]
    assert owed.held.tolist()[1] == [2, 0, 16, 128 * 2**30]
    assert not market.known.any()


def test_limits_of_the_classes_of_a_queues_jobs_are_added_up_and_its_own_go_before(tmp_path: Path) -> None:
    """research: 1/2 of 24 GPUs, 4/10 of 224 cores; no memory limit of the class it runs in."""
    owed = armada.read(CLUSTER, SCHEDULER).problem.entitlements
    assert owed.cap.tolist()[0] == [12, 8, Fraction(448, 5), INFINITY]
    assert owed.cap.tolist()[2] == [6, 6, INFINITY, INFINITY]  # serving: all of its jobs are of the class with a limit
    assert owed.cap.tolist()[1::2] == [[INFINITY] * 4] * 2  # of its jobs' class there is no limit, or it has no jobs
    document = json.loads(CLUSTER.read_text())
    job = next(each["jobDetails"]["01j001"] for each in document["items"] if "jobDetails" in each)
    both = {"jobs": [{"clientId": "other", "podSpecs": job["jobSpec"]["podSpecs"]}], "queue": "research"}
    both["jobs"][0]["podSpecs"][0]["priorityClassName"] = "armada-default"
    path = tmp_path / "submitted.json"
    path.write_text(json.dumps(both))
    owed = armada.read(CLUSTER, SCHEDULER, path).problem.entitlements
    assert owed.cap.tolist()[0] == [15, 8, 112, INFINITY]  # (1/2 + 1/8) of 24 GPUs, (4/10 + 1/10) of 224 cores


def test_jobs_with_one_id_are_a_gang() -> None:
    gangs = by_name(armada.read(CLUSTER, SCHEDULER, SUBMIT).problem.entitlements.gangs)
    assert gangs["pretrain"] == (8, 0, 1000, True)
    assert gangs["sweep"] == (8, -1, 1000, True)
    assert gangs["segment-1"] == (4, -1, 1000, True)
    assert gangs["01j004"] == (2, 1, 2000, False)
    assert gangs["01j012"] == (0, 0, 1000, True)  # it takes CPUs only
    assert not {"01j010", "01j011"} & gangs.keys()  # done; and waiting in a cordoned queue


def test_a_gang_called_like_a_job_is_not_that_job(tmp_path: Path) -> None:
    """A job that is alone was once kept as "job NAME" beside the gangs, which may be called so."""

    def edit(items: list[Any]) -> None:
        notes = {"armadaproject.io/gangId": "job 01j009", "armadaproject.io/gangCardinality": "1"}
        items[1]["jobDetails"]["01j008"]["jobSpec"]["annotations"] = notes

    gangs = armada.read(_edited(tmp_path, edit), SCHEDULER).problem.entitlements.gangs
    assert {"01j008", "01j009"} <= set(gangs.names)


def test_gangs_of_one_name_are_called_by_queue_and_state(tmp_path: Path) -> None:
    def edit(items: list[Any]) -> None:
        jobs = items[1]["jobDetails"]
        for name in ("a", "b"):
            jobs[name] = {**copy.deepcopy(jobs["01j008"]), "jobId": name}
            jobs[name]["jobSpec"]["annotations"] = {"armadaproject.io/gangId": "pretrain"}

    gangs = armada.read(_edited(tmp_path, edit), SCHEDULER).problem.entitlements.gangs
    assert {"research pretrain runs A100", "serving pretrain waits"} <= set(gangs.names)


def test_a_gang_may_run_where_all_its_jobs_may() -> None:
    gangs = armada.read(CLUSTER, SCHEDULER, SUBMIT).problem.entitlements.gangs
    assert gangs.allowed[gangs.names.index("segment-1")].tolist() == [True, False]


def test_a_lower_job_priority_goes_first() -> None:
    gangs = armada.read(CLUSTER, SCHEDULER).problem.entitlements.gangs
    since = dict(zip(gangs.names, gangs.since, strict=True))
    assert since["01j009"] < since["01j008"]


def test_what_has_no_place_is_named_once() -> None:
    said = [str(each) for each in armada.read(CLUSTER, SCHEDULER, SUBMIT).unplaced]
    for words in (
        "affinity",
        "cordoned",
        "neither waits nor runs",
        "awayNodeTypes",
        "priceBand",
        "of all types together",
    ):
        assert sum(words in each for each in said) >= 1, words
    assert not any("no field that is known here" in each for each in said)
    assert len(said) < 40


def test_every_field_of_the_named_types_occurs_in_the_samples() -> None:
    def paths(value: Any, known: frozenset[str], at: str = "") -> set[str]:
        if at in known:
            return {at}
        if isinstance(value, dict):
            return {p for key, each in value.items() for p in paths(each, known, f"{at}.{key}" if at else key)}
        return {p for each in value for p in paths(each, known, f"{at}[]")} if isinstance(value, list) else set()

    seen: dict[str, set[str]] = {kind: set() for kind in FIELDS}
    for file in (CLUSTER, SCHEDULER, SUBMIT):
        for value in (each.value for each in found_in(file)):
            for kind, found in (
                ("Queue", value.get("queues", [value] if value.get("kind") == "Queue" else [])),
                ("job", value.get("jobDetails", {}).values()),
                ("submitted job", value.get("jobs", [])),
                ("scheduling", [value["scheduling"]] if "scheduling" in value else []),
                ("priority class", value.get("scheduling", {}).get("priorityClasses", {}).values()),
            ):
                for each in found:
                    seen[kind] |= paths(each, frozenset(FIELDS[kind]))
    spelt = {name for name in FIELDS["job"] if name.startswith("jobSpec.podSpec.")}  # deprecated; podSpecs has them
    # of Kubernetes' own PodSpec what is read is enough
    pods = {name for name, why in FIELDS["job"].items() if "podSpecs[]." in name and why != TAKEN}
    assert FIELDS["job"].keys() - seen["job"] - spelt - pods == {
        "jobSpec.podSpecs[].containers[].restartPolicy", "jobSpec.podSpecs[].initContainers[].restartPolicy",
    }  # fmt: skip
    assert FIELDS["Queue"].keys() - seen["Queue"] == set()
    assert FIELDS["priority class"].keys() - seen["priority class"] == set()
    once = {"indexedNodeLabels", "indexedTaints", "wellKnownNodeTypes", "maximumResourceFractionToScheduleByPool"}
    assert FIELDS["scheduling"].keys() - seen["scheduling"] == once
    own = {name for name in FIELDS["submitted job"] if "." not in name}
    kept = {"created", "id", "jobSetId", "queue", "owner", "queueOwnershipUserGroups"}
    assert own - {path.partition(".")[0] for path in seen["submitted job"]} == kept | {
        "compressedQueueOwnershipUserGroups", "k8sIngress", "k8sService",
    }  # fmt: skip


def _edited(folder: Path, edit: Callable[[list[Any]], object]) -> Path:
    document = copy.deepcopy(WHOLE)
    edit(document["items"])
    path = folder / "edited.json"
    path.write_text(json.dumps(document))
    return path


def test_a_chart_of_helm_holds_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text(
        json.dumps({"applicationConfig": {"scheduling": {"priorityClasses": {"armada-preemptible": {"priority": 7}}}}})
    )
    gangs = by_name(armada.read(CLUSTER, tmp_path / "values.json").problem.entitlements.gangs)
    assert gangs["sweep"] == (8, -1, 7, False)


def test_another_label_says_the_type() -> None:
    assert armada.read(CLUSTER, label="accelerator").problem.types == ("nvidia.com/gpu",)


def test_a_job_on_a_node_that_is_not_given_is_left_out_by_name(tmp_path: Path) -> None:
    def edit(items: list[Any]) -> None:
        items[1]["jobDetails"]["01j003"]["jobRuns"][0]["node"] = "elsewhere"

    found = armada.read(_edited(tmp_path, edit))
    assert "01j003" not in found.problem.entitlements.gangs.names
    assert sum("the type that it runs on is not known" in str(each) for each in found.unplaced) == 1


def test_a_changed_queue_is_written_as_armada_takes_it(tmp_path: Path) -> None:
    """What `emit` writes, read back with the other files, is the changed market; the rest is said in words."""
    before = armada.read(CLUSTER, SCHEDULER).problem
    changes = ["students.weight=1/8", "serving.weight=4"]
    after = with_settings(before, [read_setting(each, before) for each in changes])
    written = {each["name"]: each for each in yaml.safe_load_all(emit(before, after))}
    assert written.keys() == {"students", "serving"}

    def edit(items: list[Any]) -> None:
        for queue in items[0]["queues"]:
            queue.update(written.get(queue["name"], {}))

    read = armada.read(_edited(tmp_path, edit), SCHEDULER).problem
    assert read.entitlements == after.entitlements
    assert emit(before, before) == ""
    capped = with_settings(before, [read_setting("serving.A100.cap=4", before)])
    assert emit(before, capped).startswith("# serving: cap changes; limits are by priority class")
    third = with_settings(before, [read_setting("serving.weight=3", before)])
    with pytest.raises(NotCapable, match="no short decimal"):
        emit(before, third)


def _put(*keys: Any, value: Any) -> Callable[[list[Any]], object]:
    def edit(items: list[Any]) -> None:
        inner: Any = items
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_put(0, "queues", 1, "priorityFactor", value=0), ["queues 2, priorityFactor", "got 0", "above 0"]),
        (_put(0, "queues", 1, "priorityFactor", value="much"), ["queues 2, priorityFactor", "'much'", "number"]),
        (_put(0, "queues", 1, "name", value="research"), ["'research' stands twice", "once"]),
        (_put(0, "queues", value=[]), ["no Queue", "armadactl get queue"]),
        (_put(0, "queues", 0, "cordoned", value="no"), ["cordoned", "'no'", "true or false"]),
        (_put(1, "jobDetails", "01j003", "jobId", value=""), ["without a name", "01j003"]),
        (_put(1, "jobDetails", "01j003", "submittedTs", value="noon"), ["submittedTs", "'noon'", "2026"]),
        (_put(2, "status", "allocatable", "nvidia.com/gpu", value="many"), ["nvidia.com/gpu", "'many'", "quantity"]),
        (lambda items: items.__delitem__(slice(2, None)), ["no nodes", "kubectl get nodes"]),
    ],
)  # fmt: skip
def test_bad_values_are_named_with_place_and_remedy(
    tmp_path: Path, edit: Callable[[list[Any]], object], words: list[str]
) -> None:
    with pytest.raises(BadInput) as caught:
        read_with(armada.read, [_edited(tmp_path, edit)])
    assert all(word in str(caught.value) for word in ["edited.json", *words]), str(caught.value)
    assert str(caught.value).count("edited.json") == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spot=st.sampled_from(spots(WHOLE)), value=STRANGE, how=st.sampled_from(CHANGES))
def test_mutations_are_answered_or_refused(tmp_path: Path, spot: Spot, value: Any, how: str) -> None:
    path = tmp_path / "mutated.json"
    path.write_text(json.dumps(mutated(WHOLE, spot, value, how)))
    answered_or_refused(lambda: armada.read(path, SCHEDULER))
