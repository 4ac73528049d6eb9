"""Processor seconds of policies of rounds over a whole trace, measures and the sparse record included.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/whole_traces.py philly.csv philly-cluster.toml --policy srtf

`make_whole_traces.py` makes the files. Floats, rounds of 300 s, 30 s for a restart; reading the files is not counted.
Each line has the seconds, the jobs done, the most memory that the process had so far, and a hash of all completions, by
which two versions of the code are compared.
``--profile`` also prints where the time goes, and makes everything slower.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
from hashlib import sha256
from time import process_time

import numpy as np

from fairopt.benchmarks.instances.traces import Traces
from fairopt.benchmarks.peers.fairopt_rounds import FairoptRounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("cluster")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--policy", action="append", required=True)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    setting = Traces().draw(0, {"trace": given.trace, "cluster": given.cluster, "jobs": given.jobs}).problem
    for name in given.policy:
        contender = FairoptRounds(policy=name)
        built = contender.build("rounds", setting, time_limit=0, threads=1)
        profile = cProfile.Profile(process_time)
        begun = process_time()
        if given.profile:
            profile.enable()
        completed = contender.solve(built)["completed"]
        profile.disable()
        done, content = int(np.isfinite(completed).sum()), sha256(completed.tobytes()).hexdigest()[:16]
        seconds, memory = process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name:24} {seconds:7.1f} s  {done:,} jobs done  {memory:.0f} MB  {content}", flush=True)
        if given.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
