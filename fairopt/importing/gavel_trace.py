"""Traces of Gavel's and of Shockwave's simulators, with the throughputs that were measured of their jobs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from fairopt.errors import BadInput
from fairopt.importing.imported import Imported
from fairopt.importing.throughputs import job_and_gpus, short
from fairopt.importing.unplaced import Places
from fairopt.problem import Jobs, Trace
from fairopt.problem.files.documents import parse_json
from fairopt.problem.files.storage import AnyPath, naming, read_text
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import amount, exact, shown, whole

#: What the cells of a line say, in Gavel's traces and in Shockwave's.
GAVEL = (
    *("job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor"),
    *("priority_weight", "SLO", "arrival_time"),
)
SHOCKWAVE = (*GAVEL[:7], "mode", *GAVEL[7:9], "duration", "arrival_time")
#: Throughputs of gangs that are spread over hosts have types of their own.
APART = "_unconsolidated"

#: By GPU type: steps a second of a job on so many GPUs together.
Measured = Mapping[str, Mapping[tuple[str, int], Fraction]]


def read(trace: AnyPath, throughputs: AnyPath) -> Imported:
    """Read a trace of Gavel or Shockwave, whose jobs run for so many steps, and the steps a second on each GPU type.

    ``trace`` has a line for each job, its cells apart by tabs: the 10 of Gavel, or the 12 of Shockwave. ``throughputs``
    is JSON as both have it, {type: {"('LM (batch size 5)', 1)": {"null": steps a second}}}; a job has throughput 0 on a
    type where it was not measured with its number of GPUs. Work is in steps, time in seconds; numbers are rounded to 6
    digits. Each job is a user's own, with its priority weight. Batches that grow, deadlines, and gangs over several
    hosts have no place, and are named.

    Errors: `BadInput` that names the file, the line, the value and the remedy; also for a job that was not measured.

    Source: Gavel (OSDI 2020), scheduler/utils.py (parse_trace), github.com/stanford-futuredata/gavel, commit c4fa4009;
    Shockwave (NSDI 2023), the same in github.com/uw-mad-dash/shockwave, commit 8a44f4a.
    """
    places = Places()
    with naming(throughputs):
        measured = _measured(throughputs, places)
    with naming(trace):
        rows = [_row(at, line) for at, line in enumerate(read_text(trace).splitlines(), 1) if line.strip()]
        gpus = [whole(row["scale_factor"], f"{place}, scale_factor", least=1) for place, row in rows]
        speeds = [
            _speeds(row["job_type"], each, measured, place) for (place, row), each in zip(rows, gpus, strict=True)
        ]
        for number, (place, row) in enumerate(rows):
            _note(f"job-{number}", place, row, places)
        jobs = Jobs.of(
            names=[f"job-{number}" for number in range(len(rows))],
            tenant=[f"job-{number}" for number in range(len(rows))],
            types=list(measured),
            arrival=[amount(row["arrival_time"], f"{place}, arrival_time") for place, row in rows],
            gpus=gpus,
            work=[amount(row["total_steps"], f"{place}, total_steps", above=True) for place, row in rows],
            weight=[amount(row["priority_weight"], f"{place}, priority_weight", above=True) for place, row in rows],
            throughput=[[short(speed, places) for speed in each] for each in speeds],
        )
    return Imported(Trace(jobs), places.listed)


def _row(number: int, line: str) -> tuple[str, dict[str, str]]:
    cells, place = line.split("\t"), f"line {number}"
    for names in (GAVEL, SHOCKWAVE):
        if len(cells) == len(names):
            return place, dict(zip(names, (cell.strip() for cell in cells), strict=True))
    remedy = f"Give {len(GAVEL)} as Gavel ({', '.join(GAVEL)}), or {len(SHOCKWAVE)} as Shockwave, apart by tabs"
    raise BadInput(f"{len(cells)} cells", place=place, remedy=remedy)


def _measured(path: AnyPath, places: Places) -> dict[str, dict[tuple[str, int], Fraction]]:
    measured: dict[str, dict[tuple[str, int], Fraction]] = {}
    for gpu_type, inside in parse_json(read_text(path)).items():
        if not isinstance(inside, Mapping):
            raise BadInput(f"got {shown(inside)}", place=gpu_type, remedy="Give {type: {job: {'null': throughput}}}")
        if gpu_type.endswith(APART):
            places.note("throughputs, type", gpu_type, gpu_type, "jobs lie on as few hosts as can be")
            continue
        speeds = measured[gpu_type] = {}
        for name, value in inside.items():
            alone = value.get("null") if isinstance(value, Mapping) else value  # beside it are pairs of jobs on a GPU
            if alone is not None:
                speeds[job_and_gpus(name)] = Fraction(amount(alone, f"{gpu_type}, {name}"))
    if not measured:
        raise BadInput("no GPU types", place="the top level", remedy="Give {type: {job: {'null': throughput}}}")
    return measured


def _speeds(name: str, gpus: int, measured: Measured, place: str) -> list[Fraction]:
    speeds = [own.get((name, gpus), Fraction(0)) for own in measured.values()]
    if any(speeds):
        return speeds
    known = [key for own in measured.values() for key, speed in own.items() if speed]
    sizes = sorted({count for job, count in known if job == name})
    remedy = f"It was on {', '.join(map(str, sizes))}"
    remedy = remedy if sizes else nearest(name, dict.fromkeys(job for job, _ in known), "job")
    raise BadInput(f"{name} was not measured on {gpus} GPUs together", place=place, remedy=remedy)


def _note(name: str, place: str, row: Mapping[str, str], places: Places) -> None:
    """Note what the line at a ``place`` says and a trace has no place for."""
    if row.get("mode", "static") != "static":
        places.note(
            "trace, mode", name, row["mode"], "its batch grows while it runs; it is read with that of the start"
        )
    if exact(row["SLO"], f"{place}, SLO") >= 0:
        places.note("trace, SLO", name, row["SLO"], "a trace has no deadlines")
    if "duration" in row:
        places.note("trace, duration", name, row["duration"], "how long it takes follows from steps and throughputs")
