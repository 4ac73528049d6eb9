"""Which commands are called on which problem: what is cheap on every one, the rest in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generate import Problem

SHARES = (
    "equal-split", "max-efficiency", "oef-noncooperative", "oef-cooperative", "max-min", "water-filling",
    "second-price-trading", "nash-welfare", "partial-allocation",
)  # fmt: skip
ROUNDS = (
    "allox", "fft", "fifo-quota", "gandiva-fair", "gavel-rounds", "lottery", "lottery-backfilling", "ltgf",
    "oef-rounds", "split-stride", "srtf", "stride", "themis", "tiresias", "tiresias-service",
)  # fmt: skip
SCHEDULES = ("batch-private", "fcfs", "posted-prices")
OF_ALLOCATIONS = (
    "feasibility", "sharing_incentive", "envy_freeness", "pareto_efficiency", "adjacent_types", "work_conservation",
)  # fmt: skip
BACKENDS = ("highs", "exact", "pyomo", "clarabel", "ecos", "scs")
#: Options of policies of rounds and schedules, tried in turn.
OPTIONS: Mapping[str, Sequence[tuple[str, ...]]] = {
    "fft": (("remaining=true",), ("in_rounds=true",), ("warm_start=false",), ("restart=5",)),
    "stride": (("by_weight=true",), ("by_size=false",), ("readjust=false",)),
    "lottery": (("seed=7",), ("count_wins=false",)),
    "lottery-backfilling": (("seed=7",), ("by_weight=true",)),
    "split-stride": (("whole=true",), ("shared=false",)),
    "gandiva-fair": (("trading=false",), ("migrations=2", "threshold=1/100"), ("profiling=false",)),
    "ltgf": (("adjusted=true",), ("lease=600",), ("backfill=true",)),
    "oef-rounds": (("shares=oef-noncooperative",), ("demand=true",), ("common_units=false",), ("left_over=false",)),
    "gavel-rounds": (("objective={LeastCost}",), ("objective={LeastMakespan}",), ("reset=false",), ("backfill=false",)),
    "fifo-quota": (("pooled=true",), ("overtake=true",), ("borrow=false",)),
    "tiresias": (("thresholds=60,600",), ("by_start=true",), ("skip=false",), ("promote=2",)),
    "tiresias-service": (("random=true", "seed=3"), ("gpu_time=false",), ("wait_for_hosts=true",)),
    "allox": (("alpha=1/2",), ("most=none",)),
    "themis": (("knob=1/2",), ("lease=600",), ("gang_share=true",), ("random_rest=false",)),
    "posted-prices": (("rounds=1",), ("theta=16",), ("intervals=3",)),
    "batch-private": ((),),
    "fcfs": (("shared=true",), ("horizon=6",)),
    "srtf": ((),),
}
#: What loading and moving costs, tried in turn.
MECHANICS: Sequence[tuple[str, ...]] = (
    (),
    ("--restart", "5"),
    ("--launch", "1/2", "--restart", "2.5"),
    ("--spread", "0.8"),
    ("--local-data",),
)


@dataclass(frozen=True)
class Step:
    """A command.

    ``save``: the file that its standard output becomes, for a later command. ``keep``: files and folders that it
    writes and that are observed. ``like``: which earlier step of the problem must have said the same.
    """

    arguments: tuple[str, ...]
    save: str = ""
    keep: tuple[str, ...] = ()
    like: int | None = None


@dataclass(frozen=True)
class Tampered:
    """A file of JSON is copied, with one number under ``within`` changed."""

    source: str
    target: str
    within: str
    number: int


@dataclass(frozen=True)
class Written:
    """A file is written, over what stood there."""

    name: str
    text: str


def steps(problem: Problem) -> Iterator[Step | Tampered]:
    """Yield what is done with a problem, in order."""
    of = {"markets": _market, "queues": _queue, "batches": _batch}[problem.kind]
    yield from of(problem.number, problem.facts)


def _step(*arguments: str, **more: Any) -> Step:
    return Step(tuple(arguments), **more)


def _named(option: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for name in names for word in (option, name))


# -- shares ----------------------------------------------------------------------------------------------------------
def _market(number: int, facts: Mapping[str, Any]) -> Iterator[Step | Tampered]:
    market, allocation = facts["market"], facts["allocation"]
    in_turn = [SHARES[(number + shift) % len(SHARES)] for shift in (0, 2, 4, 6, 8)]
    every, checked = _named("--policy", SHARES), _named("--property", OF_ALLOCATIONS)
    for policy in in_turn[:4]:
        yield _step("solve", market, "--policy", policy, "--exact", "--unique", "--json")
    for policy in in_turn[3:]:
        yield _step("solve", market, "--policy", policy, "--unique", "--json")
    if number % 4 == 2:
        yield _step("compare", market, "--json", *every, *checked, "--certificates", "evidence", keep=("evidence",))
        yield _step("check", "evidence")
    elif number % 2 == 0:
        yield _step("compare", market, "--json", "--unique", *every, *checked)
    else:
        yield _step("compare", market, "--json", "--floats", *every, *checked)
    yield from _misreports(number, market)
    if number % 4 == 1:
        yield _step("compare", market, "--json", "--every-optimum", *_named("--policy", in_turn[:2]), *checked)
    exactly = ("--exact",) if number % 2 else ()
    if number % 8 == 0:
        yield _step("verify", market, allocation, "--json", "--certificates", "verdicts", keep=("verdicts",))
        yield _step("check", "verdicts")
    else:
        yield _step("verify", market, allocation, "--json", *exactly)
    yield from _ways_to_solve(number, market, in_turn)


def _misreports(number: int, market: str) -> Iterator[Step]:
    policy = SHARES[number % 9]
    if policy == "partial-allocation" and number % 27 != 8:  # it is ten times as slow to search as the others
        policy = "oef-cooperative"
    searched = ("--policy", policy, "--property", "strategy_proofness", "--evaluations", "9")
    floats = ("--floats",) if number // 9 % 2 else ()
    if number % 4 == 2 and not floats:
        yield _step("compare", market, "--json", *searched, "--certificates", "lies", keep=("lies",))
        yield _step("check", "lies")
    else:
        yield _step("compare", market, "--json", *searched, *floats)
    if number % 6 == 0:
        policy = SHARES[number // 6 % 8]
        kind = ("any", "larger", "smaller")[number // 6 % 3]
        shrunk = ("--shrink", "--markets", "20") if number % 24 == 0 else ()
        yield _step("lie", market, "--policy", policy, "--kind", kind, "--json", "--evaluations", "9", *shrunk)


def _ways_to_solve(number: int, market: str, in_turn: Sequence[str]) -> Iterator[Step]:
    policy = SHARES[number // 5 % len(SHARES)]
    match number % 5:
        case 0:
            yield _step(
                "solve", market, "--policy", policy, "--json", "--certificate", "proof.json", keep=("proof.json",)
            )
            yield _step("check", "proof.json")
        case 1:
            exactly = ("--exact",) if number // 5 % 2 else ()
            yield _step("solve", market, "--policy", policy, "--json", "--canonical", *exactly)
        case 2:
            yield _step("solve", market, "--policy", policy, "--json", "--normalise", "--exact")
        case 3:
            backend = BACKENDS[number // 5 % len(BACKENDS)]
            yield _step("solve", market, "--policy", policy, "--json", "--backend", backend)
        case 4:
            yield from _tables(number, market, policy)


def _tables(number: int, market: str, policy: str) -> Iterator[Step]:
    match number // 5 % 3:
        case 0:
            yield _step("solve", market, "--policy", policy)
        case 1:
            yield _step("compare", market, *_named("--property", OF_ALLOCATIONS[:4]))
        case 2:
            yield _step("solve", market, "--policy", policy, "--exact", "--time-limit", "60")


# -- rounds ----------------------------------------------------------------------------------------------------------
def _queue(number: int, facts: Mapping[str, Any]) -> Iterator[Step | Tampered]:
    called = ("run", facts["trace"], "--cluster", facts["cluster"], "--length", facts["length"])
    in_turn = [ROUNDS[(number + shift) % len(ROUNDS)] for shift in range(0, 15, 3)]
    mechanics = MECHANICS[number % len(MECHANICS)]
    for policy in in_turn:
        yield _step(*called, "--policy", policy, "--json", "--rounds", "25", *mechanics)
    for policy in in_turn[:2]:
        yield _step(*called, "--policy", policy, "--json", "--rounds", "25", "--floats", *mechanics)
    policy = ROUNDS[number // 2 % len(ROUNDS)]
    options = OPTIONS[policy][number // 30 % len(OPTIONS[policy])]
    yield _step(*called, "--policy", policy, "--json", "--rounds", "25", *_named("--set", options), save="run.json")
    yield _step("check", "run.json")
    match number % 5:
        case 0:
            yield Tampered("run.json", "wrong.json", "rounds", number)
            yield _step("check", "wrong.json")
        case 1:
            policy = ROUNDS[number // 5 % len(ROUNDS)]
            whole = (*called, "--policy", policy, "--json", "--rounds")
            yield _step(*whole, "7")
            yield _step(*whole, "3", "--state", "journal", keep=("journal",))
            yield _step(*whole, "4", "--resume", "journal", "--state", "more", keep=("more",), like=9)
        case 2:
            backend = BACKENDS[number // 5 % 3]
            for policy in ("fft", "gavel-rounds", "oef-rounds"):
                yield _step(*called, "--policy", policy, "--json", "--rounds", "4", "--backend", backend)
        case 3 if number % 10 == 3:
            yield _step(*called, "--policy", in_turn[0], "--rounds", "25")


# -- schedules -------------------------------------------------------------------------------------------------------
def _batch(number: int, facts: Mapping[str, Any]) -> Iterator[Step | Tampered]:
    batch = facts["batch"]
    for policy in SCHEDULES:
        yield _step("schedule", batch, "--policy", policy, "--json")
    if number % 3 == 0:
        yield _step("schedule", batch, "--policy", "packing", "--json")
    if number % 10 == 0:
        yield _step("schedule", batch, "--policy", "offline-optimum", "--json")
    policy = SCHEDULES[number % len(SCHEDULES)]
    options = OPTIONS[policy][number // 3 % len(OPTIONS[policy])]
    yield _step("schedule", batch, "--policy", policy, "--json", *_named("--set", options), save="plan.json")
    yield _step("verify", batch, "plan.json", "--json", *(("--exact",) if number % 2 else ()))
    yield _step("check", "plan.json")
    for change in range(3):
        yield Tampered("plan.json", "wrong.json", "schedules" if change < 2 else "", 31 * number + change)
        yield _step("verify", batch, "wrong.json", "--json", "--exact")
        yield _step("check", "wrong.json")
    if number % 10 == 3:
        yield _step("schedule", batch, "--policy", policy)
        yield _step("verify", batch, "plan.json")
