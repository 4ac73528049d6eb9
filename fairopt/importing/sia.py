"""Workloads of Sia's simulator, with what was measured of their jobs on the types of GPU that its clusters have."""

from __future__ import annotations

from collections.abc import Mapping

from fairopt.importing.goodput import Measured, known, profile_of, trace_of, traces_of, workload
from fairopt.importing.pollux import APPLICATIONS, MOST_GPUS
from fairopt.problem import Cluster, Trace
from fairopt.problem.files.storage import AnyPath

#: By type: the ending of its tables, GPUs on a host, and hosts in the heterogeneous cluster.
TYPES: Mapping[str, tuple[str, int, int]] = {
    "T4": ("-aws", 4, 6),
    "RTX2080Ti": ("-rtx", 8, 3),
    "A100": ("-dgx-ext", 8, 2),
}
#: Seconds to stop and start a job, by application, and how many times slower it is on a real cluster.
RESTART = {"bert": 120, "cifar10": 50, "ncf": 15, "imagenet": 250, "deepspeech2": 25, "yolov3": 80}
SLOWDOWN = {"bert": 1.2, "cifar10": 1.8, "ncf": 1.5, "imagenet": 1.2, "deepspeech2": 1.2, "yolov3": 1.2}


def read(path: AnyPath) -> Trace:
    """Read a workload of Sia's artefact, in its checkout, as jobs that choose their batches on three types of GPU.

    A job runs with a power of two GPUs on one host, or with whole hosts of one type, as Sia has it.
    Errors: `BadInput` that names the file, the line, the value and the remedy.

    Source: sia-simulator/ of github.com/siasosp23/artifacts, commit aaf7a0d: applications.py, simulator_config.py,
    sia.py (CONFIGS_4GPU, CONFIGS_8GPU).
    """
    return read_workload(path, {name: hosts for name, (_, _, hosts) in TYPES.items()})


def read_workload(path: AnyPath, hosts: Mapping[str, int], whole: bool = True, fixed: bool = False) -> Trace:
    """Read a workload for a cluster of so many hosts of each type.

    ``whole`` False: a job runs with any number of GPUs, up to those of the type that has the fewest, as the source has
    it for schedulers that do not tell types apart (multi_simulator_unaware.py, `max_num_replicas`). ``fixed``: jobs
    keep the batch and the GPUs that the workload states, for schedulers that choose neither.
    """
    rows, folder = workload(path), traces_of(path)
    own_of: list[tuple[str, int, int]] = [  # 0 GPUs and batch 0: the job chooses them
        (
            known(row["application"], APPLICATIONS, f"line {at}, application"),
            fixed * int(row["num_replicas"]),
            fixed * int(row["batch_size"]),
        )
        for at, row in enumerate(rows, 2)
    ]
    made, work, tables = {}, {}, dict[tuple[str, str], Measured]()
    for name, set_gpus, batch in dict.fromkeys(own_of):
        measured, sizes = [], []
        for kind, count in hosts.items():
            suffix, each, _ = TYPES[kind]
            slow = 57 if (name, kind) == ("deepspeech2", "RTX2080Ti") else None  # what fits its memory
            one = tables.setdefault((name, kind), Measured(folder / name, APPLICATIONS[name][0], each, suffix, slow))
            there = each * count if whole else min(TYPES[other][1] * many for other, many in hosts.items())
            most = min(MOST_GPUS, there, max(one.runs) // one.locals[0])
            powers = [2**at for at in range(10) if 2**at <= each]
            own = [*powers, *range(2 * each, most + 1, each)] if whole else range(1, most + 1)
            sizes.append([gpus for gpus in ([set_gpus] if set_gpus else own) if gpus <= (there if fixed else most)])
            measured.append(one)
        made[name, set_gpus, batch] = profile_of(
            measured, sizes, [batch] if batch else None, slowdown=SLOWDOWN[name], restart=RESTART[name]
        )
        work[name] = measured[0].marks[-1]
    profiles = [made[own] for own in own_of]
    return trace_of(rows, list(hosts), [each.sizes[0] for each in profiles], work, profiles)


def cluster(hosts: Mapping[str, int]) -> Cluster:
    """Return the cluster of so many hosts of each type."""
    return Cluster.uniform({name: (count, TYPES[name][1]) for name, count in hosts.items()})
