"""What Slurm's files say of who may start where and the rule does not read is listed, in every form of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairopt.importing import slurm
from fairopt.importing.imported import Imported

SHARES = "Account|User|RawShares|RawUsage|FairShare\nroot||1|0|\n a||1|0|\n  a|ann|1|0|0.5\n  a|bob|1|0|0.5\n"
NODES = """NodeName=n1 CoresPerSocket=16
   CPUAlloc=8 CPUEfctv=30 CPUTot=32
   ActiveFeatures=nvlink,a100
   Gres=gpu:a100:4
   RealMemory=256000 State={state} Weight=1
   Partitions=gpu
   CfgTRES=cpu=32,mem=250G,billing=32,gres/gpu=4
"""
RUNS = """JobId=11 JobName=train
   UserId=ann(1000) Account=a QOS=normal
   JobState={state} Reason=None
   SubmitTime=2026-11-01T10:00:00 Partition=gpu
   ReqNodeList=n1 NodeList=n1
   NumNodes=1 NumCPUs=8 MinMemoryNode=64G Features=nvlink
   OverSubscribe=NO TresPerNode=gres:gpu:a100:2
"""
WAITS = """JobId=12 JobName=wait
   UserId=bob(1001) Account=a QOS=normal
   JobState=PENDING Reason=Resources
   SubmitTime=2026-11-01T10:05:00 Partition=gpu
   NodeList=
   NumNodes=1 NumCPUs=8 {more}
   TresPerNode=gres:gpu:a100:2
"""
PARTITION = """PartitionName=gpu
   AllowGroups={groups} AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL QoS=N/A ExclusiveUser=NO
   MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 MaxCPUsPerNode={cpus} Nodes=n1
   PriorityTier=1 RootOnly=NO ReqResv={resv} OverSubscribe={shared} PreemptMode={mode} OverTimeLimit=NONE State=UP
   MaxMemPerNode=UNLIMITED
"""
CONFIGURATION = """Configuration data as of 2026-11-01T12:00:00
PriorityType            = priority/multifactor
SelectType              = select/cons_tres
SelectTypeParameters    = {selects}
PreemptMode             = {mode}
SchedulerParameters     = {parameters}
TopologyPlugin          = topology/none
"""
RESERVATION = """ReservationName=course StartTime=2026-11-01T09:00:00 EndTime=2026-11-01T18:00:00 Duration=09:00:00
   Nodes=n1 NodeCnt=1 CoreCnt=32 Features=(null) PartitionName=gpu Flags=SPEC_NODES
     NodeName=n1 CoreIDs=0-31
     NodeName=n2 CoreIDs=0-31
   TRES=cpu=64
   Users=ann,bob Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null)
   MaxStartDelay=(null)
"""


def read(folder: Path, **texts: str) -> Imported:
    given = {"shares": SHARES, "nodes": NODES.format(state="MIXED")} | texts
    paths = [folder / f"{name}.txt" for name in given]
    for path, text in zip(paths, given.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return slurm.read(*paths)


def listed(found: Imported, column: str) -> str:
    return "; ".join(each.why for each in found.unplaced if column in (each.place + ", " + each.value).split(", "))


SILENT = "do not change who is owed or holds which GPUs"


@pytest.mark.parametrize(
    ("more", "column", "why"),
    [
        ("Features=nvlink&a100", "features", "does not read it"),
        ("Reservation=course", "reservation", "reservations are not modelled"),
        ("ReqNodeList=n1", "reqnodelist", "does not read it"),
        ("ExcNodeList=n2", "excnodelist", "does not read it"),
        ("Licenses=matlab:1", "licenses", "licences are not modelled"),
        ("MinMemoryCPU=8G", "minmemorycpu", "memory is not modelled"),
        ("MinMemoryNode=64G", "minmemorynode", "memory is not modelled"),
        ("OverSubscribe=NO", "oversubscribe", "shares nodes"),
        ("Contiguous=1", "contiguous", "does not read it"),
        ("Switches=1@00:05:00", "switches", "does not read it"),
        ("CoreSpec=2", "corespec", "does not read it"),
    ],
)
def test_what_a_job_that_waits_asks_of_nodes(tmp_path: Path, more: str, column: str, why: str) -> None:
    assert why in listed(read(tmp_path, jobs=WAITS.format(more=more)), column)


def test_what_says_nothing_of_a_job_is_not_called_unread(tmp_path: Path) -> None:
    more = (
        "Features=(null) ReqNodeList=(null) ExcNodeList=(null) Licenses=(null) MinMemoryNode=0 OverSubscribe=OK "
        "Contiguous=0 CoreSpec=* MinTmpDiskNode=0"
    )
    found = read(tmp_path, jobs=WAITS.format(more=more))
    assert all(SILENT in each.why for each in found.unplaced if each.place.startswith("sacct"))


def test_of_a_job_that_runs_it_does_not_matter(tmp_path: Path) -> None:
    found = read(tmp_path, jobs=RUNS.format(state="RUNNING"))
    assert SILENT in listed(found, "features")
    assert "memory" not in listed(found, "minmemorynode")


@pytest.mark.parametrize("state", ["SUSPENDED", "STOPPED"])
def test_a_suspended_job_keeps_its_gpus(tmp_path: Path, state: str) -> None:
    owed = read(tmp_path, jobs=RUNS.format(state=state)).problem.entitlements
    assert owed.held[owed.node("a/ann")].tolist()[:1] == [2]


def test_a_suspended_job_gives_its_cpus_back(tmp_path: Path) -> None:
    part = PARTITION.format(groups="ALL", cpus="UNLIMITED", resv="NO", shared="NO", mode="OFF")
    cpus = {
        state: read(tmp_path, jobs=RUNS.format(state=state), part=part)
        .problem.entitlements.gangs.settings[0]
        .get("NumCPUs")
        for state in ("RUNNING", "SUSPENDED")
    }
    assert cpus == {"RUNNING": "8", "SUSPENDED": None}


def test_memory_is_not_spoken_of_where_slurm_does_not_count_it(tmp_path: Path) -> None:
    jobs = WAITS.format(more="MinMemoryNode=64G")
    for selects, said in (("CR_CORE", False), ("CR_CORE_MEMORY", True)):
        config = CONFIGURATION.format(selects=selects, mode="OFF", parameters="(null)")
        found = read(tmp_path, jobs=jobs, config=config)
        assert ("memory is not modelled" in listed(found, "minmemorynode")) is said
        assert ("memory is not modelled" in listed(found, "selecttypeparameters")) is said


@pytest.mark.parametrize(
    ("change", "column", "why"),
    [
        ({"groups": "staff"}, "allowgroups", "groups of users"),
        ({"cpus": "16"}, "maxcpuspernode", "a limit"),
        ({"resv": "YES"}, "reqresv", "lets every job in"),
        ({"shared": "EXCLUSIVE"}, "oversubscribe", "shares nodes"),
        ({"shared": "FORCE:4"}, "oversubscribe", "shares nodes"),
        ({"mode": "SUSPEND,GANG"}, "preemptmode", "suspension is not modelled"),
    ],
)
def test_what_a_partition_says(tmp_path: Path, change: dict[str, str], column: str, why: str) -> None:
    plain = {"groups": "ALL", "cpus": "UNLIMITED", "resv": "NO", "shared": "NO", "mode": "OFF"}
    assert why not in listed(read(tmp_path, part=PARTITION.format(**plain)), column)
    assert why in listed(read(tmp_path, part=PARTITION.format(**plain | change)), column)


def test_what_slurm_conf_says(tmp_path: Path) -> None:
    plain = CONFIGURATION.format(selects="CR_CORE", mode="OFF", parameters="bf_window=100")
    assert not [each for each in read(tmp_path, config=plain).unplaced if each.place.startswith("scontrol show config")]
    given = CONFIGURATION.format(selects="CR_CORE", mode="SUSPEND,GANG", parameters="assoc_limit_stop")
    found = read(tmp_path, config=given)
    assert "suspension" in listed(found, "preemptmode")
    assert "who starts next" in listed(found, "schedulerparameters")


def test_reservations_are_read_and_named(tmp_path: Path) -> None:
    found = read(tmp_path, resv=RESERVATION, nodes=NODES.format(state="MIXED+RESERVED"))
    named = [each for each in found.unplaced if each.place.startswith("scontrol show reservation")]
    assert [each.value for each in named] == ["'course: n1 for ann,bob'"]
    assert "open to every job" in named[0].why
    assert "open to every job" in listed(found, "state")
    assert not read(tmp_path, resv="No reservations in the system\n").problem.entitlements.gangs.names


def test_cpus_that_slurm_keeps_for_itself_are_named(tmp_path: Path) -> None:
    nodes = NODES.format(state="IDLE").replace("RealMemory", "CoreSpecCount=1 RealMemory")
    assert "keeps for itself" in listed(read(tmp_path, nodes=nodes), "corespeccount")
