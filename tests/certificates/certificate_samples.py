"""Valid certificates of every kind, made from markets by the installed policies and properties, and from programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.certificates import (
    BOUND,
    DOMINANCE,
    INFEASIBILITY,
    MARKET_BOUND,
    MISREPORT,
    UNREACHABLE,
    Certificate,
    bare_duals,
    bound_of_optimum,
    other_variables,
    row_duals,
)
from fairopt.certificates.kinds import KINDS
from fairopt.discovery import policies, properties
from fairopt.errors import FairoptError, NotCapable
from fairopt.evidence import extreme, throughput_of
from fairopt.frontier import RELAXED, frontier
from fairopt.policy import Allocation, Formulated, Policy, decide
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import INFINITY, Array, Formulation, Program, Sense, between
from fairopt.properties import AllocationProperty
from fairopt.properties.misreports.exact_reports import exact_or_none
from fairopt.properties.shares.pareto_efficiency import ParetoEfficiency, dominates


@dataclass(frozen=True)
class Sample:
    """A certificate, and what it is about: its kind, with the policy or property where there is one."""

    about: str
    certificate: Certificate


def of_market(market: Market, random: Random) -> Iterator[Sample]:
    """Yield certificates of all that the installed policies decide on an exact market, and of what follows from it."""
    for policy in policies(Market):
        decision = exact_or_none(policy, market)
        if decision is None:
            yield from _near(policy, market)
            continue
        try:
            yield Sample(f"decision of {policy.name}", policy.certify(decision))
        except NotCapable:
            continue  # a rule without evidence
        yield from _verdicts(decision, random)
        if _ranges(policy, decision):
            sense = random.choice([Sense.MAXIMIZE, Sense.MINIMIZE])
            weights = fractions([[random.randint(-3, 3) for _ in market.types] for _ in market.users])
            yield Sample(f"range of {policy.name}, {sense.value}", extreme(policy, decision, weights, sense))
            yield from _dominance(policy, decision)
        yield from _lies(policy, decision, random)
        yield from _bounds(policy, decision)
    yield from _out_of_reach(market, random)
    goal, name = random.choice(["total_efficiency", "least_gain"]), random.choice(RELAXED).name
    for item in frontier(market, goal, name, policies=["max-min"]).certificates():
        if item.certificate is not None:
            yield Sample(f"{goal} against {name}", item.certificate)


def _near(policy: Policy, market: Market) -> Iterator[Sample]:
    """Yield what is proved of an irrational decision; nothing of one in floats."""
    try:
        decision = decide(policy, market, exact=True)
        if decision.arithmetic.exact:
            yield Sample(f"bounds of {policy.name}", policy.certify(decision))
    except FairoptError:
        return  # it decides in floats only, or not on this market


def _ranges(policy: Policy, decision: Allocation) -> bool:
    """Whether the verifier ranges over all optima of a decision: of a program, if it makes that itself."""
    known = not isinstance(policy, Formulated) or policy.verifier_knows(decision.market)
    return known and policy.choices(decision) is not None


def _verdicts(decision: Allocation, random: Random) -> Iterator[Sample]:
    market = decision.market
    mixed = decision.shares[random.sample(range(len(market.users)), len(market.users))]
    for asked in random.sample([each for each in properties(Market) if each.asked_of(market)], 3):
        if not isinstance(asked, AllocationProperty):
            continue
        for shares in (decision.shares, mixed * random.choice([1, Fraction(1, 2), 2])):
            verdict = asked.check(market, shares)
            yield Sample(f"{asked.name} {verdict.answer.value}", asked.certify(market, shares, verdict))


def of_entitlements(market: Market, random: Random) -> Iterator[Sample]:
    """Yield what holds and fails of what users of a market with entitlements hold, and of a half of what there is."""
    assert market.entitlements is not None
    for shares in (market.entitlements.held[:, : len(market.types)], market.equal_split() * Fraction(1, 2)):
        for asked in properties(Market):
            if isinstance(asked, AllocationProperty) and asked.asked_of(market) and random.random() < 0.5:
                verdict = asked.check(market, shares)
                yield Sample(f"{asked.name} {verdict.answer.value}", asked.certify(market, shares, verdict))


def within_entitlements(market: Market, random: Random) -> Iterator[Sample]:
    """Yield what the installed policies decide on a market with entitlements, and lies that pay."""
    for policy in policies(Market):
        decision = exact_or_none(policy, market)
        if decision is None:
            continue
        try:
            yield Sample(f"decision of {policy.name}", policy.certify(decision))
        except NotCapable:
            continue  # a rule without evidence
        yield from _lies(policy, decision, random)


def _dominance(policy: Policy, decision: Allocation) -> Iterator[Sample]:
    market = decision.market
    verdict = ParetoEfficiency().check(market, decision.shares)
    witness = verdict.witness
    if not dominates(verdict) or market.demand is not None:
        return
    most = [extreme(policy, decision, throughput_of(market, i), Sense.MAXIMIZE) for i in range(len(market.users))]
    gains = [has - best.value for has, best in zip(market.utility(witness.allocation), most, strict=True)]
    if min(gains) >= 0 < max(gains):
        certificate = Certificate(DOMINANCE, market, decision.shares, witness.allocation, most)
        yield Sample(f"dominance over every optimum of {policy.name}", certificate)


def _lies(policy: Policy, truth: Allocation, random: Random) -> Iterator[Sample]:
    market = truth.market
    for _ in range(4):
        user = random.randrange(len(market.users))
        report = market.speedup[user] * fractions([random.choice([1, 1, 2, Fraction(1, 2)]) for _ in market.types])
        misreported = exact_or_none(policy, market.misreport(user, report))
        if misreported is None or (report == market.speedup[user]).all():
            continue
        name = market.users[user]
        gain = market.utility(misreported.shares)[user] - market.utility(truth.shares)[user]
        if gain > Fraction(1, 10**6):  # parts that are roots are rounded
            proofs = policy.certify(truth), policy.certify(misreported)
            yield Sample(
                f"lie to {policy.name}",
                Certificate(MISREPORT, market, policy.told(market), name, report, gain, *proofs),
            )
        if _ranges(policy, truth):
            best = extreme(policy, truth, throughput_of(market, user), Sense.MAXIMIZE)
            worst = extreme(policy, misreported, throughput_of(market, user), Sense.MINIMIZE)
            if worst.value > best.value:
                lie = Certificate(MISREPORT, market, policy.name, name, report, worst.value - best.value, best, worst)
                yield Sample(f"lie to every optimum of {policy.name}", lie)
                return


def _bounds(policy: Policy, decision: Allocation) -> Iterator[Sample]:
    """Yield the optimum as a bound, and, where it is feasible, half of it: a point with a gap."""
    program, solution = decision.program, decision.solution
    if program is None or solution is None or solution.dual is None:
        return
    if not isinstance(policy, Formulated) or not policy.verifier_knows_program:
        return
    best = Fraction(program.value(solution.point))
    for part in (1, Fraction(1, 2)):
        x = solution.point * part
        if not program.violations(x):
            shares, value = program.variable("share", x), Fraction(program.value(x))
            duals, others = row_duals(program, solution.dual), other_variables(program, x)
            certificate = Certificate(
                MARKET_BOUND, decision.market, policy.name, shares, value, best, best - value, duals, others
            )
            yield Sample(f"bound for {policy.name}{'' if part == 1 else ' with a gap'}", certificate)


def _out_of_reach(market: Market, random: Random) -> Iterator[Sample]:
    """Yield a proof that nobody can have several times its own partition where all others have theirs."""
    lucky = random.randrange(len(market.users))
    least = [value * (len(market.users) + 2 if i == lucky else 1) for i, value in enumerate(market.fair_utility())]
    program = sharing(market, dict(enumerate(least)))
    solution = Exact().solve(program)
    if solution.status is Status.INFEASIBLE and solution.farkas is not None:
        wanted = list(zip(market.users, least, strict=True))
        yield Sample("out of reach", Certificate(UNREACHABLE, market, wanted, row_duals(program, -solution.farkas)))


def sharing(market: Market, least: dict[int, Any]) -> Program:
    """Return the program of all allocations that give these users (by row) at least so much; nothing is optimised."""
    p = Formulation("sharing")
    own = (market.speedup * shares_of(p, market)).sum(axis=1)
    wanted = np.array([least.get(i, -INFINITY) for i in range(len(market.users))], dtype=object)
    p.constrain("at_least", (own >= wanted).where(wanted > -INFINITY))
    return p.program()


def of_programs(random: Random, count: int) -> Iterator[Sample]:
    """Yield ``count`` certificates of small programs: optima, points with a gap, integers, contradictions."""
    made = 0
    while made < count:
        size, height = random.randint(1, 4), random.randint(1, 4)
        whole = random.choice([0, 0, 1]) == 1
        matrix = np.array([[random.randint(-3, 4) for _ in range(size)] for _ in range(height)], dtype=object)
        p = Formulation("drawn")
        x = p.variable("x", (size,), lower=random.choice([0, 0, -1]), upper=random.randint(1, 5), integer=whole)
        goal = (np.array([random.randint(-2, 5) for _ in range(size)], dtype=object) * x).sum() + random.randint(-2, 2)
        (p.maximize if random.random() < 0.6 else p.minimize)(goal)
        sides = random.choice([(-INFINITY, 7), (-4, 7), (1, INFINITY), (2, 2), (30, INFINITY)])
        p.constrain("row", between([sides[0]] * height, matrix @ x, [sides[1]] * height))
        for sample in of_program(p.program().as_(Fraction)):
            made += 1
            yield sample


def of_program(program: Program) -> Iterator[Sample]:
    """Yield what can be said of a program: that it has no point, or how far the best one is from a bound."""
    relaxed = Exact().solve(replace(program, integer=np.zeros_like(program.integer)))
    if relaxed.status is Status.INFEASIBLE and relaxed.farkas is not None:
        yield Sample("infeasibility of a program", Certificate(INFEASIBILITY, program, bare_duals(-relaxed.farkas)))
    if relaxed.status is not Status.OPTIMAL or relaxed.dual is None:
        return
    if not program.integer.any():
        yield Sample("bound of a program", bound_of_optimum(program, relaxed))
        return
    found = Highs().solve(program.as_(float))
    if found.status is not Status.OPTIMAL:
        return
    point = fractions([round(value) for value in found.point])
    sign = 1 if program.sense is Sense.MAXIMIZE else -1
    value, limit = Fraction(program.value(point)), Fraction(program.value(relaxed.point))
    duals = bare_duals(relaxed.dual * sign)
    gap = sign * (limit - value)
    about = f"bound of a program with integers{', with a gap' if gap else ''}"
    yield Sample(about, Certificate(BOUND, program, point, value, limit, gap, duals))


def fractions(values: Any) -> Array:
    """Return nested lists of integers and Fractions as an array of Fractions."""
    out: Array = np.vectorize(Fraction, otypes=[object])(np.array(values, dtype=object))
    return out


def every_kind() -> frozenset[str]:
    """Return the kinds that certificates of fairopt have, by the word in their JSON."""
    return frozenset(each.name for each in KINDS)
