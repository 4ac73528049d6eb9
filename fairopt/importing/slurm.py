"""Slurm: what `sshare`, `sacctmgr`, `scontrol`, `squeue` and `sacct` printed, as one market."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from fairopt.errors import BadInput
from fairopt.importing.imported import Imported, ImportedGang, ImportedQueue, entitlements_of, market_of
from fairopt.importing.slurm_facts import Facts
from fairopt.importing.slurm_reasons import CAPS, OWN, JobRecord, of_one_partition, reason_of, stopped_by, unavailable
from fairopt.importing.slurm_records import SlurmCommand, json_records, text_records
from fairopt.importing.slurm_site import as_text, of_job, of_node
from fairopt.importing.slurm_unread import ADDED, Key, settled
from fairopt.importing.slurm_values import CONFIGURATION, GPUS, UNTYPED, begins, said
from fairopt.problem import Market
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import whole
from fairopt.program import INFINITY, Number

#: Which rule of the scheduler makes what an audit says of a gang that waits.
RULES: Mapping[str, str] = MappingProxyType(
    {
        "cap": "GrpTRES of an association, and of each account above it, limits what its jobs hold together",
        "held": "Shares order jobs that wait; those that run stay, but where a QOS or a partition preempts",
        "promised": "Slurm has no guarantees: shares only order the jobs that wait",
        "gang": "A job starts with all that it asks for at once",
        "full": "Who has used less than its share is before others; nobody is promised GPUs",
        "good": "CPU and memory are limited as GPUs are",
        "nothing": "Jobs start by priority; backfill starts another only where that delays none before it",
        "rule": "A job that waits keeps its partition from those after it; limits stop jobs though GPUs are free",
    }
)

#: Where resources are counted that belong to no GPU type.
ANYWHERE = "any"
_CAP = "sacctmgr show assoc, GrpTRES"


def read(*paths: AnyPath, gpus: int | None = None, cluster: str | None = None) -> Imported:
    """Read what Slurm's commands printed: any of their files together, as one market.

    ``sshare -alP``, ``sacctmgr show assoc tree -P``, ``sacctmgr show qos -P``, ``scontrol show node`` (also partition,
    job), ``squeue`` and ``sacct -aXP`` with "|" between columns, and all of these with ``--json``; which command
    printed a file is seen from the file. An association ACCOUNT/USER is a user of the market, an account is a group,
    RawShares are `borrow_weight`, GrpTRES caps. Tier 1 with weight 0 stands for Fairshare=parent. The GPUs are
    those of nodes that are up; without nodes ``gpus`` of one type, or else the sum of the highest caps.
    ``cluster`` chooses one of several, as `scontrol show config` does. `declared` has what `sshare` computed.

    Errors: `BadInput` that names the file, the line or record, the value and what to do.

    Source: Slurm 26.05 (commit 284c3b95), src/sshare/process.c, src/common/print_fields.c and the files named in
    `fairopt.importing.slurm_records`.
    """
    if not paths:
        raise BadInput("no files", place="slurm", remedy="Give what sshare -alP printed, for one")
    facts = Facts(cluster)
    for path in sorted(paths, key=lambda path: not begins(path, CONFIGURATION)):  # it says which
        with naming(path):
            as_json = begins(path, "{") or begins(path, "[")
            facts.add(json_records(path) if as_json else text_records(path), str(path))
    with naming(", ".join(map(str, paths))):
        _complete(facts)
        market, unread = _market(facts, gpus)
        policy = _policy(facts)
        return Imported(market, facts.unplaced, _declared(facts), rules=RULES, policy=policy, unread=unread)


def _policy(facts: Facts) -> str:
    """Return which of the rules slurm.conf chooses, "" where no file says so."""
    if "PriorityType" not in facts.settings:
        return ""
    classic = "NO_FAIR_TREE" in facts.settings.get("PriorityFlags", "")
    return "slurm-multifactor" if classic else "slurm-fair-tree"


def name_of(key: Key) -> str:
    """Return what an association is called: ACCOUNT, ACCOUNT/USER or ACCOUNT/USER/PARTITION."""
    return "/".join(filter(None, key))


def _complete(facts: Facts) -> None:
    """Give jobs the association that they belong to, and users and accounts the accounts that they are in."""
    known = facts.associations
    for job in facts.jobs.values():
        if (key := _association(facts, job)) not in known:
            if known:
                facts.note("jobs", "Account, User", name_of(key), ADDED)
            known[key] = ImportedQueue(key[0])
    for association in list(known.values()):
        if association.parent and (association.parent, "", "") not in known:
            known[association.parent, "", ""] = ImportedQueue()
    flat = [key[0] for key, found in known.items() if not key[1] and not found.parent]
    if len(flat) > 1 and "root" in flat:
        for account in flat:
            if account != "root":
                known[account, "", ""].parent = "root"
                facts.note("accounts", "Account", account, "its parent is not said: taken to be in root (use `tree`)")
    facts.require_tree()
    if not any(user for _, user, _ in known):
        remedy = "Give sshare -alP, which lists all users (-a), or sacctmgr show assoc tree -P"
        raise BadInput("no user associations", place="User", remedy=remedy)


def _association(facts: Facts, job: JobRecord) -> Key:
    """Return the association of a job: one of its partition where there is one."""
    account, user, partition = job.owner
    return (account, user, partition) if (account, user, partition) in facts.associations else (account, user, "")


def _market(facts: Facts, gpus: int | None) -> tuple[Market, Callable[[str], tuple[str, ...]]]:
    usage = _usage(facts)
    facts.associations = settled(facts.associations, usage, facts.note)
    users = [key for key in facts.associations if key[1]]
    capacity = _capacity(facts, gpus)
    types = list(capacity)
    goods = _goods(facts, capacity)
    nodes = {
        name_of(key): replace(found, cap=_cap(facts, key, types, goods), usage=usage.get(key))
        for key, found in sorted(facts.associations.items(), key=lambda each: not each[0][1])
    }
    rate, gangs = _rate(facts, types), _gangs(facts, types)
    named = {"ClusterName": next(iter(facts.clusters))} if facts.clusters else {}
    settings = {"scheduler": "slurm"} | named | facts.settings | _nodes(facts)
    entitlements = entitlements_of(
        nodes, [name_of(key) for key in users], types, gangs, goods=goods, rate=rate, settings=settings
    )
    return market_of(entitlements, list(capacity.values())), _unread(facts, gangs)


def _unread(facts: Facts, gangs: list[ImportedGang]) -> Callable[[str], tuple[str, ...]]:
    """Return what says of a job what its record, its partitions, its QOS, its accounts and their nodes say beside."""
    offers = {
        name: [_offer(each, kind) for each in node.partitions or ("",) for kind in node.gpus]
        for name, node in facts.nodes.items()
    }
    kept = {name: [each for node in nodes for each in offers.get(node, ())] for name, nodes in facts.reserved.items()}
    of: dict[str, tuple[str, Callable[[str], list[str] | None] | None]] = {
        SlurmCommand.JOB.value: ("job", None), "jobs": ("job", None), SlurmCommand.PARTITION.value: ("partition", None),
        SlurmCommand.QOS.value: ("qos", None), SlurmCommand.NODE.value: ("nodes", offers.get),
        SlurmCommand.RESERVATION.value: ("nodes", kept.get),
        **dict.fromkeys((SlurmCommand.SHARE.value, SlurmCommand.ASSOCIATION.value, "accounts"), ("queue", None)),
    }  # fmt: skip
    above = {name_of(key): found.parent for key, found in facts.associations.items()}
    return facts.places.unread(gangs, of, above)


def _offer(partition: str, kind: str) -> str:
    return f"{kind} of {partition}"


def _nodes(facts: Facts) -> dict[str, str]:
    """Return what each node offers to jobs with GPUs, where the partitions are known; one that is down what it has."""
    if not _has_partitions(facts):
        return {}
    cpus = {name: node.cpus for name, node in facts.nodes.items()}
    for job in facts.without_gpus:
        on, taken = job.nodes, job.asked.get("cpu", Fraction(0))
        for name in on:
            if (there := cpus.get(name)) is not None:
                cpus[name] = there - int(taken / len(on))
    inside: dict[str, list[str]] = {}
    texts = {}
    for name, node in facts.nodes.items():
        offers = node.gpus if node.up else node.held
        if node.partitions and (offers or node.up):
            texts[f"NodeName={name}"] = as_text(of_node(offers, cpus[name], node.weight))
            for partition in node.partitions:
                inside.setdefault(partition, []).append(name)
    for partition, named in inside.items():
        key = f"PartitionName={partition}"
        texts[key] = f"{facts.settings.get(key, '')} Nodes={','.join(named)}".strip()
    return texts


def _has_partitions(facts: Facts) -> bool:
    return any(node.partitions for node in facts.nodes.values()) and any(
        name.startswith("PartitionName=") for name in facts.settings
    )


def _usage(facts: Facts) -> dict[Key, Number]:
    """Return past usage as the files say it; an account of which none is said has that of its members."""
    total = {key: found.usage for key, found in facts.associations.items() if found.usage is not None}
    for key, found in facts.associations.items():
        at = found.parent
        while at and key in total and facts.associations[key].usage is not None and key[1]:
            above = (at, "", "")
            if facts.associations[above].usage is None:
                total[above] = total.get(above, Fraction(0)) + total[key]
            at = facts.associations[above].parent
    return total


def _capacity(facts: Facts, gpus: int | None) -> dict[str, int]:
    """Return the GPUs by type: of nodes, else of caps or of what runs, else as given."""
    if facts.nodes:
        there: dict[str, int] = {}
        known = any(job.runs for job in facts.jobs.values())  # else what is held would look free
        placed = any(node.partitions for node in facts.nodes.values())
        for name, node in facts.nodes.items():
            offers = node.up and bool(node.partitions or not placed)
            if node.up and not offers and node.gpus:
                why = "it is in no partition, so that no job can ask for its GPUs"
                facts.note("scontrol show node", "Partitions", name, why)
            for kind, count in (node.gpus if offers else node.held if known else {}).items():
                there[kind] = there.get(kind, 0) + count
        there = {kind: count for kind, count in there.items() if count}
        if there:
            return there
        facts.note("scontrol show node", "Gres", "no GPU", "no node that is up has a GPU")
    if gpus is not None:
        return {UNTYPED: whole(gpus, "gpus")}
    capped = _capped(facts)
    running: dict[str, int] = {}
    for job in facts.jobs.values():
        for kind, count in job.gpus.items():
            running[kind] = running.get(kind, 0) + count * job.runs
    if len(running) > 1:
        running.pop(UNTYPED, None)
    found = {kind: max(count, running.get(kind, 0)) for kind, count in capped.items()} or {
        kind: max(count, 1) for kind, count in running.items()
    }
    source = "the sum of the highest caps" if capped else "what runs" if running else "one, of which all are parts"
    total = ", ".join(f"{count} {kind}" for kind, count in (found or {UNTYPED: 1}).items())
    facts.note("GPUs", "capacity", total, f"no node is listed: the GPUs are {source}; give scontrol show node")
    return found or {UNTYPED: 1}


def _capped(facts: Facts) -> dict[str, int]:
    """Return what the caps allow by type: the sum over the highest associations that have one."""
    names = {name for found in facts.associations.values() for name in found.cap or () if name.startswith(GPUS)}
    typed = {name for name in names if name != GPUS}
    below: dict[str, list[Key]] = {}
    for key, found in facts.associations.items():
        below.setdefault(found.parent, []).append(key)

    def allowed(key: Key, name: str) -> Number:
        cap = (facts.associations[key].cap or {}).get(name, INFINITY)
        inside = below.get(key[0], []) if not key[1] else []
        return cap if cap != INFINITY else sum(allowed(each, name) for each in inside)

    total = {name: sum(allowed(key, name) for key in below.get("", [])) for name in sorted(typed or names)}
    return {name[len(GPUS) + 1 :] or UNTYPED: int(count) for name, count in total.items() if count}


def _goods(facts: Facts, capacity: Mapping[str, int]) -> dict[Good, Number]:
    """Return the further resources that some cap is about: CPU, memory, GPUs of any of several types."""
    capped = {name for found in facts.associations.values() for name in found.cap or ()}
    up = [node.other for node in facts.nodes.values() if node.up]
    goods: dict[Good, Number] = {
        Good(name, ANYWHERE): sum((each.get(name, Fraction(0)) for each in up), Fraction(0))
        for name in ("cpu", "mem")
        if name in capped and up
    }
    if GPUS in capped and len(capacity) > 1:
        goods[Good(GPUS, ANYWHERE)] = Fraction(sum(capacity.values()))
    return goods


def _cap(facts: Facts, key: Key, types: list[str], goods: Mapping[Good, Number]) -> dict[str, Number]:
    """Return the caps of an association by column; those without a column are noted."""
    columns = {f"{GPUS}:{kind}": kind for kind in types} | {good.resource: str(good) for good in goods}
    if len(types) == 1:
        columns[GPUS] = types[0]
    row: dict[str, Number] = {}
    for name, most in (facts.associations[key].cap or {}).items():
        if name in columns:
            row[columns[name]] = min(most, row.get(columns[name], INFINITY))
        elif name.startswith(f"{GPUS}:"):
            facts.note(
                _CAP, name, f"{most} of {name_of(key)}", "there is no GPU of this type (among nodes that are up)"
            )
        else:
            why = "not counted here, or no node says how much there is"
            facts.note(_CAP, name, f"{most} of {name_of(key)}", why, name_of(key))
    return row


def _rate(facts: Facts, types: list[str]) -> list[Number] | None:
    if not facts.billing:
        return None
    rates = []
    for kind in types:
        given = facts.billing.get(kind) or facts.billing.get(UNTYPED) or [Fraction(1)]
        if len(set(given)) > 1:
            told = ", ".join(sorted({str(each) for each in given}))
            facts.note("scontrol show partition", "TRESBillingWeights", f"{kind}: {told}", "partitions differ: largest")
        rates.append(max(given))
    return rates


def _gangs(facts: Facts, types: list[str]) -> list[ImportedGang]:
    gangs, known, alike = [], _has_partitions(facts), dict[tuple[tuple[str, str], ...], dict[str, str]]()
    known_about: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
    for name, job in sorted(facts.jobs.items(), key=_when):
        reason = "" if job.runs else reason_of(job.record.value)
        named = unavailable(job.record) if reason else []
        down = any(node not in facts.nodes or not facts.nodes[node].up for node in named)
        if down or (reason and not known and of_one_partition(job.record)):
            facts.note(SlurmCommand.JOB.value, "Reason", reason, stopped_by(reason)[0])
        elif reason in CAPS and not _has_cap(facts, job):
            why = "a limit that Slurm states and no file here has (sacctmgr show assoc tree -P): the job is left aside"
            facts.note(SlurmCommand.JOB.value, "Reason", reason, why)
        elif kinds := _types(facts, name, job, types):
            gpus, qos = sum(job.gpus.values()), said(job.record.value.get("qos", ""))
            other = {each: _finite(count) for each, count in job.asked.items()} | {GPUS: Fraction(gpus)}
            tier, preemptible = facts.priority.get(qos, 0), qos in facts.preempted
            user, on = name_of(_association(facts, job)), kinds[0] if job.runs else None
            said_of = {}
            if known:
                lasts = "" if reason in OWN or of_one_partition(job.record) else reason
                said_of = of_job(job.record, job.owner[2], job.nodes, _finite(job.asked.get("cpu", 0)), lasts)
                said_of = alike.setdefault(tuple(said_of.items()), said_of)
            shared = known_about.get(key := (qos, job.owner[2], *kinds))
            if shared is None:
                shared = known_about[key] = tuple(_about(qos, job.owner[2], kinds))
            about = () if job.runs else (("job", said(job.record.value.get("jobid", ""))), *shared)
            gangs.append(ImportedGang(name, user, gpus, kinds, on, other, tier, preemptible, job.since, said_of, about))
    return gangs


def _about(qos: str, partitions: str, kinds: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield what speaks of every job of a QOS, in some partitions, on some types."""
    yield "qos", qos
    inside = partitions.split(",")
    yield from (("partition", each) for each in inside)
    yield from (("nodes", _offer(each, kind)) for each in ("", *inside) for kind in kinds)


def _when(named: tuple[str, JobRecord]) -> tuple[Fraction, list[int]]:
    """Return when a job was submitted, and its numbers: Slurm decides by these where priorities are alike."""
    name, job = named
    alone = name.isdecimal() and len(name) <= 18  # nearly always
    return job.since, [int(number) for number in ([name] if alone else re.findall(r"\d{1,18}", name))]


def _has_cap(facts: Facts, job: JobRecord) -> bool:
    """Say whether the association of a job, or an account around it, has a limit in the files."""
    key: Key | None = _association(facts, job)
    while key is not None:
        found = facts.associations[key]
        if found.cap:
            return True
        key = (found.parent, "", "") if found.parent else None
    return False


def _finite(count: Number) -> Number:
    return Fraction(0) if count == INFINITY else count


def _types(facts: Facts, name: str, job: JobRecord, types: list[str]) -> list[str]:
    """Return the types on which a job may run, or the one on which it does; nothing where that cannot be told."""
    (kind,) = job.gpus
    if kind in types:
        return [kind]
    if kind != UNTYPED:
        facts.note("jobs", "TRES", kind, "the GPUs of these jobs are of a type that no node which is up has")
        return []
    listed = [facts.nodes[node].gpus for node in job.nodes if node in facts.nodes]
    on = {each for gpus in listed for each in gpus if each in types}
    if job.runs and len(on or types) > 1:
        facts.note("jobs", "NodeList", name, "these run on GPUs of a type that cannot be told; give typed AllocTRES")
        return []
    if job.runs:
        return [next(iter(on or types))]
    inside = [node.gpus for node in facts.nodes.values() if job.owner[2] in node.partitions]
    return [each for each in types if any(each in gpus for gpus in inside)] or types


def _declared(facts: Facts) -> dict[str, dict[str, Any]]:
    return {
        name_of(key): {name: value for name, value in found.declared.items() if value != ""}
        for key, found in facts.associations.items()
        if found.declared
    }
