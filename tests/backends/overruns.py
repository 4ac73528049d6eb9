"""How far time limits are overrun: random questions to policies on random markets, each with a limit.

`python tests/backends/overruns.py --trials 200` prints the largest overruns. What is measured is the time of a call, or
of a cell of `compare` or curve of `frontier`, over its limit. A question that takes `HOPELESS` seconds is ended. On a
busy machine an overrun counts where the question had the limit and a second of processor for itself alone.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
from argparse import ArgumentParser
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from random import Random
from time import perf_counter
from typing import Any

import numpy as np

import fairopt
from fairopt.deadline import time_limit
from fairopt.errors import FairoptError, NotSolved, OutOfTime
from fairopt.frontier import GOALS, RELAXED
from fairopt.problem import Market
from fairopt.properties import Effort

LIMITS = (0.2, 0.5, 1.0, 3.0)
HOPELESS = 30.0
INFINITY = float("inf")
POLICIES = (
    *("max-efficiency", "oef-noncooperative", "oef-cooperative", "max-min", "water-filling", "nash-welfare"),
    *("partial-allocation", "second-price-trading", "oef-cooperative-robust"),
)
PROPERTIES = ("envy_freeness", "pareto_efficiency", "sharing_incentive", "strategy_proofness")
BACKENDS = (None, None, "highs", "exact", "clarabel", "scs", "pyomo")
#: The most users, by what is asked: beyond, a program alone fills the memory.
MOST = {"solver": 400, "exact": 300, "block": 2000, "compare": 300, "frontier": 40}


@dataclass(frozen=True)
class Question:
    """What is asked of a policy, on a market of a size, with a limit."""

    seed: int
    ask: str
    policy: str
    backend: str | None
    property: str
    users: int
    types: int
    exact: bool
    limit: float

    @classmethod
    def draw(cls, seed: int) -> Question:
        """Return the question of a seed."""
        draw = Random(f"limit {seed}")
        ask = draw.choice(["solver", "exact", "block", "compare", "compare", "frontier"])
        users = round(5 * (MOST[ask] / 5) ** draw.random())
        backend = draw.choice(BACKENDS) if ask == "solver" else None
        exact = ask == "exact" or backend == "exact" or (ask == "compare" and draw.random() < 0.5)
        parts = draw.choice(POLICIES), backend, draw.choice(PROPERTIES), users, draw.choice([2, 3, 5, 10])
        return cls(seed, ask, *parts, exact, draw.choice(LIMITS))

    def market(self) -> Market:
        """Return the market."""
        rng = np.random.default_rng(self.seed)
        rows = np.round(np.sort(np.exp(rng.normal(0, 1, (self.users, self.types))), axis=1), 3) + 0.001
        demand = np.round(rng.uniform(0.5, 8, self.users), 1) if self.seed % 3 == 0 else None
        given = [[Fraction(str(v)) for v in row] for row in rows.tolist()]
        limits = None if demand is None else [Fraction(str(v)) for v in demand.tolist()]
        market = Market.of(given, [Fraction(self.users)] * self.types, demand=limits)
        return market if self.exact or self.ask == "frontier" else market.as_(float)

    def overrun(self) -> tuple[float, str]:
        """Return the seconds over the limit, and how it ended."""
        market, ended = self.market(), "answered"
        begun = perf_counter()
        try:
            if self.ask in ("solver", "exact"):
                fairopt.allocate(self.policy, market, self.backend, exact=self.exact, time_limit=self.limit)
            elif self.ask == "block":
                with time_limit(self.limit):
                    fairopt.allocate(self.policy, market)
            elif self.ask == "compare":
                effort = Effort(seconds=self.limit)
                row = fairopt.compare(market, self.policy, self.property, limit=self.limit, effort=effort).rows[0]
                allowed = {name: self.limit * (1 + (name == "strategy_proofness")) for name in row.seconds}
                ended = "answered" if row.outcome is not None else type(row.error).__name__
                return max(row.seconds[name] - allowed[name] for name in row.seconds), ended
            else:
                cells: list[float] = []
                goal, relaxed = GOALS[self.seed % len(GOALS)].name, RELAXED[self.seed % len(RELAXED)].name
                watch = lambda *_: cells.append(perf_counter())  # noqa: E731
                fairopt.frontier(market, goal, relaxed, policies=self.policy, limit=self.limit, watch=watch)
                watch()
                limits = np.array([1, 2, 2] if len(cells) == 4 else [1, 3])  # faces and distances have one each
                return float((np.diff(cells) - self.limit * limits).max()), "answered"
        except (NotSolved, OutOfTime) as error:
            found = error.solution
            bounds = found is not None and (found.gap is not None or found.bound is not None)
            ended = f"{type(error).__name__}{', with a bound' * bounds}"
        except FairoptError as error:
            ended = type(error).__name__
        return perf_counter() - begun - self.limit, ended


def measured(question: Question, most: float = HOPELESS) -> tuple[float, str, float]:
    """Return the overrun of a question that is asked in a process of its own, and the processor seconds of that."""
    out, into = os.pipe()
    number = os.fork()
    if not number:
        try:
            told: Any = question.overrun()
            used = (resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            told = (*told, sum(each.ru_utime + each.ru_stime for each in used))
        except BaseException as error:  # noqa: BLE001  # it is what came of it
            told = (-1.0, f"TRACEBACK {error!r}"[:300], 0.0)
        os.write(into, json.dumps(told).encode())
        sys.stdout.flush()
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as stream:
        ready, _, _ = select.select([stream], [], [], most + question.limit)
        if not ready:
            os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)
        text = stream.read() if ready else ""
    return tuple(json.loads(text)) if text else (most, "ended after too long" if not ready else "DIED", INFINITY)


def row(seconds: float, ended: str, processor: float, question: Question) -> str:
    """Return a line of what is printed."""
    return f"{seconds:7.2f} s  {ended}, {processor:.2f} s of processor: {question}"


def main() -> int:
    """Ask, and print the largest overruns; exit status 1 where one is above a second, but for other programs."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--shown", type=int, default=25)
    parser.add_argument("--users", type=int, help="so many in questions to rules and methods, and in rationals")
    given = parser.parse_args()
    for library in ("fairopt.models", "cvxpy", "pyomo.environ", "flint", "highspy"):  # to import them takes seconds
        import_module(library)
    found = []
    for seed in range(given.first, given.first + given.trials):
        question = Question.draw(seed)
        if given.users and question.ask in ("exact", "block", "compare"):
            question = replace(question, users=given.users)
        found.append((*measured(question), question))
        if found[-1][0] > 1:
            print(row(*found[-1]), flush=True)
    found.sort(key=lambda each: -each[0])
    print(f"largest overruns of {len(found)}:")
    for each in found[: given.shown]:
        print(row(*each))
    over = sum(each[0] > 1 for each in found)
    own = sum(each[0] > 1 and each[2] > each[3].limit + 1 for each in found)
    endings = {each[1]: sum(other[1] == each[1] for other in found) for each in found}
    print(f"{over} above 1 s, {own} of them with as much time of the processor to themselves; {endings}")
    return int(own > 0)


if __name__ == "__main__":
    sys.exit(main())
