"""What Slurm's rule reads beside amounts: options of slurm.conf, partitions, QOS, limits on jobs; as settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from fairopt.importing.slurm_values import duration, said, tres
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import integer
from fairopt.program import INFINITY, Number

#: How a value is written as a setting: of its text, and its place.
Writer = Callable[[str, str], str]


def _text(text: str, place: str) -> str:
    return "" if text.upper() in ("ALL", "NONE", "N/A") else text.replace(" ", "_")


def _number(text: str, place: str) -> str:
    return str(integer(text, place)) if text.upper() not in ("INFINITE", "NONE") else ""


def _seconds(text: str, place: str) -> str:
    if text.upper() in ("NONE", "INFINITE", "NOT_SET", "PARTITION_LIMIT", "INVALID"):
        return ""
    found = duration(text, place)
    return "" if found is None else str(int(found))


def _plain_seconds(text: str, place: str) -> str:
    """Read 7-00:00:00, and "1 sec" as older versions print it."""
    head = text.removesuffix(" sec")
    return head if head.isdecimal() and head != text else _seconds(text, place)


def _amounts(text: str, place: str) -> str:
    counts = tres(text, place)
    return ",".join(f"{name}={int(count)}" for name, count in counts.items() if count != INFINITY)


def _modes(text: str, place: str) -> str:
    return "" if text.lower() in ("cluster", "disabled") else text.upper()


#: What --json calls what `scontrol show partition` prints.
PARTITION_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "name": "partitionname",
        "tres/billing_weights": "tresbillingweights",
        "priority/tier": "prioritytier",
        "priority/job_factor": "priorityjobfactor",
        "maximums/time": "maxtime",
        "defaults/time": "defaulttime",
        "partition/state": "state",
        "accounts/allowed": "allowaccounts",
        "accounts/deny": "denyaccounts",
        "qos/allowed": "allowqos",
        "qos/deny": "denyqos",
        "qos/assigned": "qos",
        "maximums/nodes": "maxnodes",
        "minimums/nodes": "minnodes",
    }
)
#: The same of `sacctmgr show qos`. Source: Slurm, src/plugins/data_parser/v0.0.46/parsers.c.
QOS_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "limits/grace_time": "gracetime",
        "limits/max/active_jobs/count": "grpjobs",
        "limits/max/jobs/active_jobs/per/account": "maxjobspa",
        "limits/max/jobs/active_jobs/per/user": "maxjobspu",
        "limits/max/tres/per/account": "maxtrespa",
        "limits/max/tres/per/job": "maxtres",
        "limits/max/tres/per/user": "maxtrespu",
        "limits/max/tres/total": "grptres",
        "limits/max/wall_clock/per/job": "maxwall",
        "preempt/list": "preempt",
        "preempt/mode": "preemptmode",
    }
)
#: Options of slurm.conf that the rule reads: scontrol show config.
OPTIONS: Mapping[str, Writer] = MappingProxyType(
    {
        "AccountingStorageEnforce": _text,
        "ClusterName": _text,
        "FairShareDampeningFactor": _number,
        "PreemptMode": _modes,
        "PreemptType": _text,
        "PriorityFavorSmall": _text,
        "PriorityFlags": _text,
        "PriorityMaxAge": _plain_seconds,
        "PriorityType": _text,
        "PriorityWeightAge": _number,
        "PriorityWeightFairShare": _number,
        "PriorityWeightJobSize": _number,
        "PriorityWeightPartition": _number,
        "PriorityWeightQOS": _number,
        "SchedulerParameters": _text,
        "SchedulerType": _text,
    }
)
#: What the rule reads of a partition: scontrol show partition.
OF_PARTITION: Mapping[str, Writer] = MappingProxyType(
    {
        "AllowAccounts": _text,
        "AllowQos": _text,
        "DefaultTime": _seconds,
        "DenyAccounts": _text,
        "DenyQos": _text,
        "MaxNodes": _number,
        "MaxTime": _seconds,
        "MinNodes": _number,
        "PreemptMode": _modes,
        "PriorityJobFactor": _number,
        "PriorityTier": _number,
        "QoS": _text,
        "State": _text,
    }
)
_ON_JOBS: Mapping[str, Writer] = {"GrpJobs": _number, "MaxTRES": _amounts, "MaxWall": _seconds}
#: What it reads of a QOS and of an association: sacctmgr show qos, sacctmgr show assoc.
OF_QOS: Mapping[str, Writer] = MappingProxyType(
    {
        **dict.fromkeys(("GrpTRES", "MaxTRESPA", "MaxTRESPU"), _amounts),
        **dict.fromkeys(("MaxJobsPA", "MaxJobsPU", "Priority"), _number),
        "Preempt": _text,
        "PreemptMode": _modes,
        **_ON_JOBS,
    }
)
OF_ASSOCIATION: Mapping[str, Writer] = MappingProxyType({"MaxJobs": _number, **_ON_JOBS})


def settings_of(record: ObjectPart, known: Mapping[str, Writer]) -> dict[str, str]:
    """Return what a record says of these, by their names; what says nothing, or is all or no bound, is left out.

    Errors: `BadInput` with the place, the value and what to do.
    """
    found = {}
    for name, write in known.items():
        text = said(record.value.get(name.lower(), ""))
        if text and (written := write(text, f"{record.place}, {name}")):
            found[name] = written
    return found


def as_text(settings: Mapping[str, str]) -> str:
    """Return settings as one text: KEY=VALUE KEY=VALUE."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


def of_node(gpus: Mapping[str, int], cpus: int | None, weight: int) -> dict[str, str]:
    """Return what a node offers to jobs, by GPU type."""
    found = {kind: str(count) for kind, count in gpus.items()}
    found |= {} if cpus is None else {"CPUs": str(max(cpus, 0))}
    return found | ({"Weight": str(weight)} if weight != 1 else {})


def of_job(record: ObjectPart, partition: str, nodes: Sequence[str], cpus: Number, reason: str) -> dict[str, str]:
    """Return what the rule reads of a job: where and how long it may run, and what it takes of each node.

    ``reason``: why it waits, where that is stated until the job is tried again.
    """
    fields, place = record.value, record.place

    def first(*names: str) -> str:
        return next((said(fields[name]) for name in names if said(fields.get(name, ""))), "")

    limit = _seconds(first("timelimit", "time_limit"), f"{place}, TimeLimit")
    left = _seconds(first("time_left"), f"{place}, TimeLeft") if "time_left" in fields else ""
    ran = _seconds(first("runtime", "elapsed", "time"), f"{place}, RunTime")
    if not left and limit and ran:
        left = str(max(int(limit) - int(ran), 0))
    count, nice = first("nnodes", "numnodes").partition("-")[0], first("nice")
    return {
        name: value
        for name, value in (
            ("Partition", partition),
            ("QOS", said(fields.get("qos", ""))),
            ("NumNodes", count if count.isdecimal() and count != "0" else ""),
            ("NumCPUs", str(int(cpus)) if cpus else ""),
            ("TimeLimit", limit),
            ("TimeLeft", left),
            ("RunTime", "" if left or (ran == "0" and not nodes) else ran),  # of a job that runs without a limit
            ("NodeList", ",".join(nodes)),
            ("Nice", "" if nice in ("0", "") else str(integer(nice, f"{place}, Nice"))),
            ("Reason", reason),
        )
        if value
    }
