"""Account trees, QOS, partitions and jobs drawn from a seed, as what `sacctmgr` and `sbatch` are told."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from cluster import Node, Settings

#: The first trees have one node for each type, and one that only the second partition has; the others have all.
NODES = [Node("n1", {"a100": 8}), Node("n2", {"v100": 4}), Node("n3", {"v100": 2}), Node("n4", {"a100": 4})]
#: From this seed on partitions, limits on jobs, time limits and preemption are drawn, too.
RICH = 44
LIMITS_OF_QOS = (
    *("GrpJobs", "MaxJobsPerUser", "MaxJobsPerAccount", "MaxWall", "MaxTRESPerUser=gres/gpu", "GrpTRES=gres/gpu"),
    *("MaxTRESPerJob=gres/gpu", "MaxTRESPerAccount=gres/gpu"),
)
QOS = {"normal": 0, "high": 100, "low": 10}


@dataclass
class Job:
    """A job: who asks for what, where; ``gpus`` on each node; ``minutes`` is its time limit, 0 for none."""

    account: str
    user: str
    kind: str
    gpus: int
    qos: str
    partition: str
    minutes: int
    nodes: int = 1
    cpus: int = 1
    nice: int = 0


@dataclass
class Case:
    """A cluster's accounts, in the order in which they are made, those of ``later`` while slurmctld runs."""

    seed: int
    settings: Settings
    accounts: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    usage: dict[tuple[str, str], int] = field(default_factory=dict)
    running: list[Job] = field(default_factory=list)
    pending: list[Job] = field(default_factory=list)
    of_qos: list[str] = field(default_factory=list)  # what is said of QOS
    parameters: str = ""  # further SchedulerParameters
    preempts: str = ""  # "qos", "partition_prio"


def drawn(seed: int) -> Case:
    """Return the case of a seed: even ones are Fair Tree, odd ones classic; every third has backfill."""
    if seed >= RICH:
        return _rich(seed)
    rng = random.Random(seed)
    fair_tree, backfill, preempt = seed % 2 == 0, seed % 3 == 0, seed % 4 == 1
    two = seed % 5 == 4  # partitions that differ
    weights = {"Fairshare": 100_000, "QOS": rng.choice([0, 0, 30_000]), "Age": 0}
    lines = ["PartitionName=p Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP"]
    if two:
        lines.append("PartitionName=q Nodes=n3 MaxTime=60 State=UP PriorityTier=5")
    settings = Settings(fair_tree=fair_tree, backfill=backfill, weights=weights, partitions=lines, preempt=preempt)
    case = Case(seed, settings, preempts="qos" if preempt else "")
    tied = rng.random() < 0.6
    where, users = _accounts(rng, case, tied=tied)
    if not tied:
        case.usage = {user: rng.choice([0, 1, 7, 30, 100, 12345]) for user in users}
    case.usage = {user: used for user, used in case.usage.items() if used}
    for account in rng.sample(where, min(2, len(where))):
        cap = rng.choice(["gres/gpu:a100=3", "gres/gpu:v100=1", "gres/gpu=4", "gres/gpu=2,gres/gpu:a100=1", "cpu=4"])
        case.accounts.append(f"modify account {account} set GrpTRES={cap}")
    if seed % 7 == 3:
        limit = rng.choice(["MaxJobs=1", "GrpJobs=2", "MaxTRESPerJob=gres/gpu=2", "MaxTRESPerJob=cpu=2"])
        case.accounts.append(f"modify account {rng.choice(where)} set {limit}")
    case.running = [replace(_job(rng, users, two), minutes=60) for _ in range(rng.randrange(4))]
    case.pending = [_job(rng, users, two) for _ in range(rng.randrange(6, 14))]
    if not preempt:
        return case
    for job in case.running:
        job.qos = rng.choice(["low", "normal"])
    return case


def _accounts(rng: random.Random, case: Case, *, tied: bool) -> tuple[list[str], list[tuple[str, str]]]:
    """Make accounts of 1 to 4 levels and users in them, in an order that is not the alphabet's."""
    names = rng.sample([f"{letter}{number}" for letter in "abcdefg" for number in range(3)], rng.randrange(3, 9))
    deepest, level, parents = rng.randrange(1, 5), {"root": 0}, {}
    made, users = [], []
    for name in names:
        above = rng.choice([each for each, at in level.items() if at < deepest])
        level[name], parents[name] = level[above] + 1, above
        share = rng.choice(["1", "1", "1", "parent"] if tied else ["0", "1", "2", "3", "50", "parent"])
        made.append(f"add account {name} parent={above} fairshare={share}")
    alike = rng.sample([("1", 10), ("1", 0), ("2", 30), ("parent", 5), ("1", 10)], rng.randrange(1, 4))
    leaves = [name for name in names if rng.random() < 0.85] or names[:1]  # some accounts have no users
    for name in leaves:
        own = alike if tied and rng.random() < 0.8 else [("", 0)] * rng.randrange(1, 4)
        for number, (share, used) in zip(rng.sample(range(8), len(own)), own, strict=True):
            share = share or rng.choice(["1", "1", "parent"] if tied else ["0", "1", "2", "9", "parent"])
            case.usage[name, f"u{number}"] = used
            made.append(f"add user u{number} account={name} fairshare={share} qos=normal,high,low")
            users.append((name, f"u{number}"))
    late = len(made) - rng.randrange(1, 4) if case.seed % 16 == 2 else len(made)
    case.accounts, case.later = made[:late], made[late:]
    case.usage = {user: used for user, used in case.usage.items() if used}
    users = [each for each in users if not any(f"user {each[1]} account={each[0]} " in line for line in case.later)]
    case.usage = {user: used for user, used in case.usage.items() if user in users}
    return names, users or [(leaves[0], "u0")]


def _job(rng: random.Random, users: list[tuple[str, str]], two: bool) -> Job:
    account, user = rng.choice(users)
    partition = "q" if two and rng.random() < 0.3 else "p"
    kind = "v100" if partition == "q" else rng.choice(["a100", "a100", "v100"])
    gpus = rng.choice([1, 1, 2, 3] if kind == "a100" else [1, 1, 2])
    return Job(account, user, kind, gpus, rng.choice(list(QOS)), partition, rng.choice([1, 60, 60]))


# -- partitions, limits on jobs, time limits and preemption ---------------------------------------------------------
def _rich(seed: int) -> Case:
    """Return a case in which these are drawn, too: limits and partitions, preemption, or time limits, by turns."""
    rng = random.Random(seed)
    limited, stopping = seed % 3 == 0, seed % 3 == 1
    preempts = rng.choice(["qos", "qos", "partition_prio"] if stopping else ["", "", "", "qos"])
    weights = {"Fairshare": rng.choice([1000, 100_000]), "QOS": rng.choice([0, 30_000]), "Age": 0}
    weights |= {"Partition": rng.choice([0, 0, 20_000]), "JobSize": rng.choice([0, 0, 5_000])}
    partitions = _partitions(rng, plain=not limited, tiers=preempts == "partition_prio")
    further = [f"PreemptType=preempt/{preempts}", f"PreemptMode={rng.choice(['CANCEL', 'REQUEUE'])}"]
    settings = Settings(
        fair_tree=seed % 4 < 2,
        backfill=seed % 2 == 0 or not (limited or stopping),
        weights=weights,
        partitions=list(partitions.values()),
        further=further if preempts else (),
    )
    case = Case(seed, settings, preempts=preempts)
    case.parameters = rng.choice(["", "", "", ",bf_window=60", ",preempt_youngest_first", ",bf_max_job_test=3"])
    tied = rng.random() < 0.3
    where, users = _accounts(rng, case, tied=tied)
    if not tied:
        case.usage = {user: used for user in users if (used := rng.choice([0, 1, 7, 30, 100, 12345]))}
    _limits(rng, case, where, users[0], most=3 if limited else 1)
    for _ in range(rng.randrange(2, 5) if limited else rng.randrange(6, 10)):
        job = _rich_job(rng, users, partitions, [1, 2, 2, 3, 4])
        low = replace(job, qos=rng.choice(["low", "low", "low", "normal"]))
        case.running.append(replace(low, partition=rng.choice(["q", "r", "p"])) if "r" in partitions else low)
    case.pending = [_rich_job(rng, users, partitions, [1, 1, 2, 3, 4, 8]) for _ in range(rng.randrange(8, 15))]
    return case


def _limits(rng: random.Random, case: Case, where: list[str], user: tuple[str, str], most: int) -> None:
    """Draw limits on jobs of associations and of QOS."""
    account = rng.choice(where)
    drawn = [
        f"modify account {account} set GrpTRES=gres/gpu={rng.choice([2, 4])}",
        f"modify account {account} set {rng.choice(['MaxJobs=1', 'MaxJobs=2', 'GrpJobs=2'])}",
        f"modify account {account} set MaxTRESPerJob={rng.choice(['gres/gpu=2', 'cpu=16'])}",
        f"modify user {user[1]} account={user[0]} set {rng.choice(['MaxJobs=1', 'MaxWall=45'])}",
    ]
    case.accounts += rng.sample(drawn, rng.randrange(most))
    limits = ["MaxTRESPerUser=gres/gpu=3", "MaxJobsPerUser=2", "MaxJobsPerAccount=2", "GrpJobs=3", "GrpTRES=gres/gpu=4"]
    limits += ["MaxTRESPerJob=gres/gpu=2", "MaxTRESPerAccount=gres/gpu=3", "MaxWall=45"]
    for name in rng.sample(list(QOS), rng.randrange(most)):
        case.of_qos.append(f"modify qos {name} set {' '.join(rng.sample(limits, rng.choice([1, 1, 2])))}")


def _partitions(rng: random.Random, *, plain: bool, tiers: bool) -> dict[str, str]:
    """Return lines of slurm.conf by the name of the partition, the default one first; some have nodes in common."""
    apart = rng.random() < 0.4 and not tiers
    nodes = {"p": "n1,n2", "q": "n3,n4"} if apart else {"p": "n1,n2,n4", "q": "n2,n3", "r": "n1,n4"}
    lines = {}
    for name, inside in nodes.items():
        words = [f"PartitionName={name} Nodes={inside}", "Default=YES" if name == "p" else ""]
        tier = (5 if name == "p" else rng.choice([1, 2])) if tiers else rng.choice([1, 1, 1, 5])
        words += [
            f"PriorityTier={tier} PriorityJobFactor={rng.choice([1, 10, 100])}",
            rng.choice(["", "DefaultTime=20"]),
        ]
        if not plain:
            words += [f"MaxTime={rng.choice(['INFINITE', 'INFINITE', '45', '180'])}"]
            words += [rng.choice(["", "", "", "DenyQos=low", "AllowQos=normal,high"]) if name != "p" else ""]
        state = rng.choice(["UP", "UP", "UP", "DOWN", "INACTIVE", "DRAIN"]) if name == "q" and not plain else "UP"
        lines[name] = " ".join(filter(None, [*words, f"State={state}"]))
    return lines


def _rich_job(rng: random.Random, users: list[tuple[str, str]], partitions: dict[str, str], sizes: list[int]) -> Job:
    account, user = rng.choice(users)
    partition = rng.choice([*partitions, *partitions, *partitions, ",".join(partitions)])
    kind = rng.choice(["a100", "a100", "v100"])
    if partition in partitions:  # not where no node has one
        has = [each for each, nodes in (("a100", ("n1", "n4")), ("v100", ("n2", "n3"))) if any(
            node in partitions[partition] for node in nodes
        )]  # fmt: skip
        kind = kind if kind in has else has[0]
    wide = kind == "a100" and partition == "p" and "n4" in partitions["p"]
    gpus = min(rng.choice(sizes), 8 if kind == "a100" else 4)
    nodes = 2 if wide and gpus <= 4 and rng.random() < 0.2 else 1
    minutes, cpus = rng.choice([10, 30, 60, 120, 0]), rng.choice([1, 1, 1, 24])
    qos, nice = rng.choice(list(QOS)), rng.choice([0, 0, 0, 50])
    return Job(account, user, kind, gpus, qos, partition, minutes, nodes, cpus, nice)
