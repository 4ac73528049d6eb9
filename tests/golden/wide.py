"""Commands and policies that the other kinds do not ask: frontiers, incentives, comparisons, records, pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from generate import Problem, market, queue
from plan import Step

#: How many problems there are: markets and queues in turn.
COUNT = 60
LATER_SHARES = (
    "gavel-isolated", "gavel-proportional", "hierarchical-water-filling", "oef-efficient", "oef-cooperative-robust",
    "max-min-robust", "drf",
)  # fmt: skip
LATER_ROUNDS = (
    "easy-backfilling", "fifo", "hived", "karma", "pal", "shockwave", "sia", "slurm-fair-tree-rounds", "srtf", "fft",
)  # fmt: skip
WORKLOADS = ("poisson", "on-off", "astraea-venus", "fft-traces", "oef-tenants", "trace-driven")


def problem(number: int) -> Problem:
    """Return problem ``number``: the files of a market or of a queue."""
    random = Random(f"golden wide {number}")
    files, facts = queue(random) if number % 2 else market(random)
    return Problem(f"w{number:04d}", "wide", number, files, facts)


def steps(number: int, facts: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the commands of a problem."""
    yield from _queue(number // 2, facts) if number % 2 else _market(number // 2, facts)


def _market(number: int, facts: Mapping[str, Any]) -> Iterator[Step]:
    name = facts["market"]
    for policy in LATER_SHARES:
        exactly = ("--exact",) if number % 2 and policy != "drf" else ()
        yield Step(("solve", name, "--policy", policy, "--json", "--unique", *exactly))
    yield Step(("compare", name, "--evaluations", "12", "--seconds", "20"))
    match number % 4:
        case 0:
            yield Step(("frontier", name, "--json", "--goal", "total_efficiency", "--property", "envy_freeness"))
            yield Step(("frontier", name, "--html", "page.html", "--goal", "least_gain"), keep=("page.html",))
        case 1:
            yield Step(("incentives", name, "--json", "--evaluations", "6"))
        case 2:
            yield Step(("compare", name, "--json", "--error", "5%", "--property", "envy_freeness"))
        case 3:
            yield Step(("solve", name, "--policy", "max-min", "--exact"))
            yield Step(("incentives", name, "--evaluations", "3", "--kind", "split", "--policy", "nash-welfare"))


def _queue(number: int, facts: Mapping[str, Any]) -> Iterator[Step]:
    called = (facts["trace"], "--cluster", facts["cluster"], "--length", facts["length"])
    for shift in (0, 3, 6):
        policy = LATER_ROUNDS[(number + shift) % len(LATER_ROUNDS)]
        yield Step(("run", *called, "--policy", policy, "--json", "--rounds", "20"))
    policy = LATER_ROUNDS[number % len(LATER_ROUNDS)]
    yield Step(("run", *called, "--policy", policy, "--rounds", "20", "--record", "run.jsonl"), keep=("run.jsonl",))
    yield Step(("check", "run.jsonl"))
    yield Step(("verify", "run.jsonl", "--json"))
    compared = ("--policy", "srtf", "--policy", "fifo", "--policy", "themis")
    match number % 4:
        case 0:
            yield Step(("compare", *called, *compared, "--json", "--rounds", "20"))
        case 1:
            yield Step(("compare", *called, *compared, "--rounds", "20"))
        case 2:
            yield Step(("compare", *called, *compared, "--seeds", "3", "--json", "--rounds", "20"))
        case 3:
            workload = WORKLOADS[number // 4 % len(WORKLOADS)]
            cluster = () if "-" in workload and workload not in ("on-off", "trace-driven") else called[1:3]
            yield Step(("generate", workload, "--seed", str(number), *cluster, "--out", "made.csv"), keep=("made.csv",))
