"""Account trees, QOS, partitions and jobs drawn from a seed, as what `sacctmgr` and `sbatch` are told."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from cluster import Node, Settings

#: One node for each type, so that no rule about hosts has a say, and one that only the second partition has.
NODES = [Node("n1", {"a100": 8}), Node("n2", {"v100": 4}), Node("n3", {"v100": 2})]
QOS = {"normal": 0, "high": 100, "low": 10}


@dataclass
class Job:
    """A job: who asks for what, where; ``minutes`` is its time limit."""

    account: str
    user: str
    kind: str
    gpus: int
    qos: str
    partition: str
    minutes: int


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
    parts: list[str] = field(default_factory=list)  # what of the issue is in it, for the table


def drawn(seed: int) -> Case:
    """Return the case of a seed: even ones are Fair Tree, odd ones classic; every third has backfill."""
    rng = random.Random(seed)
    fair_tree, backfill, preempt = seed % 2 == 0, seed % 3 == 0, seed % 4 == 1
    two = seed % 5 == 4  # partitions that differ
    weights = {"Fairshare": 100_000, "QOS": rng.choice([0, 0, 30_000]), "Age": 0}
    lines = ["PartitionName=p Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP"]
    if two:
        lines.append("PartitionName=q Nodes=n3 MaxTime=60 State=UP PriorityTier=5")
    settings = Settings(fair_tree=fair_tree, backfill=backfill, weights=weights, partitions=lines, preempt=preempt)
    case = Case(seed, settings)
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
    case.running = [_job(rng, users, two) for _ in range(rng.randrange(4))]
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
