"""Why a job of Slurm's waits, as Slurm states it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from fairopt.importing.slurm_values import hosts, said
from fairopt.problem.files.schema import ObjectPart

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
