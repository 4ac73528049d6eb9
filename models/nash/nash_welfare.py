"""Nash welfare: the largest product of utilities, a competitive equilibrium from equal incomes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from time import perf_counter
from typing import Any

import numpy as np

from fairopt.backends import Capability, Method, Session
from fairopt.backends.solution import Solution, Status, without_noise
from fairopt.backends.trust import trusted
from fairopt.certificates import EQUILIBRIUM, NASH_BOUNDS, NASH_WITHIN, Certificate, floors_told, row_duals
from fairopt.deadline import left, remaining
from fairopt.errors import NotSolved, OutOfTime
from fairopt.methods.eisenberg_gale.bounds import GAP_PER_WEIGHT, Equilibrium, UtilityBounds, nash_bound
from fairopt.methods.eisenberg_gale.chords import by_chords
from fairopt.methods.eisenberg_gale.exact import exact_equilibrium, keeps_demands
from fairopt.methods.eisenberg_gale.smoothed import smoothed_shares
from fairopt.methods.eisenberg_gale.solve import ACCURATE, TARGET, many_maximal_nash_welfare, maximal_nash_welfare
from fairopt.methods.eisenberg_gale.within import near_equilibrium, near_within
from fairopt.models.nash.within_entitlements import (
    as_proved,
    bounded_by_gradient,
    require_something,
    rows_of,
)
from fairopt.numbers import arithmetic
from fairopt.policy import Allocation, Claim, Policy, Seconds, Trait
from fairopt.policy.many_programs import reported
from fairopt.policy.policy import ManyBundles
from fairopt.problem import Market
from fairopt.problem.floors import FLOORS_AND_CAPS, is_entitled
from fairopt.problem.numbers import within
from fairopt.problem.share_variables import shares_of
from fairopt.program import INFINITY, Array, Formulation, Number, Program, cast, log_sum

#: That method first tries to find the exact equilibrium when its residual is this number over (users times types),
#: which mostly succeeds. The second try is at a residual that is smaller by this factor again.
ROUGH = 1e-2
#: Utilities that are known no better than this, as a part of themselves, are not passed on.
USEFUL, USEFUL_DIGITS = Fraction(1, 10**6), 7
#: So many rounds of chords are too coarse to say what is tight.
COARSE = 2
#: The most digits that can be asked for: seconds, not hours.
MOST_DIGITS = 1_000
#: Up to so many speedups, floats that leave the utility of a user of little weight open are replaced by rationals.
MOST_EXACT = 1_000
#: The least divisor.
TINY = 1e-100


@dataclass(frozen=True)
class NashWelfare(Policy):
    """Maximise the sum of w_i log u_i, that is, the product of the utilities to the power of the weights.

    Units do not matter. Utilities are unique; shares need not be. On a market in Fractions without demands the answer
    is exact: a float answer (of the policy's own interior-point method, or of a conic backend) says who buys what, and
    the equilibrium is computed from that and checked in rationals.

    Where a demand binds, the optimum is irrational in general. On a market in Fractions shares are then rational ones
    near it: `Allocation.error` says how near, and the evidence, an `Equilibrium`, proves between which numbers the
    utility of each user lies at the optimum. Where all is rational after all, the answer is exact. ``digits`` says how
    many digits of utilities are wanted; with 0 shares are floats where they are not exact, with a KKT residual of at
    most `ACCURATE` for the own method (else `NotSolved`), or within its own tolerance for a backend.

    With entitlements, users and groups get at least their floors and at most their caps (`fairopt.problem.floors`). A
    conic backend solves in floats. Shares are then made exact as above, with `UtilityBounds` as evidence. Where that
    fails, and on large markets, a linear program proves the answer: the objective is concave, so that no allocation is
    better than sum_i w_i u_i / u_i(shares) can be made, less the sum of weights. That is ``bound``; the conditions of
    Karush, Kuhn and Tucker hold where nothing is left. `NotSolved` names who can hold nothing, and so has no logarithm.

    A market in floats gets floats: its exact answer, rounded, where there is one or floats fail. The solution of a
    decision in floats has ``lower`` and ``upper``, proven bounds on the maximum that count rounding.

    Source: Eisenberg and Gale 1959 (Nash 1950; weights: Kalai 1977).

    >>> from fairopt import allocate
    >>> print(*allocate(NashWelfare(), Market.of([[1, 2], [1, 5]], capacity=[1, 1])).utilities)
    3/2 15/4
    """

    digits: int = within(30, least=0, most=MOST_DIGITS)

    name = "nash-welfare"
    source = "Eisenberg and Gale, Annals of Mathematical Statistics 1959"
    #: An interior-point method for the Eisenberg-Gale program, followed by the exact equilibrium near its answer.
    methods = (Method("interior-point"),)
    needs = frozenset({Capability.LOGARITHMS})
    supports = FLOORS_AND_CAPS
    traits = frozenset({Trait.UNIT_FREE, Trait.COPIES, Trait.PROGRAM, Trait.EXACT, Trait.DETERMINED})
    claims = (
        Claim("envy_freeness", "Varian 1974: equal budgets buy each other's bundles", assumes="no demands"),
        Claim("sharing_incentive", "everybody can buy its own partition", assumes="no demands"),
        Claim("pareto_efficiency", "the objective increases in every utility"),
    )

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return the program of Eisenberg and Gale, in the number type of ``problem``."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        own = (problem.speedup * share).sum(axis=1)
        p.maximize(log_sum(problem.weight, own), equation="sum_i w_i log u_i", source="Eisenberg and Gale 1959")
        return p.program()

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        """Solve in floats, then make it exact; the evidence is the `Equilibrium`."""
        left()
        if is_entitled(problem):
            return self._bounded(problem, solve)
        draft: Allocation | None = None
        solving = certifying = 0.0
        try:
            for draft in self._own(problem) if solve.method is not None else [self._by_backend(problem, solve)]:
                solving += draft.seconds.solve
                begun = perf_counter()
                found = _exact(problem, draft.shares)
                certifying += perf_counter() - begun
                if found is not None:
                    break
            else:
                begun = perf_counter()
                assert draft is not None
                found = _by_chords(problem, draft)
                if found is None:
                    draft = self._nearly(problem, draft)
                    assert draft.solution is not None
                    draft.solution.require_optimal()
                    found = draft.evidence, draft.shares
                certifying += perf_counter() - begun
            equilibrium, shares = found
        except OutOfTime as over:
            over.solution = _until(problem.as_(float), draft)
            raise
        market = problem.as_(arithmetic(shares))
        utility = (market.speedup * shares).sum(axis=1).astype(float)
        begun = perf_counter()
        assert draft is not None
        assert draft.solution is not None
        solution = draft.solution
        if draft.error or not market.exact:
            solution = _proven(problem.as_(float), cast(shares, float), equilibrium, solution)
        certifying += perf_counter() - begun
        return replace(
            draft,
            shares=shares,
            solution=solution,
            objective=float(problem.weight.astype(float) @ np.log(utility)),
            evidence=equilibrium,
            seconds=Seconds(build=draft.seconds.build, solve=solving, certify=certifying),
        )

    def _nearly(self, problem: Market, draft: Allocation) -> Allocation:
        """Return rational shares near the optimum with a proof of how near; the draft where none are asked for."""
        assert draft.solution is not None
        if not self.digits or (not problem.exact and _sure(problem, draft)):
            return draft
        market = problem.as_(Fraction)
        digits, first = max(self.digits, USEFUL_DIGITS), (draft.shares, draft.evidence.prices)
        # a poor draft does not say what is tight; with speedups of 1e-300, prices are beyond floats
        fits = draft.solution.status is Status.OPTIMAL and all(np.isfinite(each).all() for each in first)
        chords = ((shares, prices) for shares, prices, _ in islice(by_chords(market), COARSE, None))
        near: tuple[Array, Equilibrium] | None = None
        for shares, prices in chain([first] if fits else [], chords):
            found = near_equilibrium(rows_of(market), market, shares.astype(float), prices.astype(float), digits)
            if found is not None and (near is None or found[1].error < near[1].error):
                near = found
            if near is not None and near[1].error * 10**digits <= 1:
                break
        if near is None or near[1].error > USEFUL:
            return draft
        held, proof = near
        raw = f"{draft.solution.raw_status}; utilities are proven within {float(proof.error):.2g}"
        solution = replace(draft.solution, status=Status.OPTIMAL, raw_status=raw)
        assert proof.utilities is not None
        plain = replace(proof, utilities=None)
        if problem.exact:
            evidence = proof if proof.utilities.gap else plain
            return replace(draft, shares=held, evidence=evidence, error=proof.error, solution=solution)
        assert proof.demand_duals is not None
        prices, budgets, spending = (cast(part, float) for part in (plain.prices, plain.budgets, plain.spending))
        floats = Equilibrium(prices, budgets, spending, cast(proof.demand_duals, float))
        return replace(draft, shares=cast(held, float), evidence=floats, solution=solution)

    def _own(self, problem: Market) -> Iterator[Allocation]:
        """Yield better and better answers by interior points; the caller stops when one is accurate enough."""
        n, k = problem.shape
        begun = perf_counter()
        for shares in smoothed_shares(problem) if problem.demand is None else ():
            raw = "prices of smoothed best buys"
            solution = Solution(status=Status.INACCURATE, raw_status=raw, backend="auto", x=shares.ravel())
            seconds = Seconds(solve=perf_counter() - begun)
            yield Allocation(self.name, problem, shares=shares, objective=0.0, solution=solution, seconds=seconds)
            begun = perf_counter()
        rough = ROUGH / (n * k) if n > 1 else INFINITY  # a single user buys everything, so any draft will do
        targets = (rough, rough * ROUGH, TARGET) if problem.demand is None else (TARGET,)
        begun = perf_counter()
        for optimum in maximal_nash_welfare(problem, targets):
            shares, demand_duals = optimum.values["share"], np.asarray(optimum.duals["demand"])
            yield Allocation(
                self.name,
                problem,
                shares=shares,
                objective=0.0,
                solution=optimum,
                evidence=Equilibrium.of(problem, shares, None if problem.demand is None else demand_duals),
                seconds=Seconds(solve=perf_counter() - begun),
            )
            begun = perf_counter()

    def _by_backend(self, problem: Market, solve: Session, trust: bool = True) -> Allocation:
        begun = perf_counter()
        program = self.formulate(problem.as_(solve.number), None)
        built = perf_counter()
        solution = solve(program)
        # a point short of the solver's tolerance may still lead to the exact equilibrium
        if trust and solution.status is not Status.INACCURATE:
            trusted(program, solution)
        shares = without_noise(program.variable("share", solution.point), problem.capacity)
        evidence = Equilibrium.of(problem, shares, _demand_duals(problem, program, solution))
        return Allocation(
            self.name,
            problem,
            shares=shares,
            objective=0.0,
            program=program,
            solution=solution,
            evidence=evidence,
            seconds=Seconds(build=built - begun, solve=perf_counter() - built),
        )

    def _bounded(self, problem: Market, solve: Session) -> Allocation:
        """Solve with floors and caps, and prove how good the answer is; there are no prices as evidence."""
        try:
            draft = self._by_backend(problem, solve, trust=False)
            begun, found = perf_counter(), self._within(problem, draft.shares)
            if found is None:
                assert draft.program is not None
                assert draft.solution is not None
                trusted(draft.program, draft.solution)
        except NotSolved as error:
            if remaining() > 0:
                require_something(problem, error)
            raise
        decided = bounded_by_gradient(problem, draft) if found is None else as_proved(problem, draft, *found)
        return replace(decided, seconds=replace(draft.seconds, certify=perf_counter() - begun))

    def _within(self, problem: Market, draft: Array) -> tuple[Array, UtilityBounds] | None:
        """Return exact shares within floors and caps near a draft in floats; None where none are asked for or found."""
        if not (self.digits and problem.speedup.size <= MOST_EXACT):
            return None
        exact = problem.as_(Fraction)
        found = near_within(rows_of(problem), exact.speedup, exact.weight, draft.astype(float), self.digits)
        return found if found is not None and found[1].error <= USEFUL else None

    def incentive_ratio(self, part: Number) -> Number:
        """Return 2 less the part: `fairopt.proofs.findings.liars.bounds`; below 2 by Chen et al. 2012."""
        return 2 - part

    def weight_ratio(self, part: Number, times: Number) -> Number:
        """Return what the equal split would give: Coq's `nash_welfare_weight_claim`."""
        return times / (1 + (times - 1) * part)

    def many_bundles(self, problem: Market, before: Any) -> ManyBundles | None:
        """Return who decides on many misreports at once; nobody where entitlements are stated."""
        return None if is_entitled(problem) else partial(bundles_of_equilibria, problem)

    def certify(self, decision: Allocation) -> Certificate:
        """Return the prices at which exact shares are best bundles, or what they prove of an irrational optimum.

        With entitlements it is what a linear program proves of the utilities, exact ones too.
        """
        self._require_exact(decision, "ask for digits, on a market in rationals")
        found: Any = decision.evidence
        if isinstance(decision.evidence, UtilityBounds):
            duals, owed = row_duals(rows_of(decision.market), found.duals), floors_told(decision.market)
            ends = (found.gap, found.lower, found.upper)
            return Certificate(NASH_WITHIN, decision.market, decision.shares, owed, found.costs, duals, *ends)
        if (proved := found.utilities) is not None:
            proof = (found.prices, found.demand_duals, proved.gap, proved.lower, proved.upper)
            return Certificate(NASH_BOUNDS, decision.market, decision.shares, *proof)
        return Certificate(EQUILIBRIUM, decision.market, decision.shares, found.prices, found.demand_duals)


def _until(market: Market, draft: Allocation | None) -> Solution:
    """Return what the ``draft`` proves that was there when time was over; where none was, what the equal split does."""
    held = market.equal_split() if draft is None else without_noise(draft.shares, market.capacity)
    held = held * np.minimum(1.0, market.limit / np.maximum(held.sum(axis=1), TINY))[:, None]
    evidence = Equilibrium.of(market, held) if draft is None or draft.evidence is None else draft.evidence
    word = f"time was over: {'the equal split' if draft is None else 'the best by then'}, and a bound by its prices"
    proven = _proven(market, held, evidence, Solution(Status.LIMIT, word, "auto", values={"share": held}))
    return replace(proven, objective=proven.lower, bound=proven.upper)


def _sure(market: Market, draft: Allocation) -> bool:
    """Whether a draft in floats is that good for each user, whatever its weight; one of a large market may not be."""
    assert draft.solution is not None
    if draft.solution.status is not Status.OPTIMAL:
        return False
    proven = _proven(market, draft.shares, draft.evidence, draft.solution)
    gap = proven.effort[GAP_PER_WEIGHT] * market.weight.sum()
    return bool(gap <= ACCURATE * market.weight.min()) or market.speedup.size > MOST_EXACT


def _by_chords(problem: Market, draft: Allocation) -> tuple[Equilibrium, Array] | None:
    """Return what `_exact` does, from linear programs in rationals where a ``draft`` in floats failed.

    None with demands, since the optimum is irrational then, on large markets, and where these do not lead to it.
    """
    assert draft.solution is not None
    fine = draft.solution.status is Status.OPTIMAL
    if fine or problem.demand is not None or problem.speedup.size > MOST_EXACT:
        return None
    drafts = (_exact(problem, shares) for shares, _, _ in by_chords(problem))
    return next((found for found in drafts if found is not None), None)


def _exact(problem: Market, shares: Array) -> tuple[Equilibrium, Array] | None:
    """Return the equilibrium and its shares in the number type of ``problem``; None if it breaks a demand."""
    if problem.demand is None:
        return exact_equilibrium(problem, shares, rounded=not problem.exact)
    found = exact_equilibrium(problem, shares)
    if found is None or not keeps_demands(problem, found[1]):
        return None
    return found if problem.exact else _in_floats(*found)


def _proven(market: Market, shares: Array, equilibrium: Equilibrium, solution: Solution) -> Solution:
    """Return the solution with bounds on the optimum, from prices and demand duals of an equilibrium in floats."""
    prices, demand_duals = cast(equilibrium.prices, float), equilibrium.demand_duals
    demand_duals = None if demand_duals is None else cast(demand_duals, float)
    bound = nash_bound(market.speedup, market.capacity, market.weight, market.limit, shares, prices, demand_duals)
    duals = {"capacity": prices} if demand_duals is None else {"capacity": prices, "demand": demand_duals}
    return replace(solution, lower=bound.lower, upper=bound.upper, duals=duals, effort=bound.effort)


def _demand_duals(problem: Market, program: Program, solution: Solution) -> Array | None:
    """Return the duals of the demands (n,), 0 where there is none; None where no demand or dual is known."""
    if problem.demand is None or solution.dual is None:
        return None
    demand_duals = np.zeros(len(problem.users))
    demand_duals[problem.limit < INFINITY] = np.maximum(solution.dual[program.row_block("demand").span], 0.0)
    return demand_duals


def _in_floats(equilibrium: Equilibrium, shares: Array) -> tuple[Equilibrium, Array]:
    prices, budgets, spending = (
        cast(part, float) for part in (equilibrium.prices, equilibrium.budgets, equilibrium.spending)
    )
    return Equilibrium(prices, budgets, spending), cast(shares, float)


def reported_equilibria(market: Market, users: Array, reports: Array) -> Array:
    """Return the shares (cases, n, k) of maximal Nash welfare where each of ``users`` reports otherwise, NaN if none.

    Errors of shares are about 1e-7, those of utilities less, where a demand hardly binds; else about 1e-12.
    """
    return many_maximal_nash_welfare(reported(market, users, reports), market.capacity, market.weight, market.limit)


def bundles_of_equilibria(market: Market, users: Array, reports: Array) -> Array:
    """Return the bundles (cases, k) of maximal Nash welfare, by interior points; see `ManyBundles`."""
    shares = reported_equilibria(market, users, reports)
    bundles: Array = shares[np.arange(len(users)), users]
    return bundles
