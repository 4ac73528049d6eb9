"""Water filling: max-min, then the next smallest ratio, and so on until no user can be raised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from fairopt.backends import Method, Session
from fairopt.backends.solution import Solution, Status, without_noise
from fairopt.backends.trust import WIDE
from fairopt.certificates import WATER_FILLING, Certificate, floors_told, row_duals
from fairopt.deadline import left
from fairopt.errors import NotCapable, NotSolved, OutOfTime
from fairopt.methods.result import duals_of, so_far
from fairopt.methods.water_filling import CLEARLY, fill
from fairopt.models.gavel.many_levels import ManyLevels
from fairopt.models.gavel.partitions import Normaliser
from fairopt.policy import Allocation, Claim, Example, Formulated, Seconds, Trait, decide
from fairopt.policy.allocation import same_utilities
from fairopt.policy.policy import ManyBundles
from fairopt.problem import Market
from fairopt.problem.floors import FLOORS_AND_CAPS, is_entitled
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Number, Program

#: Larger markets (in users times types) are not solved again in Fractions for a certificate.
CERTIFIABLE = 1000
#: The relative error allowed between ratios in floats and the exact ones.
FLOAT_SLACK = 1e-9
#: The relative rounding error of the level that a demand allows: a sum over types, divided once.
MARGIN = 1e-13
#: Where all of a type adds less than this to a user's ratio, or more than its inverse, the last digit of one level
#: decides who has the type.
FAINT = 1e-6
#: So many speedups are decided in rationals where some are nearly in proportion: that takes milliseconds.
MOST_ALIKE = 60
#: Users whose levels rise so many times slower than others' are noise to a solver in floats.
APART = 1e6


@dataclass(frozen=True, eq=False)
class WaterLevels:
    """The result of the rounds so far: ``level`` (n,) is each user's ratio once fixed, ``fixed_in`` (n,) the round.

    A user that is not fixed yet has level 0 and round 0. ``pushes`` are the duals of each round, which identify the
    bottlenecks: entries [block, index..., value], round by round.

    The method by prices also gives ``proven``, round by round: proven bounds on the level of the round, given the
    levels of the users fixed before. ``slack`` (n,) is proven too: a user exceeds its level by at most this relative
    amount, if the users fixed before have their levels and all others have at least as much as it.
    """

    level: Array
    fixed_in: Array
    pushes: tuple[Sequence[Sequence[Any]], ...] = ()
    proven: tuple[Solution, ...] = ()
    slack: Array | None = None

    @property
    def fixed(self) -> Array:
        """Which users are fixed (n,)."""
        return np.asarray(self.fixed_in > 0)


@dataclass(frozen=True)
class WaterFilling(Formulated):
    """The lexicographic completion of max-min: maximise the least ratio, then the second least, and so on.

    Each round maximises the least ratio t of the users still open. A user is a bottleneck if its row has a non-zero
    dual: then it is at t in every optimum. The duals of the open rows add up to one, so at least one of m open users
    has 1/m or more. A float solver fixes the users with at least half of that, which is well above rounding error. The
    exact solver fixes all users with non-zero duals. Users that are bottlenecks but are not found in one round are
    found in a later one, at the same level.

    Its own method (`fairopt.methods.water_filling`) solves each round by prices and needs about as many rounds as
    there are types. The program needs a round for each demand that limits only its own user.

    Users and groups get at least their floors and at most their caps (`fairopt.problem.floors`); these are rows and
    bounds of every round's program, so what duals say of bottlenecks stays true.

    ``normaliser``: what throughputs are compared with, "own-partition", "equal-time" or "isolated" (`Normaliser`).

    Source: Gavel, OSDI 2020, Sec. 4.3 (there with a mixed-integer program); Radunovic and Le Boudec, A Unified
    Framework for Max-Min and Min-Max Fairness, 2007.

    >>> from fairopt import allocate
    >>> print(*allocate(WaterFilling(), Market.of([[1, 2], [1, 5]], [1, 1]), exact=True).utilities)
    5/3 10/3
    """

    normaliser: Normaliser = Normaliser.OWN_PARTITION

    name = "water-filling"
    source = "Gavel, OSDI 2020, Sec. 4.3"
    methods: ClassVar[tuple[Method, ...]] = (Method("prices", float),)
    supports = FLOORS_AND_CAPS
    traits = frozenset({Trait.UNIT_FREE, Trait.COPIES, Trait.PROGRAM, Trait.EXACT, Trait.DETERMINED})
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("sharing_incentive", "the first level is at least 1"),
        Claim("pareto_efficiency", "Radunovic and Le Boudec 2007, Sec. II"),
    )
    examples: ClassVar[tuple[Example, ...]] = (
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

    def formulate(self, problem: Market, state: WaterLevels | None) -> Program:
        """Return the program of one round."""
        levels = state or self._nothing_fixed(problem)
        p = Formulation(self.name)
        share = shares_of(p, problem)
        least = p.variable("least_ratio")
        ratio = (problem.speedup * share).sum(axis=1) / self._fair(problem)
        p.maximize(least, equation="min over open l of E_l / E_l(equal)", source="Gavel Sec. 4.3")
        p.constrain(
            "least_ratio",
            ratio >= self._rising(problem, levels) * least + levels.level,
            equation="E_l / E_l(equal) >= t, or its level once fixed",
            source="Gavel Sec. 4.3",
            labels=(problem.users,),
        )
        return p.program()

    def _fair(self, problem: Market) -> Array:
        """Return the throughput (n,) that each user's is compared with."""
        return self.normaliser.of(problem)

    def _rising(self, problem: Market, levels: WaterLevels) -> Array:
        """Return how fast each user's ratio rises in the next round (n,), 0 for one that keeps what it has."""
        return np.where(levels.fixed, 0, 1)

    def _raised(self, levels: WaterLevels, rising: Array, reached: Any, stuck: Array) -> Array:
        """Return the levels (n,) after a round; who is still open has none."""
        return np.where(stuck, np.asarray(reached), levels.level)

    @staticmethod
    def _nothing_fixed(problem: Market) -> WaterLevels:
        return WaterLevels(problem.weight * 0, np.zeros(len(problem.users), dtype=np.int64))

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        """Fill round by round; the evidence is the `WaterLevels`."""
        if solve.exact_fallback:
            self._refuse_unsure(problem.as_(float))
        if solve.method is not None:
            return self._by_prices(problem, solve.exact_fallback)
        begun = perf_counter()
        market = problem.as_(solve.number)
        levels, build, first = self._nothing_fixed(market), 0.0, None
        while not levels.fixed.all():
            start = perf_counter()
            program = self.formulate(market, levels)
            build += perf_counter() - start
            try:
                solution = solve.optimum(program)
            except OutOfTime as over:
                over.solution = self._until(first, solution) if first is not None else over.solution
                raise
            first = first or (program, solution)
            if solution.dual is None:
                raise NotCapable(f"{solve.backend.name} returns no duals, which {self.name} finds its bottlenecks by")
            rising = self._rising(market, levels)
            if not program.exact and rising.max() > APART * rising[rising > 0].min():
                apart = f"weights {rising.max() / rising[rising > 0].min():.2g} apart; decide with the exact backend"
                raise NotSolved(f"numerically out of range for {solve.backend.name}: {apart}", solution)
            push = np.abs(solution.dual[program.row_block("least_ratio").span]) * rising
            least = program.arithmetic.tolerance(0.5) / int((rising > 0).sum())
            stuck = (push > 0) & (push >= min(least, push.max()))
            if not stuck.any():
                raise NotSolved(f"{solution.backend} returned duals that hold nobody down", solution)
            reached = program.value(solution.point)
            levels = WaterLevels(
                self._raised(levels, rising, reached, stuck),
                np.where(stuck, len(levels.pushes) + 1, levels.fixed_in),
                (*levels.pushes, row_duals(program, solution.dual)),
            )
        return Allocation(
            self.name,
            problem,
            shares=without_noise(program.variable("share", solution.point), problem.capacity),
            objective=levels.level.min(),
            program=program,
            solution=solution,
            evidence=levels,
            seconds=Seconds(build=build, solve=perf_counter() - begun - build),
        )

    def _until(self, first: tuple[Program, Solution], last: Solution) -> Solution:
        """Return the ``first`` round's optimum with the shares of the ``last`` round before time was over."""
        program, solution = first
        x, level = last.point.copy(), program.variable_block("least_ratio").span
        x[level] = solution.point[level]
        word = "the least level is right; time was over before the others were"
        return replace(solution, status=Status.LIMIT, raw_status=word, x=x)

    def _refuse_unsure(self, market: Market) -> None:
        """Raise `NotSolved` where all of a type is nearly nothing to a user that can run there, or far too much.

        For the last digit of a level the user, or others, may then need all of the type, or none; later levels follow.
        """
        worth = market.speedup * market.capacity / self._fair(market)[:, None]
        if (apart := (worth > 0) & ((worth < FAINT) | (worth > 1 / FAINT))).any():
            user, type_ = np.argwhere(apart)[0]
            what = f"all of {market.types[type_]} adds {worth[user, type_]:.1g} to the ratio of {market.users[user]}"
            raise NotSolved(f"numerically out of range for floats: {what}")
        if market.speedup.size <= MOST_ALIKE and _nearly_alike(np.where(market.capacity > 0, market.speedup, 0.0)):
            raise NotSolved("numerically out of range for floats: some speedups are nearly in proportion")

    def many_bundles(self, problem: Market, before: Any) -> ManyBundles:
        """Return who fills for many misreports at once, round by round as `decide` does with a backend."""

        def levels(level: Array, fixed: Array) -> WaterLevels:
            return WaterLevels(level, fixed.astype(np.int64))

        def write(speedup: Array, level: Array, fixed: Array) -> Program:
            return self.formulate(replace(problem, speedup=speedup), levels(level, fixed))

        def rising(fixed: Array) -> Array:
            return self._rising(problem, levels(fixed * 0.0, fixed))

        def raised(level: Array, rising: Array, reached: Array, stuck: Array) -> Array:
            return self._raised(levels(level, stuck), rising, reached, stuck)

        return ManyLevels(problem, write, rising, raised)

    def _by_prices(self, problem: Market, exact_fallback: bool) -> Allocation:
        """Fill by prices, in floats; the evidence is the `WaterLevels`, with what is proved of each round."""
        begun = perf_counter()
        market = problem.as_(float)
        filled = so_far(partial(fill, market.speedup, market.capacity, self._fair(market), market.demand))
        if filled.status is Status.LIMIT:
            word, known = filled.raw_status.replace("proved", "the least level is proved"), filled.values["share"]
            left(found=replace(filled, raw_status=word, values={"share": known}, evidence=None))
        level, slack = filled.values["level"], filled.values["slack"]
        if exact_fallback and not (most := slack.max()) <= WIDE:
            raise NotSolved(f"numerically out of range for floats: a level may be too low by a part of {most:.1g}")
        proven = _proven(filled.evidence, market, self._fair(market))
        return Allocation(
            self.name,
            problem,
            shares=filled.values["share"],
            objective=level.min(),
            solution=_of_the_least(filled, proven[0]),
            evidence=WaterLevels(level, filled.values["fixed_in"], proven=proven, slack=slack),
            seconds=Seconds(solve=perf_counter() - begun),
        )

    def incentive_ratio(self, part: Number) -> Number:
        """Return (1 - p) / p + p for the part p: `fairopt.proofs.findings.liars.bounds`, max_min."""
        return (1 - part) / part + part

    def weight_ratio(self, part: Number, times: Number) -> Number:
        """Return the lesser of the claim and 1 / p: Coq's `gavel_weight_claim`."""
        return min(times, 1 / part)

    def optimal_face(self, decision: Allocation) -> Program:
        """Return the allocations with the same utilities: the levels are unique."""
        return same_utilities(decision, f"optima of {self.name}")

    def choices(self, decision: Allocation) -> Program:
        """Return the allocations with the same levels: no user can exceed its level while the others reach theirs."""
        levels: WaterLevels = decision.evidence
        market = decision.market.as_(decision.arithmetic)
        p = Formulation(f"optima of {self.name}")
        share = shares_of(p, market)
        own = (market.speedup * share).sum(axis=1)
        p.constrain("levels", own >= levels.level * self._fair(market), labels=(market.users,))
        return p.program()

    def certify(self, decision: Allocation) -> Certificate:
        """Return the certificate: the level of each round, with duals that prove its users to be bottlenecks.

        A decision by prices on an exact market is solved again in Fractions. If the ratios agree up to rounding, the
        certificate is that of the exact allocation. Where there are entitlements it holds the floors of groups. Errors:
        `NotCapable` where the market is in floats or large, or the decision is a backend's in floats.
        """
        if decision.method is not None:
            decision = self._in_fractions(decision)
        self._require_exact(decision)
        levels: WaterLevels = decision.evidence
        rounds, rates, had = [], self._rates(decision.market.as_(Fraction), levels), levels.level * 0
        for number, duals in enumerate(levels.pushes, start=1):
            fixed = np.flatnonzero(levels.fixed_in == number)
            users, level = [decision.market.users[i] for i in fixed], levels.level[fixed[0]]
            if rates is not None:
                rate = rates[number - 1]
                level = (level - had[fixed[0]]) / rate[fixed[0]]
                had = had + rate * level
            rounds.append({"level": level, "fixed": users, "duals": duals})
        told = None if self.normaliser is Normaliser.OWN_PARTITION else self.normaliser.value
        owed = floors_told(decision.market) if is_entitled(decision.market) else None
        return Certificate(WATER_FILLING, decision.market, decision.shares, rounds, told, owed, rates)

    def _rates(self, market: Market, levels: WaterLevels) -> Array | None:
        """Return how fast each user rises in each round (rounds, n); None where all that are open rise alike."""
        return None

    def told(self, market: Market) -> str:
        """Return the name for certificates, with the normaliser where it is not the ordinary one."""
        other = "" if self.normaliser is Normaliser.OWN_PARTITION else f", {self.normaliser.value}"
        return super().told(market) + other

    def _in_fractions(self, decision: Allocation) -> Allocation:
        """Return the exact decision that corresponds to one in floats."""
        market = decision.market
        n, k = market.shape
        if not market.exact or n * k > CERTIFIABLE:
            why = f"its {n} x {k} market is too large to be solved in fractions" if market.exact else "so is its market"
            raise NotCapable(f"this decision of {self.name} is in floats, and floats prove nothing: {why}")
        exact = decide(self, market, exact=True)
        levels = exact.evidence.level.astype(float)
        if (np.abs(decision.evidence.level - levels) > FLOAT_SLACK * levels).any():
            raise NotCapable(f"this decision of {self.name} in floats is not the exact one")
        return replace(exact, seconds=decision.seconds)


def _nearly_alike(speedup: Array) -> bool:
    """Whether two types are nearly, but not quite, in the same proportion for two users, or the same for one.

    The last digits of the speedups then decide who uses which, and later levels follow.
    """
    rows = np.vstack([np.ldexp(speedup, -np.frexp(speedup.max(axis=1))[1][:, None]), np.ones(speedup.shape[1])])
    one = rows[:, None, :, None] * rows[None, :, None, :]
    other = one.transpose(0, 1, 3, 2)
    return bool(((np.abs(one - other) <= CLEARLY * one) & (one != other)).any())


def _of_the_least(filled: Solution, first: Solution) -> Solution | None:
    """Return the proven bounds on the least level, or None where they assume others' levels."""
    level, rounds = filled.values["level"], [each.values for each in filled.evidence]
    least = int(level.argmin())
    if any(each["capped"][least] for each in rounds):  # its demand alone limits its level
        return replace(first, objective=level[least], lower=filled.lower, upper=level[least] * (1 + MARGIN))
    if filled.values["fixed_in"][least] == 1 and not rounds[0]["capped"].any():
        return replace(first, lower=filled.lower)
    return None


def _proven(rounds: Sequence[Solution], market: Market, fair: Array) -> tuple[Solution, ...]:
    """Return the proven bounds of each round, with duals for the rows of the policy's program."""
    found = []
    for each in rounds:
        prices, demand_duals, targets = duals_of(each, "capacity", "demand", "target")
        duals = {"capacity": prices, "least_ratio": targets * fair}
        if market.demand is not None:
            duals["demand"] = demand_duals
        effort = {name: float(users.sum()) for name, users in each.values.items()}
        found.append(replace(each, bound=None, values={}, duals=duals, effort=effort, seconds=0.0, warm_start=None))
    return tuple(found)
