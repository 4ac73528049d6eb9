"""Water filling: max-min, then the next least ratio, and so on until nobody can be raised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.solution import not_negative, refuse_broken
from fairopt.backends.solver import Options
from fairopt.certificates import Certificate, row_duals
from fairopt.certificates import Levels as LevelsProof
from fairopt.errors import NotCapable, NotSolved
from fairopt.methods.proven import Proven
from fairopt.methods.water_filling.solve import Filled, fill
from fairopt.models.common.shares import shares_of
from fairopt.policy import Claim, Decision, Example, Formulated, Seconds, Solve, Trait
from fairopt.problem import Market
from fairopt.program import Array, Formulation, Program

#: Markets of more pairs of a user and a type than this are not solved again in Fractions only to be certified.
CERTIFIABLE = 1000
#: By which part of themselves ratios in floats may be off the exact ones, and are lowered before they become rows.
FLOAT_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Levels:
    """How far the water has risen: ``level`` (n,) is each user's ratio once fixed, ``fixed_in`` (n,) the round.

    A user not yet fixed has level 0 and round 0. ``pushes`` are the rounds' duals, which say who was held down: entries
    [block, index..., value], round by round.

    The policy's own algorithm gives ``proven``, round by round: what the level of the round is proved to be, where
    those fixed before have theirs; and ``slack`` (n,): by which part of its level a user is proved to have no more,
    where those fixed before have their levels and all others at least as much as it.
    """

    level: Array
    fixed_in: Array
    pushes: tuple[Sequence[Sequence[Any]], ...] = ()
    proven: tuple[Proven, ...] = ()
    slack: Array | None = None

    @property
    def fixed(self) -> Array:
        """Which users can be raised no more (n,)."""
        return np.asarray(self.fixed_in > 0)


class WaterFilling(Formulated):
    """The lexicographic completion of max-min: maximise the least ratio, then the second least, and so on.

    In each round the least ratio t of the users still open is maximised. A user is a bottleneck if its row has a
    non-zero dual: then it is at t in every optimum. The duals of the open rows add up to one, so at least one of m open
    users has 1/m or more; a float solver fixes those with at least half of that, which no rounding error can reach, and
    the exact one fixes all that are not zero. Users that
    are bottlenecks but not found so in one round are found in a later one, at the same level.

    The policy's own algorithm (`fairopt.methods.water_filling.solve`) needs about as many rounds as there are types,
    each by prices, where the program needs one for each demand that limits its user alone.

    Source: Gavel, OSDI 2020, Sec. 4.3 (there with a mixed-integer program); Radunovic and Le Boudec, A Unified
    Framework for Max-Min and Min-Max Fairness, 2007.
    """

    name = "water-filling"
    source = "Gavel, OSDI 2020, Sec. 4.3"
    specialised = True
    traits = frozenset({Trait.UNIT_FREE, Trait.COPIES, Trait.PROGRAM, Trait.EXACT, Trait.DETERMINED})
    claims = (
        Claim("sharing_incentive", "the first level is at least 1"),
        Claim("pareto_efficiency", "Radunovic and Le Boudec 2007, Sec. II"),
    )
    examples = (
        Example(
            "Gandiva_fair Fig. 1: C can use 2 GPUs only, and the rest goes to A and B",
            Market.of([[1], [1], [1]], capacity=[8], demand=[4, 4, 2], users=["A", "B", "C"]),
            shares=[[3], [3], [2]],
        ),
        Example(
            "two levels: u1 alone runs on the first type and reaches 3 times its own partition, the others 3/2",
            Market.of([[1, 0], [0, 1], [0, 1]], capacity=[1, 8]),
            utilities=[1, 4, 4],
        ),
    )

    def formulate(self, problem: Market, state: Levels | None) -> Program:
        """Return the program of one round."""
        levels = state or self._nothing_fixed(problem)
        p = Formulation(self.name)
        share = shares_of(p, problem)
        least = p.variable("least_ratio")
        ratio = (problem.speedup * share).sum(axis=1) / problem.fair_utility()
        p.maximize(least, equation="min over open l of E_l / E_l(equal)", source="Gavel Sec. 4.3")
        p.constrain(
            "least_ratio",
            ratio >= np.where(levels.fixed, 0, 1) * least + levels.level,
            equation="E_l / E_l(equal) >= t, or its level once fixed",
            source="Gavel Sec. 4.3",
            labels=(problem.users,),
        )
        return p.program()

    @staticmethod
    def _nothing_fixed(problem: Market) -> Levels:
        return Levels(problem.weight * 0, np.zeros(len(problem.users), dtype=np.int64))

    def decide(self, problem: Market, state: Any, solve: Solve | None) -> Decision:
        """Fill round by round; the evidence is the `Levels`."""
        if solve is None:
            return self.specialise(problem, state)
        begun = perf_counter()
        market = problem.as_(solve.number)
        levels = self._nothing_fixed(market)
        build = 0.0
        round_ = 0
        while True:
            round_ += 1
            start = perf_counter()
            program = self.formulate(market, levels)
            build += perf_counter() - start
            solution = solve(program).require_optimal()
            refuse_broken(program, solution)
            if solution.dual is None:
                raise NotCapable(f"{solve.backend.name} returns no duals, which {self.name} finds its bottlenecks by")
            open_ = ~levels.fixed
            push = np.abs(solution.dual[program.row_block("least_ratio").span]) * open_
            least = 0 if program.exact else 0.5 / int(open_.sum())
            stuck = (push > 0) & (push >= min(least, push.max()))
            if not stuck.any():
                raise NotSolved(f"{solution.backend} returned duals that hold nobody down", solution)
            reached = program.value(solution.point)
            levels = Levels(
                np.where(stuck, np.asarray(reached), levels.level),
                np.where(stuck, round_, levels.fixed_in),
                (*levels.pushes, row_duals(program, solution.dual)),
            )
            if levels.fixed.all():
                break
        return Decision(
            policy=self.name,
            market=problem,
            shares=not_negative(program.variable("share", solution.point)),
            objective=levels.level.min(),
            backend=solve.backend.name,
            program=program,
            solution=solution,
            evidence=levels,
            seconds=Seconds(build=build, solve=perf_counter() - begun - build),
        )

    def specialise(self, problem: Market, state: Any) -> Decision:
        """Fill by prices, in floats; the evidence is the `Levels`, with what is proved of each round.

        Errors: `NotSolved`.
        """
        begun = perf_counter()
        market = problem.as_(float)
        filled = fill(market.speedup, market.capacity, market.fair_utility(), market.demand)
        return Decision(
            policy=self.name,
            market=problem,
            shares=filled.shares,
            objective=filled.level.min(),
            backend="auto",
            evidence=Levels(filled.level, filled.fixed_in, proven=_proven(filled, market), slack=filled.slack),
            seconds=Seconds(solve=perf_counter() - begun),
        )

    def optimal_face(self, decision: Decision) -> Program | None:
        """Return the allocations with the same levels: nobody can be above its level while others are at theirs."""
        levels: Levels = decision.evidence
        market = decision.market.as_(Fraction if decision.exact else float)
        slack = FLOAT_SLACK if decision.program is None else 0
        p = Formulation(f"optima of {self.name}")
        share = shares_of(p, market)
        own = (market.speedup * share).sum(axis=1)
        p.constrain("levels", own >= levels.level * market.fair_utility() * (1 - slack), labels=(market.users,))
        return p.program()

    def choices(self, decision: Decision) -> Program | None:
        """Return the same: the levels say it all."""
        return self.optimal_face(decision)

    def certify(self, decision: Decision) -> Certificate:
        """Return the rounds: the level that each reached, and the duals that hold down whom it fixed.

        A decision of the policy's own algorithm on an exact market is solved again in Fractions: where the ratios are
        the same but for rounding, the certificate is that of an exact allocation that reaches them. Errors:
        `NotCapable` where the market is in floats or large, or the decision is a back end's in floats.
        """
        if decision.backend == "auto" and not decision.exact:
            decision = self._in_fractions(decision)
        self._require_exact(decision)
        levels: Levels = decision.evidence
        rounds = []
        for number, duals in enumerate(levels.pushes, start=1):
            fixed = np.flatnonzero(levels.fixed_in == number)
            users = [decision.market.users[i] for i in fixed]
            rounds.append({"level": levels.level[fixed[0]], "fixed": users, "duals": duals})
        return LevelsProof(decision.market, decision.shares, rounds)

    def _in_fractions(self, decision: Decision) -> Decision:
        """Return the exact decision that one in floats is near."""
        market = decision.market
        n, k = market.shape
        if not market.exact or n * k > CERTIFIABLE:
            why = f"its {n} x {k} market is too large to be solved in fractions" if market.exact else "so is its market"
            raise NotCapable(f"this decision of {self.name} is in floats, and floats prove nothing: {why}")
        exact = self.decide(market, None, Solve(Exact(), Options()))
        levels = exact.evidence.level.astype(float)
        if (np.abs(decision.evidence.level - levels) > FLOAT_SLACK * levels).any():
            raise NotCapable(f"this decision of {self.name} in floats is not the exact one")
        return replace(exact, seconds=decision.seconds)


def _proven(filled: Filled, market: Market) -> tuple[Proven, ...]:
    """Return what is proved of each round, in the rows of the policy's program."""
    fair = market.fair_utility()
    found = []
    for each in filled.rounds:
        duals = {"capacity": each.prices, "least_ratio": each.values * fair}
        if market.demand is not None:
            duals["demand"] = each.rents
        found.append(Proven(each.level, each.upper, duals, {"fixed": each.fixed.sum(), "capped": each.capped.sum()}))
    return tuple(found)
