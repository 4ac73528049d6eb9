"""Processor seconds that each registered policy of rounds takes for a round in which thousands of jobs wait.

    .venv/bin/python benchmarks/waiting.py philly.csv philly-cluster.toml [--jobs 10000] [--policy NAME ...]

The first jobs of a trace are all there at once, in floats, in rounds of 300 s with 30 s for a restart.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from time import process_time
from typing import Any

from fairopt import discovery
from fairopt.benchmarks.instances.traces import Traces
from fairopt.policy import Policy
from fairopt.problem import Queue, Trace
from fairopt.simulation import Setting
from fairopt.simulation.engine import Engine


def seconds(policy: Policy, setting: Setting, rounds: int) -> list[float]:
    """Return the processor seconds of each of the first rounds, the engine's included."""
    how: dict[str, Any] = {"length": setting.length, "mechanics": setting.mechanics, "ask": True}
    engine = Engine(policy, setting.trace, setting.cluster, **how)
    play, taken = iter(engine), []
    for _ in range(rounds):  # while jobs wait, something happens in each
        begun = process_time()
        next(play)
        taken.append(process_time() - begun)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("cluster")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--policy", action="append", help="a policy's name; all that are registered, if none is given")
    given = parser.parse_args()
    drawn = Traces().draw(0, {"trace": given.trace, "cluster": given.cluster, "jobs": given.jobs}).problem
    setting = replace(drawn, trace=Trace(replace(drawn.trace.jobs, arrival=drawn.trace.jobs.arrival * 0)))
    for name in given.policy or [each.name for each in discovery.policies(Queue)]:
        each = seconds(discovery.policy(name, Queue), setting, given.rounds)
        print(f"{name:24} {'  '.join(f'{one:.2f}' for one in each)}", flush=True)


if __name__ == "__main__":
    main()
