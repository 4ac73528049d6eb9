r"""User CPU seconds of policies of rounds over a whole trace, measures and the record included; two versions beside.

    OMP_NUM_THREADS=1 nice .venv/bin/python benchmarks/whole_traces.py philly.csv philly-cluster.toml --policy srtf \
        --beside ../old --repeats 3

`make_whole_traces.py` makes the files. Floats, rounds of 300 s, 30 s for a restart; reading the files is not counted.
``--beside`` names a checkout of another revision with a .venv of its own (``git worktree add``, then ``make``): the two
play in turn, each run in a process of its own, of ``--repeats`` the least is told. A line says whether both wrote the
same record, but for the seconds that decisions took, and found the same measures.
``--times`` plays the trace so many times over, one after the other; ``--profile`` prints where the time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import gzip
import json
import pstats
import re
import resource
import subprocess
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fairopt import discovery
from fairopt.benchmarks.instances.traces import Traces
from fairopt.problem import Trace
from fairopt.simulation import Setting
from fairopt.simulation.engine import Engine
from fairopt.simulation.measures import Measuring
from fairopt.simulation.recording import Recorder, header

#: What differs between two equal runs, in a line of a record.
SECONDS = re.compile(rb',?"seconds":[-+.e0-9]+')


def setting_of(trace: str, cluster: str, jobs: int, times: int) -> Setting:
    """Return the first jobs of a trace, so many times over, on a cluster, in floats."""
    found: Setting = Traces().draw(0, {"trace": trace, "cluster": cluster, "jobs": jobs}).problem
    if times == 1:
        return found
    one = found.trace.jobs
    span = float(one.arrival[-1]) + 1
    columns: dict[str, Any] = {}
    for name in (each.name for each in fields(one) if each.name not in ("types", "tenants", "tenant_weight")):
        value = getattr(one, name)
        columns[name] = np.concatenate([value] * times) if isinstance(value, np.ndarray) else value and value * times
    columns["arrival"] = np.concatenate([one.arrival + span * each for each in range(times)])
    columns["names"] = tuple(f"{name}-{each}" for each in range(times) for name in one.names)
    return replace(found, trace=Trace(replace(one, **columns), found.trace.outages))


def played(setting: Setting, name: str, *, profile: bool) -> dict[str, Any]:
    """Return what a run took, what it did, and hashes of its record and measures."""
    policy, trace, cluster = discovery.policy(name), setting.trace, setting.cluster
    how: dict[str, Any] = {"length": setting.length, "mechanics": setting.mechanics}
    profiler = cProfile.Profile()
    with TemporaryDirectory() as folder:
        path, begun = Path(folder, "record.jsonl.gz"), resource.getrusage(resource.RUSAGE_SELF).ru_utime
        if profile:
            profiler.enable()
        measuring = Measuring(trace, cluster)
        with Recorder(path, header(policy.name, trace, cluster, **how), trace, cluster) as book:
            book.keep()
            engine = Engine(policy, trace, cluster, **how)
            for changes in engine:
                measuring.add(changes)
                book.add(changes)
            book.end(engine.snapshot())
        found = measuring.result(engine.index)
        profiler.disable()
        used = resource.getrusage(resource.RUSAGE_SELF)
        record = sha256()
        with gzip.open(path, "rb") as lines:
            for line in lines:
                record.update(SECONDS.sub(b"", line))
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
    row = {name: value for name, value in found.row().items() if name != "deciding"}
    return {
        "seconds": used.ru_utime - begun,
        "megabytes": used.ru_maxrss / 1024,
        "done": found.completed,
        "rounds": engine.index,
        "record": record.hexdigest(),
        "measures": sha256(repr(row).encode()).hexdigest(),
    }


def elsewhere(folder: Path, name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Return what a run in a process of its own found, with the code of a checkout."""
    words = [given.trace, given.cluster, "--jobs", str(given.jobs), "--times", str(given.times), "--policy", name]
    command = [str(folder / ".venv/bin/python"), __file__, *words, "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("cluster")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--policy", action="append", required=True)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", action="store_true", help="one run in this process, as JSON")
    given = parser.parse_args()
    if given.json or given.profile:
        setting = setting_of(given.trace, given.cluster, given.jobs, given.times)
        for name in given.policy:
            print(json.dumps(played(setting, name, profile=given.profile)), flush=True)
        return
    here = Path(__file__).parents[1]
    folders = [here] if given.beside is None else [given.beside, here]
    print(
        "policy                   " + " ".join(f"{folder.resolve().name:>12}" for folder in folders) + "   least CPU s"
    )
    for name in given.policy:
        runs = [[elsewhere(folder, name, given) for folder in folders] for _ in range(given.repeats)]
        least = [min(run[at]["seconds"] for run in runs) for at in range(len(folders))]
        now = runs[0][-1]
        said = f"{name:24} " + " ".join(f"{each:12.1f}" for each in least)
        said += f"   {now['done']:,} jobs, {now['rounds']:,} rounds, {now['megabytes']:.0f} MB"
        if given.beside is not None:
            same = all(run[0][what] == run[1][what] for run in runs for what in ("record", "measures"))
            said += f", {least[0] / least[1]:.2f} times faster, {'same' if same else 'ANOTHER'} record and measures"
        print(said, flush=True)


if __name__ == "__main__":
    main()
