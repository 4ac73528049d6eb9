"""What Slurm's files say of who may start where and the rule does not read: each is listed, wherever it says something.

Source: Slurm 284c3b95, src/api/partition_info.c, src/scontrol/info_job.c; src/plugins/data_parser/v0.0.46/parsers.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache

from fairopt.importing.imported import ImportedQueue
from fairopt.importing.slurm_records import SlurmCommand
from fairopt.importing.slurm_values import said
from fairopt.problem.files.schema import ObjectPart
from fairopt.program import INFINITY, Number

#: (account, user, partition); an account has no user.
Key = tuple[str, str, str]
ELSEWHERE = "the rule does not read it, and may start a job on nodes where Slurm does not"
RESERVED = "reservations are not modelled: the rule takes the GPUs of these nodes to be open to every job"
PAST_USE = "past use is taken as the files state it"
_SHARING = "the rule shares nodes among jobs, a whole GPU to one"
_ORDER = "it changes who starts next; the rule does not read it"
_LIMIT = "a limit that the rule does not read"
MEMORY = "memory is not modelled: the rule may start a job where Slurm finds too little of it"

#: By command: columns that mean the same, what in them says nothing (a pattern for the whole value, in capital letters
#: or small), and why the rest matters.
_UNREAD: Mapping[SlurmCommand, tuple[tuple[str, str, str], ...]] = {
    SlurmCommand.JOB: (
        ("features constraints required_features", "", ELSEWHERE),
        (
            "reservation resv_name reservation/name reservation/requested",
            "",
            f"reservations are not modelled: {ELSEWHERE}",
        ),
        ("reqnodelist req_nodes required_nodes", "", ELSEWHERE),
        ("excnodelist exc_nodes excluded_nodes", "", ELSEWHERE),
        ("licenses", "", "licences are not modelled: the rule may start a job that waits for one"),
        ("minmemorynode minmemorycpu min_memory memory_per_node memory_per_cpu reqmem", r"0[KMGT]?[nc]?", MEMORY),
        ("oversubscribe over_subscribe shared", r"OK|YES|YES:\d+|OVERSUBSCRIBE|FORCE.*", _SHARING),
        ("exclusive", "NO|FALSE", _SHARING),
        ("contiguous", "0|NO|FALSE", ELSEWHERE),
        ("switches reqswitch required_switches", "0|0@00:00:00", ELSEWHERE),
        ("mintmpdisknode minimum_tmp_disk_per_node min_tmp_disk", r"0[KMGT]?", ELSEWHERE),
        ("corespec thread_spec s:c:t core_spec", r"\*|\*:\*:\*|0", ELSEWHERE),
    ),
    SlurmCommand.NODE: (
        ("reservationname reservation", "", RESERVED),
        ("corespeccount specialized_cores", "0", "CPUs that Slurm keeps for itself are offered to jobs here"),
        ("state", r"(?!.*\bRES(ERVED)?\b).*", RESERVED),
    ),
    SlurmCommand.PARTITION: (
        ("oversubscribe", "NO", _SHARING),
        ("exclusiveuser exclusive", "NO", _SHARING),
        ("allowgroups groups/allowed", "ALL", "groups of users are not modelled: the rule lets everybody in"),
        ("allocnodes nodes/allowed_allocation", "ALL", _LIMIT),
        ("rootonly reqresv", "NO", "the rule lets every job in"),
        ("maxcpuspernode maxcpuspersocket maximums/cpus_per_node", r"UNLIMITED|4294967295|inf|0", _LIMIT),
        ("maxmempernode maxmempercpu maximums/memory_per_cpu", r"UNLIMITED|0", MEMORY),
        ("overtimelimit maximums/over_time_limit", "NONE|0", "the rule takes jobs to end at their limits"),
    ),
    SlurmCommand.QOS: (
        ("flags", "NOTSET|DenyOnLimit", _LIMIT),
        ("usagefactor usage_factor", r"1(\.0+)?", PAST_USE),
        ("limitfactor limits/factor", r"0|1(\.0+)?", _LIMIT),
        ("preemptexempttime preempt/exempt_time", r"0|00:00:00", _ORDER),
    ),
    SlurmCommand.CONFIG: (
        ("priorityweightassoc", "0", _ORDER),
        ("priorityweighttres", "", _ORDER),
        ("prioritysitefactorplugin", "", _ORDER),
        ("preemptexempttime", "00:00:00", _ORDER),
        ("topologyplugin", "topology/(none|default|flat)", _ORDER),
        ("licenses", "", _ORDER),
        ("selecttype", "select/cons_.*", "the rule shares nodes among jobs, as select/cons_tres does"),
        ("selecttypeparameters", r"(?!.*MEMORY).*", MEMORY),
        ("priorityflags", r"(?!.*DEPTH_OBLIVIOUS).*", _ORDER),
        (
            "schedulerparameters",
            r"(?!.*(assoc_limit_stop|bf_min_prio_reserve|bf_min_age_reserve|bf_busy_nodes|default_queue_depth"
            r"|partition_job_depth|sched_max_job_start|bf_max_job_(part|user|assoc|start)|bf_one_resv_per_job"
            r"|preempt_strict_order|defer|max_rpc_cnt)).*",
            _ORDER,
        ),
    ),
}
_SUSPENDING = ("preemptmode preempt/mode", "(?!.*SUSPEND).*", "suspension is not modelled: the rule stops nobody so")
#: By command and column: what says nothing, and why the rest matters.
UNREAD: Mapping[SlurmCommand, Mapping[str, tuple[re.Pattern[str], str]]] = {
    kind: {
        name: (re.compile(silent, re.IGNORECASE), why)
        for names, silent, why in (*columns, *[_SUSPENDING] * (kind is not SlurmCommand.JOB))
        for name in names.split()
    }
    for kind, columns in _UNREAD.items()
}
#: By a part of a column's name: why one has no place that is not among these.
_BESIDE = {
    "mins": "a limit on use over time; the model has limits on what is held at one time",
    "submit": "a limit on what may be submitted, which jobs that wait have passed",
    "mintres": "the least that a job asks for, which jobs that wait have passed",
    "maxtres": "a limit on each node of a job; the model limits jobs",
    "wall": "a limit on use over time; the model has limits on what is held at one time",
    "pertask": "what each task asks for; the job's total is taken",
    "gresused": "what a node gives to jobs; the jobs themselves say who holds it",
    "priority": "Slurm's own result, or a factor that is 0 unless weighted; the rules compute the order",
}
OTHERWISE = "these fields do not change who is owed or holds which GPUs"
DOWN = "only GPUs that jobs hold on such a node are counted"
RATE = "only GPUs have a rate in the model"
#: In the order of accounts that tie.
TIED = "level fair-shares tie, and the files do not hold Slurm's order: it was taken from FairShare"
ADDED = "no association is listed; it was added"
#: Reasons of what keeps no job from starting.
HARMLESS = (
    *(_BESIDE[name] for name in ("submit", "mintres", "pertask", "gresused", "priority")),
    *(DOWN, RATE, TIED, ADDED, PAST_USE),
)


def unread(kind: SlurmCommand, name: str, value: str) -> str:
    """Return why it matters that the rule does not read a value, "" where it does not.

    >>> unread(SlurmCommand.JOB, "contiguous", "0"), unread(SlurmCommand.JOB, "licenses", "matlab")[:8]
    ('', 'licences')
    """
    silent, why = UNREAD.get(kind, {}).get(name, (None, ""))
    return "" if silent is None or silent.fullmatch(value) else why


def whose(kind: SlurmCommand, record: ObjectPart) -> str:
    """Return the name of what a record is about: a job, a node, a partition, a QOS or an association."""
    called = {
        SlurmCommand.JOB: "jobid", SlurmCommand.NODE: "nodename", SlurmCommand.PARTITION: "partitionname",
        SlurmCommand.QOS: "name", SlurmCommand.RESERVATION: "reservationname",
    }  # fmt: skip
    names = (called[kind],) if kind in called else ("account", "user", "partition")
    return "/".join(filter(None, (said(record.value.get(each, "")) for each in names)))


@cache
def beside(name: str) -> str:
    """Return why a column has no place that no table here names, "" where that is not known.

    >>> beside("MaxTRESMins".lower()).partition(";")[0]
    'a limit on use over time'
    """
    plain = name.replace("_", "").replace("/", "")
    return next((words for part, words in _BESIDE.items() if part in plain), "")


def settled(
    known: Mapping[Key, ImportedQueue], usage: Mapping[Key, Number], note: Callable[[str, str, object, str], None]
) -> dict[Key, ImportedQueue]:
    """Return associations, of accounts that tie in the order of Fair Tree, as the FairShare of their users says it.

    Slurm takes tied accounts in the order of its own list, which no file holds: in 22.05 the newest first once it was
    started again, by name after an account was added meanwhile; since 23.11 by name. Classic multifactor, which states
    a FairShare of accounts, too, has no such order.

    Source: Slurm 22.05.8, src/common/assoc_mgr.c, _post_assoc_list and assoc_mgr_update_assocs; asked live. Slurm
    284c3b95, src/common/slurmdb_defs.c, _sort_assoc_by_lineage_asc: read.
    """
    under, everybody = dict[str, list[Number]](), list[Number]()
    if any("FairShare" in found.declared for key, found in known.items() if not key[1]):
        return dict(known)
    for found in known.values():
        if "FairShare" in found.declared:
            everybody.append(found.declared["FairShare"])
            at = found.parent
            while at:
                under.setdefault(at, []).append(found.declared["FairShare"])
                at = known[at, "", ""].parent
    groups: dict[tuple[str, Number], list[Key]] = {}
    passes, endless = set[str](), set[str]()  # accounts with one of Fairshare=parent inside, or without limit inside
    for key, found in known.items():
        if not found.parent:
            continue
        over, share, used = found.parent, found.weight or 0, usage.get(key, 0)
        if found.tier and not key[1]:
            passes.add(over)
            continue
        while known[over, "", ""].tier and known[over, "", ""].parent:  # with Fairshare=parent it hands on
            over = known[over, "", ""].parent
        level = Fraction(share) / used if used else INFINITY if share else 0
        if level == INFINITY or found.tier:
            endless.add(over)
        if not key[1]:
            groups.setdefault((over, level), []).append(key)
    places = list(known)
    for tied in groups.values():
        inside = [value for key in tied for value in under.get(key[0], ())]
        if len(tied) < 2 or not inside:
            continue
        # users of an account have the rank of whoever came before where an account without users that ties stands first
        shared = everybody.count(max(inside)) > inside.count(max(inside))
        # what is in an account of Fairshare=parent comes after it, and so does not tie with who came before
        first: Mapping[Key, tuple[Number, ...]] = {
            key: (-max(own), -min(own), key[0] not in passes - endless)
            if (own := under.get(key[0]))
            else (-INFINITY if shared else INFINITY,)
            for key in tied
        }
        at_ = sorted(map(places.index, tied))
        for place, key in zip(at_, sorted(tied, key=lambda key: first[key]), strict=True):
            places[place] = key
        names = ", ".join(key[0] for key in sorted(tied, key=lambda key: first[key]))
        note("sshare", "FairShare", names, TIED)
    return {key: known[key] for key in places}
