"""Workloads of Pollux's simulator, with what was measured of their jobs on T4 GPUs, four on a host."""

from __future__ import annotations

from fairopt.importing.goodput import Measured, known, profile_of, trace_of, traces_of, workload
from fairopt.problem import Cluster, Trace
from fairopt.problem.files.storage import AnyPath
from fairopt.problem.profile import Profile

#: Epochs of each application, and the largest batch on a GPU where the tables have larger ones.
APPLICATIONS: dict[str, tuple[int, int | None]] = {
    "bert": (2, None),
    "cifar10": (100, None),
    "ncf": (10, None),
    "imagenet": (90, None),
    "deepspeech2": (80, None),
    "yolov3": (50, 8),
}
#: Seconds to stop a job and to start it again, whatever it is.
RESTART = 30
#: The simulator knows no placement of more GPUs.
MOST_GPUS = 64
#: This application does not scale: it runs on one GPU, with this batch.
ALONE = {"ncf": 32768}


def read(path: AnyPath) -> Trace:
    """Read a workload of Pollux's artefact, in its checkout, as jobs that choose their batches, on 1 to 64 GPUs.

    Errors: `BadInput` that names the file, the line, the value and the remedy.

    Source: simulator/ of github.com/petuum/adaptdl, branch osdi21-artifact, commit c793c70.
    """
    return read_workload(path)


def read_workload(path: AnyPath, batches: str = "free", sizes: str = "free") -> Trace:
    """Read a workload; ``batches`` and ``sizes`` "fixed" keep the batch, or the GPUs, that it has for each job.

    Source: simulator.py, `get_pollux_job_info`, `get_optimus_job_info`, `get_tiresias_job_info`.
    """
    rows, folder, made = workload(path), traces_of(path), dict[tuple[object, ...], Profile]()
    profiles = []
    for number, row in enumerate(rows, 2):
        name = known(row["application"], APPLICATIONS, f"line {number}, application")
        batch = int(row["batch_size"]) if batches == "fixed" else ALONE.get(name) if name in ALONE else None
        gpus = int(row["num_replicas"]) if sizes == "fixed" else None
        key = name, batch, gpus
        if key not in made:
            epochs, most = APPLICATIONS[name]
            measured = Measured(folder / name, epochs, 4, most_local=most)
            most_gpus = min(MOST_GPUS, (batch or max(measured.runs)) // measured.locals[0])
            own = [gpus] if gpus else range(1, (1 if name in ALONE else most_gpus) + 1)
            made[key] = profile_of([measured], [own], None if batch is None else [batch], restart=RESTART)
        profiles.append(made[key])
    names = {row["application"] for row in rows}
    epochs_of = {name: Measured(folder / name, APPLICATIONS[name][0], 4).marks[-1] for name in names}
    counts = [int(row["num_replicas"]) if sizes == "fixed" else 1 for row in rows]
    return trace_of(rows, ["T4"], counts, epochs_of, profiles)


def cluster() -> Cluster:
    """Return the cluster of Pollux's simulations: 16 hosts of four T4."""
    return Cluster.uniform({"T4": (16, 4)})
