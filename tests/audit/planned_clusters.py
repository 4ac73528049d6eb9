"""Random clusters as the files of each scheduler, and what its objects make of them when they are applied."""

from __future__ import annotations

import json
import random
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fairopt.importing.yarn_objects import PREFIX, properties

TYPES = ("a100", "h100")
NAMES = ("ada", "bo", "cem", "dia", "eve", "fay")


class Written(NamedTuple):
    """A cluster's files, and the rows of a table of throughputs that name its users or groups."""

    files: list[Path]
    rows: list[str]
    types: tuple[str, ...] = TYPES


def _saved(path: Path, items: Any) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def _node(name: str, kind: str, gpus: int, resource: str = "nvidia.com/gpu", **labels: str) -> dict[str, Any]:
    there = {"cpu": "64", "memory": "512Gi", resource: str(gpus)}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": there, "capacity": there, "conditions": ready}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


# -- Kueue ---------------------------------------------------------------------------------------------------------
def kueue(folder: Path, draw: random.Random) -> Written:
    items, users = [], NAMES[: draw.randint(2, 5)]
    beside = draw.random() < 0.5  # CPU is in the flavors of GPUs, or in one of its own
    for number, name in enumerate(users):
        flavors = []
        for kind in TYPES if number == 0 or draw.random() < 0.8 else TYPES[:1]:
            quota: dict[str, Any] = {"name": "nvidia.com/gpu", "nominalQuota": draw.randint(1, 12)}
            if draw.random() < 0.4:
                quota["borrowingLimit"] = draw.randint(0, 9)
            if draw.random() < 0.4:
                quota["lendingLimit"] = draw.randint(0, quota["nominalQuota"])
            own = [{"name": "cpu", "nominalQuota": draw.choice(["64", "17500m"])}] if beside else []
            flavors.append({"name": kind, "resources": [quota, *own]})
        groups = [{"coveredResources": ["nvidia.com/gpu", *(["cpu"] if beside else [])], "flavors": flavors}]
        if not beside:
            cores = [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": "100"}]}]
            groups.append({"coveredResources": ["cpu"], "flavors": cores})
        spec = {"cohortName": draw.choice(["one", "one", "two"]), "resourceGroups": groups}
        spec["fairSharing"] = {"weight": str(draw.randint(1, 4))}
        items.append(_kueue("ClusterQueue", name, spec))
    items.append(_kueue("Cohort", "one", {"parentName": "top"}))
    own = [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": draw.randint(0, 4)}]}]
    items.append(
        _kueue("Cohort", "top", {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": own}]})
    )
    return Written([_saved(folder / "cluster.json", items)], list(users))


def _kueue(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return an object with another's fields in place of its own, and without those that are null there."""
    out = dict(old)
    for key, value in new.items():
        out[key] = _merged(out.get(key) or {}, value) if isinstance(value, dict) else value
    return {key: value for key, value in out.items() if value is not None}


def _apply_objects(written: Written, text: str) -> Written:
    """Apply objects as ``kubectl apply --server-side`` does: fields that are given replace those that are there."""
    path = written.files[0]
    items = json.loads(path.read_text())["items"]
    docs = [each for each in yaml.safe_load_all(text) if each]
    new = [each for doc in docs for each in doc.get("items", [doc])]
    at = {(each["kind"], each["metadata"]["name"]): place for place, each in enumerate(items)}
    for each in new:
        place = at[each["kind"], each["metadata"]["name"]]
        items[place] = _merged(items[place], each)
    _saved(path, items)
    return written


# -- KAI -----------------------------------------------------------------------------------------------------------
def kai(folder: Path, draw: random.Random) -> Written:
    items = [_node(f"n-{kind}", kind, draw.randint(4, 24), **{"kai.scheduler/node-pool": kind}) for kind in TYPES]
    rows = []
    for name in NAMES[: draw.randint(2, 4)]:
        own = [f"{name}-{kind}" for kind in TYPES if kind == "a100" or draw.random() < 0.8]
        rows.append(" + ".join(own))
        for queue in own:
            quota = {"quota": draw.randint(1, 8), "overQuotaWeight": 1, "limit": draw.choice([-1, 6, 12])}
            spec = {"parentQueue": f"all-{queue.rpartition('-')[2]}", "resources": {"gpu": quota}}
            items.append(_kai(queue, spec))
    for kind in TYPES:
        top = {"quota": -1, "overQuotaWeight": 1, "limit": -1}
        items.append(_kai(f"all-{kind}", {"resources": {"gpu": top, "cpu": top, "memory": top}}))
    return Written([_saved(folder / "cluster.json", items)], rows)


def _kai(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    labels = {"kai.scheduler/node-pool": name.rpartition("-")[2]}
    metadata = {"name": name, "labels": labels, "creationTimestamp": "2026-08-01T09:00:00Z"}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": metadata, "spec": spec}


# -- Volcano -------------------------------------------------------------------------------------------------------
def volcano(folder: Path, draw: random.Random) -> Written:
    resources = [f"nvidia.com/{kind}" for kind in TYPES]
    items = [_node(name, name, draw.randint(4, 24), name) for name in resources]
    users = NAMES[: draw.randint(2, 5)]
    for number, name in enumerate(users):
        deserved = {each: str(draw.randint(1, 8)) for each in resources if number == 0 or draw.random() < 0.8}
        spec: dict[str, Any] = {"weight": draw.randint(1, 4), "deserved": deserved}
        if draw.random() < 0.5:
            spec["parent"] = "team"
        if deserved and draw.random() < 0.4:
            spec["guarantee"] = {"resource": {min(deserved): "1"}}
        if deserved and draw.random() < 0.4:
            spec["capability"] = {each: str(int(count) + draw.randint(0, 4)) for each, count in deserved.items()}
        items.append(_volcano(name, spec))
    items.append(_volcano("team", {"weight": 1, "parent": "root"}))
    items.append(_volcano("root", {"weight": 1}))
    return Written([_saved(folder / "cluster.json", items)], list(users), tuple(resources))


def _volcano(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


# -- YARN ----------------------------------------------------------------------------------------------------------
def yarn(folder: Path, draw: random.Random) -> Written:
    users, root = NAMES[: draw.randint(2, 4)], "accessible-node-labels"
    given = {"root.queues": ",".join((*users[1:], "team")), "root.team.queues": users[0], f"root.{root}": "*"}
    paths = [f"root.team.{users[0]}", *(f"root.{name}" for name in users[1:])]
    total = {"": draw.randint(4, 24), "h100": draw.randint(4, 24)}
    for label in total:
        place = f"{root}.{label}." if label else ""
        given |= {f"root.{place}capacity": "100", f"{paths[0]}.{place}capacity": "100"}
        cuts = sorted(draw.sample(range(1, 100), len(users) - 1))
        shares = [high - low for low, high in zip([0, *cuts], [*cuts, 100], strict=True)]
        for path, share in zip(["root.team", *paths[1:]], shares, strict=True):
            given[f"{path}.{place}capacity"] = str(share)
            if draw.random() < 0.4:
                given[f"{path}.{place}maximum-capacity"] = str(draw.randint(share, 100))
    by_label = [{"partitionName": label, "effectiveMinResource": _amounts(gpus)} for label, gpus in total.items()]
    info = {"type": "capacityScheduler", "queueName": "root", "capacities": {"queueCapacitiesByPartition": by_label}}
    cluster = folder / "scheduler.json"
    cluster.write_text(json.dumps({"scheduler": {"schedulerInfo": info}}))
    return Written([_config(folder, given), cluster], paths, ("default", "h100"))


def _amounts(gpus: int) -> dict[str, Any]:
    named = {"memory-mb": 64 * 1024, "vcores": 128, "yarn.io/gpu": gpus}
    rows = [{"name": name, "value": value} for name, value in named.items()]
    return {"resourceInformations": {"resourceInformation": rows}}


def _config(folder: Path, given: dict[str, str]) -> Path:
    path = folder / "capacity-scheduler.xml"
    rows = (f"<property><name>{PREFIX}{name}</name><value>{value}</value></property>" for name, value in given.items())
    path.write_text(f"<configuration>{''.join(rows)}</configuration>")
    return path


def _apply_properties(written: Written, text: str) -> Written:
    path = written.files[0]
    given = {name.removeprefix(PREFIX): value for name, value in properties(path).items()}
    change = path.with_name("change.xml")
    change.write_text(text or "<configuration></configuration>")
    new = {name.removeprefix(PREFIX): value for name, value in properties(change).items()}
    gone = {name.removeprefix(PREFIX) for name in re.findall(r"<!-- remove (\S+) -->", text)}
    _config(path.parent, {name: value for name, value in (given | new).items() if name not in gone})
    return written


# -- Armada --------------------------------------------------------------------------------------------------------
def armada(folder: Path, draw: random.Random) -> Written:
    nodes = [_node(f"n-{kind}", kind, draw.randint(4, 24), **{"nvidia.com/gpu.product": kind}) for kind in TYPES]
    users = NAMES[: draw.randint(2, 5)]
    queues = {"queues": [{"name": name, "priorityFactor": draw.choice([0.5, 1, 2, 2.5])} for name in users]}
    return Written([_saved(folder / "cluster.json", [queues, *nodes])], list(users))


def _apply_queues(written: Written, text: str) -> Written:
    path = written.files[0]
    items = json.loads(path.read_text())["items"]
    new = {each["name"]: each for each in yaml.safe_load_all(text) if each}
    items[0]["queues"] = [each | new.get(each["name"], {}) for each in items[0]["queues"]]
    _saved(path, items)
    return written


# -- Slurm ---------------------------------------------------------------------------------------------------------
def slurm(folder: Path, draw: random.Random) -> Written:
    nodes = folder / "nodes.txt"
    nodes.write_text(
        "".join(
            f"NodeName={kind} Arch=x86_64\n   Gres=gpu:{kind}:{draw.randint(4, 24)}\n   RealMemory=1 AllocMem=0\n"
            f"   State=IDLE ThreadsPerCore=1\n   Partitions=all\n   CfgTRES=cpu=8,mem=1M\n   AllocTRES=\n\n"
            for kind in TYPES
        )
    )
    tree = [["root", "", "", "", "1", ""], ["root", "root", "", "root", "1", ""]]
    tops = ["root", "root"]
    for number, name in enumerate(accounts := [f"lab{at}" for at in range(draw.randint(2, 4))]):
        above = draw.choice([*tops, *accounts[:number][-1:]])
        limit = draw.choice(["", "", "gres/gpu:h100=3", "gres/gpu=5", "cpu=64"])
        tree.append([name, "", "", above, str(draw.randint(1, 9)), limit])
    inner = {row[3] for row in tree if not row[1]}
    for number, user in enumerate(NAMES):
        account = accounts[number % len(accounts)]
        share = draw.choice(["1", "2", "3" if account in inner else "parent"])  # of which nobody says a part
        tree.append([account, user, "", "", share, draw.choice(["", "", "gres/gpu=4"])])
    rows = [name for name in accounts if name not in inner]
    rows += [f"{row[0]}/{row[1]}" for row in tree if row[1] and row[0] in inner and row[1] != "root"]
    return Written([_associations(folder, tree), nodes], rows)


def _associations(folder: Path, tree: list[list[str]]) -> Path:
    head = ["Account", "User", "Partition", "ParentName", "Share", "GrpTRES"]
    path = folder / "assoc.txt"
    path.write_text("".join("|".join(["Cluster" if row is head else "c", *row]) + "\n" for row in (head, *tree)))
    return path


def _apply_commands(written: Written, text: str) -> Written:
    """Do what ``sacctmgr modify`` does: set shares, and limits one by one; -1 clears one."""
    path = written.files[0]
    tree = [line.split("|")[1:] for line in path.read_text().splitlines()[1:]]
    for line in text.splitlines():
        words = shlex.split(line)
        if not words or words[0].startswith("#"):
            continue
        assert words[:3] == ["sacctmgr", "-i", "modify"], line
        where = dict(each.split("=", 1) for each in words[words.index("where") + 1 : words.index("set")])
        account = where.get("account", where["name"])
        [row] = [r for r in tree if r[0] == account and r[1] == (where["name"] if words[3] == "user" else "")]
        for each in words[words.index("set") + 1 :]:
            key, value = each.split("=", 1)
            if key == "fairshare":
                row[4] = value
                continue
            assert key == "GrpTRES", line
            limits = dict(one.split("=") for one in row[5].split(",") if one)
            limits |= dict(one.split("=") for one in value.split(","))
            row[5] = ",".join(f"{name}={count}" for name, count in limits.items() if count != "-1")
    _associations(path.parent, tree)
    return written


SCHEDULERS = {
    "kueue": (kueue, _apply_objects),
    "kai": (kai, _apply_objects),
    "volcano": (volcano, _apply_objects),
    "yarn": (yarn, _apply_properties),
    "armada": (armada, _apply_queues),
    "slurm": (slurm, _apply_commands),
}
