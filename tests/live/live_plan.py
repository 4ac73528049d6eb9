"""A plan on a live Slurm: 300 short jobs with equal shares, 300 with what `fairopt plan` says, by what `sacct` says.

    make live-plan        # installs Slurm where it is absent; needs root

Three accounts share GPUs of two types, made up. Each time all of them have more jobs than there are GPUs. Of each type
the parts of the GPU seconds are taken from `sacct` alone, as long as all have jobs that wait. The table and the picture
of ``docs/tutorials/cluster-plan.md`` are written again, and what Kueue and KAI do in our models with such a plan.
Exit status: 1 where a part is farther than 5 % from the plan's, or undoing leaves something behind.
"""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from fairopt import decide
from fairopt.audit import SchedulerPlan, plan
from fairopt.audit.reading import read_source
from fairopt.importing.live import SLURM
from fairopt.models import Kai, Kueue
from fairopt.models.kueue.state import Preempts

ROOT = Path(__file__).parents[2]
PAGE, PICTURE = ROOT / "docs/tutorials/cluster-plan.md", ROOT / "docs/_static/plan-live.svg"
BEGIN, END = "<!-- live plan: begin -->", "<!-- live plan: end -->"
POLICY = "oef-cooperative"
GPUS = {"a100": 9, "h100": 6}
#: Throughput on one GPU of each type, and who submits.
SPEED = {"vision": (1.0, 1.4), "speech": (1.0, 2.0), "language": (1.0, 4.0)}
USERS = {account: f"u{number}" for number, account in enumerate(SPEED)}
JOBS, SECONDS = 300, 30
#: How far a measured part of a type may be from the planned one, as a part of it.
NEAR = 0.05


class Ran(NamedTuple):
    """What ``sacct`` says of a job that ran."""

    account: str
    type: str
    start: float
    end: float


class Measured(NamedTuple):
    """GPUs of each type that each account held on average (3, 2), over how many seconds, and how many jobs ran."""

    gpus: Any
    seconds: float
    jobs: int


def table(folder: Path) -> Path:
    """Write the throughputs as a user of `fairopt plan` has them."""
    path = folder / "throughput.csv"
    rows = [["user", *GPUS], *([name, *map(str, speeds)] for name, speeds in SPEED.items())]
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    return path


# -- Slurm ---------------------------------------------------------------------------------------------------------
def exported(slurm: Any, folder: Path) -> list[Path]:
    """Return the files that the documented commands print."""
    files = []
    for name, words in SLURM.items():
        files.append(folder / name)
        files[-1].write_text(slurm.run(*words))
    return files


def begun(slurm: Any) -> None:
    """Begin a cluster in which all accounts have one share."""
    from cluster import Settings

    partitions = [f"PartitionName={kind} Nodes=n-{kind} MaxTime=INFINITE State=UP" for kind in GPUS]
    accounts = [f"add account {name} fairshare=1" for name in SPEED]
    users = [f"add user {USERS[name]} account={name} fairshare=1" for name in SPEED]
    slurm.begin(Settings(backfill=True, weights={"Fairshare": 100_000}, partitions=partitions), accounts + users)


def submitted(slurm: Any, parts: Mapping[str, Sequence[float]]) -> None:
    """Submit jobs to be held, of each account and type as many as it has parts: so all have some to the end."""
    gpus = sum(map(sum, parts.values()))
    for account, row in parts.items():
        counts = np.floor(np.array(row, dtype=float) / gpus * JOBS + 0.5).astype(int)
        for kind, count in zip(GPUS, counts, strict=True):
            own = [f"--uid={USERS[account]}", "-A", account, "-p", kind, f"--gres=gpu:{kind}:1", "-n1", "-o/dev/null"]
            if count:
                slurm.run("sbatch", "--hold", f"--array=1-{count}", *own, "--wrap", f"exec sleep {SECONDS}")


def played(slurm: Any) -> list[Ran]:
    """Let all jobs go at once, wait for them, and return what `sacct` says of them."""
    ids = sorted(set(slurm.run("squeue", "-h", "-o", "%A").split()))
    slurm.run("scontrol", "release", ",".join(ids))
    end = time.monotonic() + 3 * JOBS * SECONDS / sum(GPUS.values()) + 120
    while waiting := slurm.run("squeue", "-h", "-r", "-o", "%A %T %r").strip():
        if time.monotonic() > end:
            raise RuntimeError(f"jobs do not end: {waiting.splitlines()[:5]}")
        time.sleep(5)
    return list(accounted(slurm.run("sacct", "-aXnP", "-o", "Account,AllocTRES,Start,End,State")))


def accounted(text: str) -> Iterator[Ran]:
    """Yield what ``sacct`` printed; every job must have ended well."""
    for line in text.splitlines():
        account, tres, *times, state = line.split("|")
        assert state == "COMPLETED", line
        [kind] = [each for each in GPUS if f"gres/gpu:{each}=1" in tres]
        yield Ran(account, kind, *(datetime.fromisoformat(each).replace(tzinfo=UTC).timestamp() for each in times))


def measured(jobs: Sequence[Ran]) -> Measured:
    """Return the GPUs held on average, from when the first has begun until an account's last on a type begins."""
    begin = min(job.start for job in jobs)
    cells = [[job for job in jobs if (job.account, job.type) == each] for each in product(SPEED, GPUS)]
    end = min(max(job.start for job in cell) for cell in cells if cell)
    held = [sum(max(0.0, min(job.end, end) - max(job.start, begin)) for job in cell) for cell in cells]
    return Measured(np.array(held).reshape(len(SPEED), len(GPUS)) / (end - begin), end - begin, len(jobs))


def with_equal_shares(slurm: Any) -> Measured:
    """Return what was held with equal shares."""
    begun(slurm)
    submitted(slurm, {name: list(GPUS.values()) for name in SPEED})
    return measured(played(slurm))


def with_plan(slurm: Any, folder: Path) -> tuple[SchedulerPlan, Measured, str]:
    """Return the plan, what was held with it, and what undoing left behind."""
    begun(slurm)
    before = slurm.run("sacctmgr", "show", "assoc", "tree", "-P")
    found = plan(exported(slurm, folder), POLICY, table(folder), importer="slurm")
    for line in found.apply.splitlines():
        slurm.run(*shlex.split(line, comments=True))
    submitted(slurm, dict(zip(found.market.users, found.held.astype(float).tolist(), strict=True)))
    planned = measured(played(slurm))
    for line in found.undo.splitlines():
        slurm.run(*shlex.split(line, comments=True))
    after = slurm.run("sacctmgr", "show", "assoc", "tree", "-P")
    return found, planned, "" if before == after else f"{before}\n{after}"


# -- models of Kueue and KAI -----------------------------------------------------------------------------------------
def kueue_objects() -> list[dict[str, Any]]:
    """Return three ClusterQueues of one cohort with equal quotas, each with 100 workloads of one GPU that wait."""
    items: list[dict[str, Any]] = [
        _object("ResourceFlavor", kind, {"nodeLabels": {"gpu": kind}}, "kueue.x-k8s.io/v1beta2") for kind in GPUS
    ]
    for name in SPEED:
        flavors = [
            {"name": kind, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": gpus // len(SPEED)}]}
            for kind, gpus in GPUS.items()
        ]
        spec: dict[str, Any] = {"cohortName": "all", "preemption": {"reclaimWithinCohort": "Any"}}
        spec["resourceGroups"] = [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]
        items.append(_object("ClusterQueue", name, spec, "kueue.x-k8s.io/v1beta2"))
        local = _object("LocalQueue", name, {"clusterQueue": name}, "kueue.x-k8s.io/v1beta2")
        items.append(local | {"metadata": {"name": name, "namespace": name}})
        for number in range(JOBS // len(SPEED)):
            asks = {"resources": {"requests": {"nvidia.com/gpu": "1"}}, "name": "main"}
            pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [asks]}}}
            job = _object(
                "Workload", f"{name}-{number}", {"queueName": name, "podSets": [pods]}, "kueue.x-k8s.io/v1beta2"
            )
            metadata = {"name": f"{name}-{number}", "namespace": name, "creationTimestamp": "2026-11-28T09:00:00Z"}
            items.append(job | {"metadata": metadata})
    return items


def kai_objects() -> list[dict[str, Any]]:
    """Return a queue in each node pool for each of the three, with equal quotas, and 50 pods of one GPU that wait."""
    items: list[dict[str, Any]] = []
    for kind, gpus in GPUS.items():
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"nvidia.com/gpu": str(gpus)}}
        labels = {"kai.scheduler/node-pool": kind}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{kind}", "labels": labels}}
        items.append(node | {"spec": {}, "status": ready})
        for account in SPEED:
            name = f"{account}-{kind}"
            spec = {"resources": {"gpu": {"quota": gpus // len(SPEED), "overQuotaWeight": 1, "limit": -1}}}
            spec["resources"] |= {each: {"quota": -1, "overQuotaWeight": 1, "limit": -1} for each in ("cpu", "memory")}
            queue = _object("Queue", name, spec, "scheduling.run.ai/v2")
            items.append(queue | {"metadata": {"name": name, "labels": labels}})
            for number in range(JOBS // len(SPEED) // len(GPUS)):
                pod = f"{name}-{number}"
                group = _object("PodGroup", pod, {"queue": name, "minMember": 1}, "scheduling.run.ai/v2alpha2")
                items.append(group | {"metadata": {"name": pod, "namespace": "jobs", "labels": labels}})
                asks = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
                metadata = {"name": pod, "namespace": "jobs", "annotations": {"pod-group-name": pod}, "labels": labels}
                spec = {"schedulerName": "kai-scheduler", "containers": [asks]}
                one = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
                items.append(one | {"status": {"phase": "Pending"}})
    return items


def _object(kind: str, name: str, spec: dict[str, Any], version: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


#: Objects, the rule, and what a row of the table is called, by scheduler.
MODELS: Mapping[str, Any] = {
    "kueue": (kueue_objects, Kueue(reclaim_within_cohort=Preempts.ANY), lambda name: name),
    "kai": (kai_objects, Kai(cycles=50), lambda name: "+".join(f"{name}-{kind}" for kind in GPUS)),
}


def in_model(name: str, folder: Path) -> tuple[SchedulerPlan, Any, Any]:
    """Return the plan, and GPUs of each type that our model gives each account (3, 2), before and with the plan."""
    make, rule, called = MODELS[name]
    items = make()
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    rows = [["user", *GPUS], *([called(each), *map(str, speeds)] for each, speeds in SPEED.items())]
    throughput = folder / f"{name}.csv"
    throughput.write_text("".join(",".join(row) + "\n" for row in rows))
    found = plan([path], POLICY, throughput, importer=name)
    before = _given(rule, path, name, found)
    docs = [each for each in yaml.safe_load_all(found.apply) if each]
    new = {each["metadata"]["name"]: each for doc in docs for each in doc.get("items", [doc])}
    kind = "ClusterQueue" if name == "kueue" else "Queue"
    for item in items:
        if item["kind"] == kind and item["metadata"]["name"] in new:
            item["spec"] = item["spec"] | new[item["metadata"]["name"]]["spec"]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return found, before, _given(rule, path, name, found)


def _given(rule: Any, path: Path, name: str, found: SchedulerPlan) -> Any:
    market = read_source([path], name).problem
    shares = decide(rule, market).shares
    rows = [[market.index(each) for each in row.split("+")] for row in found.market.users]
    return np.array([shares[row].sum(axis=0) for row in rows], dtype=float)


# -- what the page shows -------------------------------------------------------------------------------------------
def far(found: SchedulerPlan, held: Any) -> float:
    """Return how far the measured parts of the types are from the planned ones, the farthest, as a part of these."""
    planned = found.held.astype(float)
    planned, got = planned / planned.sum(axis=0), held / held.sum(axis=0)
    return float(np.max(np.abs(got - planned)[planned > 0] / planned[planned > 0]))


def page_text(found: SchedulerPlan, equal: Measured, planned: Measured, models: Mapping[str, Any]) -> str:
    """Return the tables of the page."""
    speed = np.array(list(SPEED.values()))
    per_equal, per_plan = (each.gpus / each.gpus.sum(axis=0) for each in (equal, planned))
    want = found.held.astype(float) / np.array([list(GPUS.values())])
    lines = [
        "| account | " + " | ".join(f"{kind}: plan | measured" for kind in GPUS)
        + " | throughput of an equal share | measured, equal | plan | measured, plan | measured over equal share |",
        "|---|" + "---:|" * (2 * len(GPUS) + 5),
    ]  # fmt: skip
    due = found.market.fair_utility().astype(float)
    promised = found.market.utility(found.held).astype(float)
    there = np.array(list(GPUS.values()))
    for i, name in enumerate(SPEED):
        parts = " | ".join(f"{want[i, j]:.1%} | {per_plan[i, j]:.1%}" for j in range(len(GPUS)))
        got = [float((each[i] * there * speed[i]).sum()) for each in (per_equal, per_plan)]
        numbers = f"{due[i]:.2f} | {got[0]:.2f} | {promised[i]:.2f} | {got[1]:.2f} | {got[1] / due[i]:.3f}"
        lines.append(f"| {name} | {parts} | {numbers} |")
    told = "; ".join(
        f"{name}: {sum(SPEED[name]) and ' and '.join(f'{each:g}' for each in SPEED[name])}" for name in SPEED
    )
    cluster = " and ".join(f"{count} {kind}" for kind, count in GPUS.items())
    lines += [
        "",
        f"{planned.jobs} jobs of {SECONDS} s, some of all waiting for {planned.seconds:.0f} s with the plan, and "
        f"{equal.jobs} for {equal.seconds:.0f} s with equal shares, on {cluster}; "
        f"throughputs on one {' and one '.join(GPUS)}: {told}. The farthest measured part of a type is "
        f"{far(found, planned.gpus):.1%} from the plan's. A part is of the GPU seconds that all held of the type; "
        "throughputs are these parts of all GPUs.",
        "",
        "| in our model of | account | "
        + " | ".join(f"{kind}: quota | held before | held then" for kind in GPUS)
        + " |",
        "|---|---|" + "---:|" * (3 * len(GPUS)),
    ]
    for model, (own, before, then) in models.items():
        for i, name in enumerate(SPEED):
            cells = (f"{own.held[i, j]} | {before[i, j]:g} | {then[i, j]:g}" for j in range(len(GPUS)))
            lines.append(f"| {model} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def picture(found: SchedulerPlan, equal: Measured, planned: Measured) -> None:
    """Draw each account's throughput with equal shares and with the plan, measured, beside what is planned."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "fairopt"}
    from matplotlib import pyplot

    speed, there = np.array(list(SPEED.values())), np.array(list(GPUS.values()))
    due = found.market.fair_utility().astype(float)
    bars = {
        "equal shares, measured": [*((equal.gpus / equal.gpus.sum(axis=0) * there * speed).sum(axis=1) / due)],
        "plan, measured": [*((planned.gpus / planned.gpus.sum(axis=0) * there * speed).sum(axis=1) / due)],
        "plan": [*(found.market.utility(found.held).astype(float) / due)],
    }
    figure, ax = pyplot.subplots(figsize=(7, 3.4), layout="constrained")
    for number, (label, values) in enumerate(bars.items()):
        at = np.arange(len(SPEED)) + 0.27 * (number - 1)
        ax.bar(at, values, 0.25, label=label, color=["#9aa5b1", "#0072b2", "#ffffff"][number], edgecolor="#1a1a1a")
    ax.axhline(1, color="#1a1a1a", linewidth=0.8, linestyle=":")
    ax.set_xticks(range(len(SPEED)), list(SPEED))
    ax.set_ylabel("throughput over an equal share's")
    ax.legend(frameon=False, loc="upper left")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None, "Creator": None})


def main() -> int:
    """Play it, write the page, and return the exit status."""
    from cluster import Cluster, Node

    nodes = [Node(f"n-{kind}", {kind: gpus}) for kind, gpus in GPUS.items()]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        models = {name: in_model(name, folder) for name in MODELS}
        with Cluster(nodes) as slurm:
            equal = with_equal_shares(slurm)
            print(equal, flush=True)
        with Cluster(nodes) as slurm:  # another, since sacctmgr shows what all clusters of a slurmdbd have
            found, planned, left = with_plan(slurm, folder)
            print(planned, flush=True)
    text = page_text(found, equal, planned, models)
    print(text)
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{text}{END}{rest.partition(END)[2]}", encoding="utf-8")
    picture(found, equal, planned)
    wrong = far(found, planned.gpus)
    if left:
        print(f"undoing left something behind:\n{left}", file=sys.stderr)
    if wrong > NEAR:
        print(f"a part is {wrong:.1%} from the plan's", file=sys.stderr)
    return int(bool(left) or wrong > NEAR)


if __name__ == "__main__":
    sys.exit(main())
