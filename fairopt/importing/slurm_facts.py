"""What the records of Slurm's commands say together: associations, nodes, jobs, billing; and what had no place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fairopt.errors import BadInput
from fairopt.importing.imported import ImportedQueue
from fairopt.importing.slurm_reasons import (
    RUNS,
    SUSPENDED,
    WAITS,
    JobRecord,
    Taken,
    of_one_partition,
    owner_of,
    reason_of,
    state_of,
    stopped_by,
    unavailable,
)
from fairopt.importing.slurm_records import DEEPEST, Record, SlurmCommand
from fairopt.importing.slurm_site import OF_ASSOCIATION, OF_PARTITION, OF_QOS, OPTIONS, as_text, settings_of
from fairopt.importing.slurm_unread import (
    DOWN,
    HARMLESS,
    MEMORY,
    OTHERWISE,
    RATE,
    RESERVED,
    UNREAD,
    Key,
    beside,
    unread,
    whose,
)
from fairopt.importing.slurm_values import UNTYPED, gpus_of, gres, hosts, numbers, said, tres
from fairopt.importing.unplaced import UNPLACED, Places
from fairopt.problem.checks import check_name
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import amount, exact, integer, shown
from fairopt.program import INFINITY, Number
from fairopt.report import Statement

#: Nodes in these states offer nothing; jobs that run there go on.
_DOWN = ("DOWN", "DRAIN", "FAIL", "FUTURE", "UNKNOWN", "NO_RESPOND", "NOT_RESPONDING", "POWERING_DOWN", "MAINT")
#: What `sshare` computed: the rules compute it again.
_DECLARED = {name.lower(): name for name in ("NormShares", "NormUsage", "EffectvUsage", "FairShare", "LevelFS")}
_TAKEN: Mapping[SlurmCommand, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in (
        (
            SlurmCommand.SHARE,
            "account user partition parentname cluster rawshares rawusage type " + " ".join(_DECLARED),
        ),
        (
            SlurmCommand.ASSOCIATION,
            f"account user partition parentname cluster share grptres {' '.join(OF_ASSOCIATION).lower()}",
        ),
        (SlurmCommand.QOS, f"name {' '.join(OF_QOS).lower()}"),
        (SlurmCommand.PARTITION, f"partitionname tresbillingweights {' '.join(OF_PARTITION).lower()}"),
        (SlurmCommand.NODE, "nodename gres cfgtres alloctres state partitions cputot weight"),
        (
            SlurmCommand.JOB,
            "jobid account user userid partition state jobstate submit submittime reqtres alloctres trespernode "
            "tres_per_node gres nodelist nnodes numnodes cpus numcpus qos reason timelimit time_limit time_left "
            "runtime time nice",
        ),
    )
}


@dataclass
class Node:
    """The GPUs of a node by type, those that jobs hold, its other resources, its partitions, CPUs and weight."""

    gpus: dict[str, int]
    held: dict[str, int]
    other: dict[str, Number]
    partitions: frozenset[str]
    up: bool
    cpus: int | None = None
    weight: int = 1


def _by_type(taken: Mapping[str, int], gpus: Mapping[str, int]) -> dict[str, int]:
    """Return the GPUs taken of a node by its own types; those of no type are of the first that have room."""
    held = {kind: min(count, taken.get(kind, 0)) for kind, count in gpus.items()}
    rest = taken.get(UNTYPED, 0) if UNTYPED not in gpus else 0
    for kind, count in gpus.items():
        more = min(rest, count - held[kind])
        held[kind], rest = held[kind] + more, rest - more
    return held


class Facts:
    """Everything that the records say; feed it with `add`."""

    def __init__(self, cluster: str | None = None) -> None:
        """Begin with nothing; ``cluster`` chooses where the records are of several."""
        self.cluster = cluster
        self.clusters: dict[str, str] = {}
        self.associations: dict[Key, ImportedQueue] = {}
        self.nodes: dict[str, Node] = {}
        self.jobs: dict[str, JobRecord] = {}
        self._alike: Taken = {}
        self._file = ""  # whose records are taken
        self._parent_by: dict[Key, str] = {}  # where it stands what an account is in
        self.priority: dict[str, int] = {}
        self.preempted: set[str] = set()
        self.billing: dict[str, list[Number]] = {}
        self.settings: dict[str, str] = {}  # of the whole cluster
        self.without_gpus: list[JobRecord] = []  # jobs that run
        self._counts_memory = True  # as far as is known
        self.reserved: dict[str, list[str]] = {}  # nodes by reservation
        self.places = Places(HARMLESS)
        self._other: dict[SlurmCommand, dict[str, str]] = {}
        self._read: Mapping[SlurmCommand, Callable[[ObjectPart], None]] = {
            SlurmCommand.SHARE: self._share,
            SlurmCommand.ASSOCIATION: self._association,
            SlurmCommand.QOS: self._qos,
            SlurmCommand.PARTITION: self._partition,
            SlurmCommand.NODE: self._node,
            SlurmCommand.JOB: self._job,
            SlurmCommand.CONFIG: self._options,
            SlurmCommand.RESERVATION: self._reservation,
        }

    def add(self, records: Iterable[Record], file: str = "") -> None:
        """Take what the records of a file say. Errors: `BadInput` with the place, the value and the remedy."""
        self._file = file
        taken = {kind: names | {"cluster", "id"} for kind, names in _TAKEN.items()}
        beside: dict[tuple[SlurmCommand, tuple[str, ...]], list[str]] = {}
        for kind, record in records:
            named = said(record.value.get("cluster", ""))
            if kind in (SlurmCommand.SHARE, SlurmCommand.ASSOCIATION) and named:
                if self.cluster is not None and named != self.cluster:
                    self.note(kind.value, "Cluster", named, f"only {self.cluster!r} was asked for")
                    continue
                self.clusters.setdefault(named, record.place)
                if len(self.clusters) > 1:
                    remedy = (
                        "Give what scontrol show config prints, too, or one: sacctmgr show assoc tree -P cluster=NAME"
                    )
                    names = ", ".join(map(shown, self.clusters))
                    raise BadInput(f"got the clusters {names}", place=record.place, remedy=remedy)
            self._read[kind](record)
            columns = kind, tuple(record.value)  # rows of a table have the same
            if columns not in beside:
                known, looked = taken.get(kind, record.value), UNREAD.get(kind, {})
                beside[columns] = [each for each in record.value if each not in known or each in looked]
            waits = kind is not SlurmCommand.JOB or state_of(record) in WAITS
            for name in beside[columns]:
                if value := said(record.value[name]):
                    is_taken = name in taken.get(kind, record.value)
                    self._beside(kind, record, name, value, is_taken=is_taken, waits=waits)

    def _beside(
        self, kind: SlurmCommand, record: ObjectPart, name: str, value: str, *, is_taken: bool, waits: bool
    ) -> None:
        """Note a column that is not read, or not everything in it; of a job, whether it ``waits``."""
        why = unread(kind, name, value) if waits else ""
        if why == MEMORY and not self._counts_memory and kind is SlurmCommand.JOB:
            return
        if not why and not is_taken:
            why = beside(name)
        if why:
            self.note(kind.value, name, value, why, "" if why in HARMLESS else whose(kind, record))
        elif not is_taken:
            self._other.setdefault(kind, {}).setdefault(name, value)

    def note(self, source: str, what: str, value: object, why: str, whose: str = "") -> None:
        """Remember what has no place; the same thing again is counted. ``whose``: the name of a job, node and so on."""
        self.places.note(f"{source}, {what}", whose, value, why)

    @property
    def unplaced(self) -> tuple[Statement, ...]:
        """What had no place: an entry for each kind of field, and one for all that say nothing of entitlements."""
        others = ((kind.value, ", ".join(fields)) for kind, fields in self._other.items())
        return (*self.places.listed, *(UNPLACED.of(place=place, value=all_, why=OTHERWISE) for place, all_ in others))

    # -- associations ------------------------------------------------------------------------------------------------
    def _key(self, record: ObjectPart) -> Key:
        account, user, partition = (said(record.value.get(name, "")) for name in ("account", "user", "partition"))
        for name, what in ((account, "Account"), (user or "-", "User"), (partition or "-", "Partition")):
            check_name(name, f"{record.place}, {what}")
        return account, user, partition

    def _at(self, record: ObjectPart, what: str) -> ImportedQueue:
        key = self._key(record)
        found = self.associations.setdefault(key, ImportedQueue())
        above = said(record.value.get("parentname", ""))
        if key[1]:
            found.parent = key[0]
        elif above and key[0] != above:
            if found.parent and found.parent != above:
                remedy = "Give files of the same moment, and of one cluster: sacctmgr show assoc tree -P cluster=NAME"
                why = f"{key[0]!r} is in {above!r} here, and in {found.parent!r} in {self._parent_by[key]}"
                raise BadInput(why, place=f"{record.place}, {what}", remedy=remedy)
            found.parent = above
            self._parent_by[key] = f"{self._file}: {record.place}"
        return found

    def _weigh(self, found: ImportedQueue, text: str, place: str) -> None:
        if not said(text):
            return
        if text.strip().lower() == "parent":
            found.tier, found.weight = 1, 0
            return
        share = integer(text.strip(), place)
        if not 0 <= share < 2**31:
            raise BadInput(f"got {shown(share)}", place=place, remedy="Give shares from 0, or parent")
        if found.weight is not None and (found.weight != share or found.tier):
            self.note(
                SlurmCommand.ASSOCIATION.value, "Share", share, "another file gave other shares first, which were taken"
            )
            return
        found.weight = share

    def _share(self, record: ObjectPart) -> None:
        found = self._at(record, "Account")
        if "RawShares" in found.declared:
            remedy = "Give each association once, and files of one cluster"
            raise BadInput("this association stands twice", place=record.place, remedy=remedy)
        fields = record.value
        found.declared["RawShares"] = said(fields.get("rawshares", ""))
        self._weigh(found, fields.get("rawshares", ""), f"{record.place}, RawShares")
        if said(fields.get("rawusage", "")):
            found.usage = amount(fields["rawusage"].strip(), f"{record.place}, RawUsage")
        if said(fields.get("user", "")) and fields.get("normusage") == "" and "fairshare" in fields:
            why = "Slurm has not computed its values yet (PriorityCalcPeriod), and those of others are older than it"
            return self.note(SlurmCommand.SHARE.value, "NormUsage", "/".join(self._key(record)[:2]), why)
        for name, called in _DECLARED.items():
            text = said(fields.get(name, ""))
            if text:
                place = f"{record.place}, {called}"
                found.declared[called] = INFINITY if text.lower() in ("inf", "infinity") else exact(text, place)
        return None

    def _association(self, record: ObjectPart) -> None:
        found = self._at(record, "Par Name")
        self._weigh(found, record.value.get("share", ""), f"{record.place}, Share")
        found.cap = (found.cap or {}) | tres(record.value.get("grptres", ""), f"{record.place}, GrpTRES")
        found.settings |= settings_of(record, OF_ASSOCIATION)

    def _qos(self, record: ObjectPart) -> None:
        name = check_name(record.value["name"].strip(), f"{record.place}, Name")
        text = said(record.value.get("priority", ""))
        self.priority[name] = integer(text or 0, f"{record.place}, Priority")
        preempted = set(filter(None, said(record.value.get("preempt", "")).split(",")))
        self.preempted |= preempted
        self.settings[f"QOS={name}"] = as_text(settings_of(record, OF_QOS))

    # -- machines and jobs -------------------------------------------------------------------------------------------
    def _options(self, record: ObjectPart) -> None:
        self.settings |= settings_of(record, OPTIONS)
        self.cluster = self.cluster or self.settings.get("ClusterName")
        selects = said(record.value.get("selecttypeparameters", ""))
        self._counts_memory = not selects or "MEMORY" in selects.upper()

    def _partition(self, record: ObjectPart) -> None:
        name = check_name(said(record.value.get("partitionname", "")), f"{record.place}, PartitionName")
        self.settings[f"PartitionName={name}"] = as_text(settings_of(record, OF_PARTITION))
        for each in filter(None, said(record.value.get("tresbillingweights", "")).split(",")):
            name, _, weight = each.partition("=")
            place = f"{record.place}, TRESBillingWeights"
            if name.strip().lower().startswith("gres/gpu"):
                kind = name.strip().partition(":")[2] or UNTYPED
                self.billing.setdefault(kind, []).append(amount(weight.strip(), place))
            else:
                self.note(SlurmCommand.PARTITION.value, "TRESBillingWeights", each, RATE)

    def _reservation(self, record: ObjectPart) -> None:
        name, nodes, *whose = (
            said(record.value.get(each, "")) for each in ("reservationname", "nodes", "users", "accounts", "groups")
        )
        kept = f"{name}: {nodes or 'no nodes'} for {', '.join(filter(None, whose)) or 'nobody'}"
        self.reserved[name] = hosts(nodes, f"{record.place}, Nodes")
        self.note(SlurmCommand.RESERVATION.value, "Nodes", kept, RESERVED, name)

    def _node(self, record: ObjectPart) -> None:
        fields, place = record.value, record.place
        name = check_name(fields.get("nodename", ""), f"{place}, NodeName")
        if name in self.nodes:
            raise BadInput(f"{name!r} stands twice", place=place, remedy="Give each node once")
        other = tres(fields.get("cfgtres", ""), f"{place}, CfgTRES")
        counted = gpus_of(other, f"{place}, CfgTRES")
        gpus = gres(fields.get("gres", ""), f"{place}, Gres") or counted
        if counted and sum(counted.values()) != sum(gpus.values()):
            self.note(
                SlurmCommand.NODE.value, "CfgTRES", f"{name}: {sum(counted.values())} GPUs", "Gres says otherwise", name
            )
        state = fields.get("state", "").upper()
        # one that is POWERED_DOWN to save power is started for the next job
        up = not any(word in state.replace("POWERED_DOWN", "") for word in _DOWN)
        if gpus and not up:
            self.note(SlurmCommand.NODE.value, "State", state, DOWN, name)
        partitions = frozenset(filter(None, said(fields.get("partitions", "")).split(",")))
        taken = gpus_of(tres(fields.get("alloctres", ""), f"{place}, AllocTRES"), f"{place}, AllocTRES")
        cpus = said(fields.get("cputot", ""))
        self.nodes[name] = Node(
            gpus, _by_type(taken, gpus), other, partitions, up, integer(cpus, f"{place}, CPUTot") if cpus else None,
            integer(said(fields.get("weight", "")) or 1, f"{place}, Weight"),
        )  # fmt: skip

    def _job(self, record: ObjectPart) -> None:
        fields, place, source = record.value, record.place, SlurmCommand.JOB.value
        name, state = said(fields.get("jobid", "")), state_of(record)
        if "." in name:
            return self.note(source, "JobID", name, "a step of a job that stands in the same file")
        if state not in RUNS | WAITS | SUSPENDED:
            return self.note(source, "State", state, "jobs that neither run nor wait hold and ask for nothing")
        owner = owner_of(record)
        if not all(owner[:2]):
            return self.note(source, "Account, User", name, "a job of nobody that the file names")
        reason = reason_of(fields) if state in WAITS else ""
        why, left_aside = stopped_by(reason)
        # whether unavailable nodes are down, and what other partitions say, is seen later
        if why and not (left_aside and (unavailable(record) or of_one_partition(record))):
            self.note(source, "Reason", reason, why, name)
            if left_aside:
                return None
        job = JobRecord.of(record, owner, self._alike)
        if not job.gpus:
            self.without_gpus += [job] * job.runs
            return self.note(
                source, "JobID", name, "a job without GPUs; what it takes of CPU and memory is not counted"
            )
        if len(job.gpus) > 1:
            return self.note(source, "TRES", ", ".join(job.gpus), "a job on several GPU types; a gang has one")
        for task in self._tasks(name, place):
            if task in self.jobs:
                raise BadInput(f"the job {task!r} stands twice", place=place, remedy="Give each job once (sacct -X)")
            self.jobs[task] = job
        return None

    def _tasks(self, name: str, place: str) -> list[str]:
        """Return the jobs of an array that waits, "12_[3-5%2]"."""
        before, bracket, rest = name.partition("[")
        if not bracket:
            return [check_name(name, f"{place}, JobID")]
        if "%" in rest:
            why = "how many tasks of an array may run at once is not read"
            self.note(SlurmCommand.JOB.value, "JobID", name, why, name)
        return [f"{before}{number}" for number in numbers(rest.rstrip("]"), f"{place}, JobID")]

    def require_tree(self) -> None:
        """Refuse accounts in a circle, or too deep."""
        above = {key[0]: found.parent for key, found in self.associations.items() if not key[1]}
        for account, found in above.items():
            at, steps = found, 0
            while at:
                at, steps = above.get(at, ""), steps + 1
                if steps > DEEPEST:
                    remedy = f"An account is not inside itself, and at most {DEEPEST} lie inside each other"
                    raise BadInput(f"{account!r} is in a circle of accounts", place="ParentName", remedy=remedy)
