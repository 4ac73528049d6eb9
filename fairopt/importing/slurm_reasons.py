"""Jobs of Slurm's: whose they are, whether they run, what they take, and why one waits, as Slurm states it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from fairopt.importing.slurm_unread import Key
from fairopt.importing.slurm_values import gpus_of, gres, hosts, moment, said, tres
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import integer
from fairopt.program import Number

#: Reasons for which no free GPU starts a job. Source: slurm.schedmd.com/job_reason_codes.html; Slurm 22.05.8,
#: src/common/slurm_protocol_defs.c, job_reason_string; Slurm 284c3b95, src/common/job_state_reason.c.
HELD = frozenset(
    re.findall(
        r"\w+",
        """
    AccountNotAllowed AccountingPolicy BadConstraints BeginTime BlockFreeAction BlockMaxError BurstBufferOperation
    BurstBufferResources BurstBufferStageIn Cleaning Constraints DeadLine Dependency DependencyNeverSatisfied FedJobLock
    FrontEndDown InactiveLimit InvalidAccount InvalidQOS JobArrayTaskLimit JobHeldAdmin JobHeldUser
    JobHoldMaxRequeue JobLaunchFailure Licenses MaxMemPerLimit MaxPoweredUpNodes MpiPortsBusy NodeDown NonZeroExitCode
    NvidiaImexChannels OutOfMemory PartitionConfig
    PartitionDown PartitionInactive PartitionNodeLimit PartitionTimeLimit PowerNotAvail PowerReserved Prolog
    QOSNotAllowed RaisedSignal ReqNodeNotAvail Reservation ReservationDeleted ReservationInvalid SystemFailure TimeLimit
    """,
    )
)
#: Reasons that the order of jobs and the GPUs in use give by themselves: the rules find these.
OWN = frozenset({"", "None", "Priority", "Resources", "SchedDefer", "Nodes required for job are DOWN"})
#: Reasons that are a limit of the association on what it holds at one time (GrpTRES), which the model has as a cap.
CAPS = frozenset({"AssocGrpGRES", "AssocGrpCpuLimit", "AssocGrpMemLimit"})
#: All other limits of associations, QOS and accounts, of which the documented list has some 150.
_LIMIT = re.compile(r"(Assoc(Grp|Max|iation)|QOS)\w+|Max\w+Per(Account|User)")
#: The nodes that Slurm calls unavailable are down, or kept for others.
_UNAVAILABLE = re.compile(r"UnavailableNodes:([^\s)]+)")


def _stated(fields: Mapping[str, str]) -> str:
    listed = fields.get("nodelist", "")
    return said(fields.get("reason", "")) or (listed if listed.startswith("(") else "")


def reason_of(fields: Mapping[str, str]) -> str:
    """Return why a job waits, as Slurm states it, without what follows: unavailable nodes, and the like."""
    return _first_words(_stated(fields))


@lru_cache(2**10)  # the same few stand at thousands of jobs
def _first_words(text: str) -> str:
    return said(text.strip("() ")).replace("_", " ").partition(",")[0].partition(":")[0].strip()


def stopped_by(reason: str) -> tuple[str, bool]:
    """Return what is to be said of a reason, "" for nothing, and whether its job is left aside.

    >>> stopped_by("Priority"), stopped_by("Dependency")[1]
    (('', False), True)
    """
    if reason in HELD or reason.endswith(("requeued held", "in held state")) or "not permitted" in reason:
        return "no free GPU starts such a job: it is left aside", True
    if _LIMIT.fullmatch(reason) and reason not in CAPS:
        return "a limit that Slurm states: no free GPU starts such a job, and it is left aside", True
    return ("", False) if reason in OWN | CAPS else ("not known here; the job is taken to wait for GPUs", False)


def unavailable(job: ObjectPart) -> list[str]:
    """Return the nodes that Slurm states to be unavailable where that is why a job waits."""
    named = _UNAVAILABLE.search(_stated(job.value)) if reason_of(job.value) == "ReqNodeNotAvail" else None
    return hosts(named[1], f"{job.place}, Reason") if named else []


#: States in which a job holds GPUs, and in which it waits.
RUNS = frozenset({"RUNNING", "R", "COMPLETING", "CG", "CONFIGURING", "CF", "STAGE_OUT", "SO", "RESIZING", "RS"})
RUNS |= {"STOPPED", "ST", "SIGNALING", "SI"}
#: A job in these keeps its GPUs and memory, and gives back its CPUs. Source: Slurm 284c3b95,
#: src/plugins/select/cons_tres/job_resources.c, job_res_rm_job.
SUSPENDED = frozenset({"SUSPENDED", "S"})
WAITS = frozenset({"PENDING", "PD", "REQUEUED", "RQ", "REQUEUE_FED", "RF"})
#: What jobs take, and their GPUs by type, by the texts that say so.
Taken = dict[Any, tuple[dict[str, Number], dict[str, int]]]


def state_of(job: ObjectPart) -> str:
    """Return the state of a job, in capitals, without what follows."""
    return _first_state(str(job.value.get("jobstate") or job.value.get("state", "")))


@lru_cache(2**10)  # the same few stand at thousands of jobs
def _first_state(text: str) -> str:
    return (said(text).upper().split() or [""])[0].split(",")[0]


#: Where a record says what its job takes.
_AMOUNTS = ["alloctres", "reqtres", "cpus", "numcpus", "trespernode", "tres_per_node", "gres", "nnodes", "numnodes"]


class JobRecord(NamedTuple):
    """A job: whose it is, what it holds or asks for, its GPUs by type (`UNTYPED` where it takes any), since when.

    ``since``: when it was submitted, 0 where nothing is said. ``nodes``: those that it runs on.
    """

    record: ObjectPart
    runs: bool
    owner: Key
    asked: Mapping[str, Number]
    gpus: Mapping[str, int]
    since: Fraction
    nodes: Sequence[str]

    @staticmethod
    def of(record: ObjectPart, owner: Key, alike: Taken) -> JobRecord:
        """Return what a record of a job of ``owner`` says. Errors: `BadInput` with the place, the value and the remedy.

        ``alike``: what jobs with the same texts take; it is added to.
        """
        fields, place, state = record.value, record.place, state_of(record)
        runs = state in RUNS | SUSPENDED
        texts = (runs, *map(fields.get, _AMOUNTS))
        if texts not in alike:
            alike[texts] = _taken(fields, place, runs=runs)
        asked, gpus = alike[texts]
        asked = asked | {"cpu": Fraction(0)} if state in SUSPENDED else asked
        since = moment(fields.get("submit") or fields.get("submittime", ""), f"{place}, Submit") or Fraction(0)
        nodes = hosts(fields.get("nodelist", ""), f"{place}, NodeList") if runs else []
        return JobRecord(record, runs, owner, asked, gpus, since, nodes)


def owner_of(job: ObjectPart) -> Key:
    """Return the account, the user and the partition of a job."""
    user = said(job.value.get("user") or job.value.get("userid", "")).partition("(")[0]
    return said(job.value.get("account", "")), user, said(job.value.get("partition", ""))


def _taken(fields: Mapping[str, str], place: str, *, runs: bool) -> tuple[dict[str, Number], dict[str, int]]:
    """Return what a job holds or asks for, and its GPUs by type."""
    asked = tres(fields.get("alloctres", "") if runs else "", f"{place}, AllocTRES")
    asked = asked or tres(fields.get("reqtres", ""), f"{place}, ReqTRES")
    if "cpu" not in asked and (cpus := said(fields.get("cpus") or fields.get("numcpus", "")).partition("-")[0]):
        asked["cpu"] = Fraction(int(cpus) if cpus.isdecimal() else integer(cpus, f"{place}, CPUs"))
    if gpus := gpus_of(asked, f"{place}, TRES"):
        return asked, gpus
    each = fields.get("trespernode") or fields.get("tres_per_node") or fields.get("gres", "")
    count = said(fields.get("nnodes") or fields.get("numnodes", "")).partition("-")[0] or "1"
    times = 1 if count == "1" else integer(count, f"{place}, nodes")
    return asked, {kind: number * times for kind, number in gres(each, f"{place}, TresPerNode").items()}
