"""Jobs of Slurm's: whose they are, whether they run, and what they hold or ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from fairopt.importing.slurm_unread import Key
from fairopt.importing.slurm_values import gpus_of, gres, hosts, moment, said, tres
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import integer
from fairopt.program import Number

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
