"""Evidence for a row of the comparison: certificates of the decision and of each verdict, or why there is none.

``proofs/verify.py`` alone decides what these certificates prove.

>>> from fairopt import allocate
>>> from fairopt.datasets import oef_example
>>> from fairopt.models import CooperativeOEF
>>> CooperativeOEF().certify(allocate("oef-cooperative", oef_example(), exact=True)).kind.name
'optimality'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.exact.bound import exact_bound
from fairopt.backends.solution import Solution, Status
from fairopt.certificates import (
    BOUND,
    GANGS,
    INFEASIBILITY,
    MARKET_BOUND,
    MISREPORT,
    Certificate,
    bare_duals,
    extreme_over,
    other_variables,
    row_duals,
)
from fairopt.compare import Row
from fairopt.discovery import AnyPolicy, AnyProperty, policy_of, properties_of
from fairopt.errors import FairoptError, NotCapable
from fairopt.methods.gang_assignment import GangAssignment, prove_gangs
from fairopt.numbers import arithmetic
from fairopt.policy import Allocation, Formulated
from fairopt.problem import Market
from fairopt.problem.floors import is_entitled
from fairopt.program import Array, Program, Sense, fractions
from fairopt.properties import AllocationProperty, Answer, MechanismProperty, SlackCase, Verdict
from fairopt.properties.misreports.exact_reports import exact_or_none
from fairopt.properties.within_bounds import Boundary
from fairopt.report import ResultForm, Statement

#: The ``certificate`` of a decision ("decision") or of a property (its ``name``), or the ``reason`` why there is none.
EVIDENCE = ResultForm("Evidence.", in_full=True, sentence=lambda it: f"{it.name}: {it.reason or 'a certificate'}")


def evidence(row: Row[Allocation], properties: AnyProperty | Sequence[AnyProperty]) -> Iterator[Statement]:
    """Yield the evidence for a row of the comparison: of the decision first, then of each verdict.

    >>> from fairopt import compare
    >>> from fairopt.datasets import oef_example
    >>> (row,) = compare(oef_example(), "equal-split", "envy_freeness")
    >>> [(each.name, each.reason) for each in evidence(row, "envy_freeness")]
    [('decision', ''), ('envy_freeness', '')]
    """
    properties = properties_of(properties)
    decision = row.outcome
    if decision is None:
        yield EVIDENCE.of(name="decision", certificate=None, reason=f"nothing was decided: {row.error}")
        return
    yield _item("decision", partial(row.policy.certify, decision))
    of_allocations = [each for each in properties if isinstance(each, AllocationProperty)]
    after = decision.leaves(decision.market)
    yield from evidence_of_verdicts(after, decision.shares, row.verdicts, of_allocations)
    for searched in properties:
        if isinstance(searched, MechanismProperty) and searched.name in row.verdicts:
            verdict = row.verdicts[searched.name]
            # what holds for any report holds for each kind of them
            kinds = {} if verdict.answer is Answer.HOLDS else verdict.by_misreport
            for kind, each in (kinds or {"any": verdict}).items():
                yield _item(f"{searched.name}-{kind}", partial(certify_search, row.policy, decision.market, each))


def evidence_of_verdicts(
    market: Market, shares: Array, verdicts: Mapping[str, Verdict], properties: Sequence[AllocationProperty]
) -> Iterator[Statement]:
    """Yield the evidence for verdicts on an allocation, however it was made; of one that DEPENDS, for its two ends.

    >>> from fairopt import verify
    >>> from fairopt.properties import EnvyFreeness
    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> shares = market.shares([[1, 0], [0, 1]])
    >>> found = evidence_of_verdicts(market, shares, verify(market, shares), [EnvyFreeness()])
    >>> [each.certificate.kind.name for each in found]
    ['envy']
    """
    for each in {each.name: each for each in properties}.values():
        if each.name in verdicts:
            verdict = verdicts[each.name]
            yield _item(each.name, partial(each.certify, market, shares, verdict))
            for end, there in verdict.boundary.ends.items() if isinstance(verdict.boundary, Boundary) else ():
                yield _item(f"{each.name}-{end}", partial(_certify_end, each, there, shares, end))


def _certify_end(asked: AllocationProperty, market: Market, shares: Array, end: str) -> Certificate:
    """Return the evidence that a property holds, or fails, on the market at an end of a range."""
    verdict = asked.check(market, shares)
    if verdict.answer.value != end.upper():
        raise NotCapable(f"{asked.name} depends on the speedups within a tolerance; floats prove nothing")
    return asked.certify(market, shares, verdict)


def certify_search(policy: AnyPolicy, market: Market, verdict: Verdict) -> Certificate:
    """Return the evidence for a search's verdict; `NotCapable` where it found nothing, or nothing exact.

    >>> from fairopt.properties import Effort, StrategyProofness
    >>> from fairopt.models import MaxEfficiency
    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> verdict = StrategyProofness().search(MaxEfficiency(), market, effort=Effort(evaluations=20))
    >>> proof = certify_search("max-efficiency", market, verdict)
    >>> proof.kind.name, proof.user
    ('misreport', 'u1')
    """
    if verdict.answer is Answer.DEPENDS:  # of one end, where a lie pays; the other is a theorem
        return certify_misreport(policy, verdict.boundary.ends["fails"], verdict.evidence)
    if verdict.answer is Answer.HOLDS:
        raise NotCapable("it is a theorem on the policy, which has no certificate")
    if verdict.answer is not Answer.FAILS:
        raise NotCapable("a search that finds nothing proves nothing")
    return certify_misreport(policy, market, verdict.witness)


def certify_misreport(policy: AnyPolicy, market: Market, witness: SlackCase) -> Certificate:
    """Return the evidence that a misreport pays: two certified decisions, or ranges over all optima if it always pays.

    Errors: `NotCapable` where the decisions have no exact form or no certificate.

    >>> from fairopt.properties import Effort, StrategyProofness
    >>> from fairopt.models import MaxEfficiency
    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> lie = StrategyProofness().search(MaxEfficiency(), market, effort=Effort(evaluations=20)).witness
    >>> certify_misreport("max-efficiency", market, lie).gain == lie.gain
    True
    """
    policy = policy_of(policy, Market)
    market = replace(market, least=None, most=None)  # the gain is that at the speedups that are stated
    user = market.index(witness.user)
    if not arithmetic(witness.report).exact:
        raise NotCapable("the gain is that of decisions in floats, and floats prove nothing")
    truth = exact_or_none(policy, market)
    after = exact_or_none(policy, market.misreport(user, witness.report), truth)  # as the search decided it
    if truth is None or after is None:
        raise NotCapable("the gain is that of decisions in floats, and floats prove nothing")
    # the verifier ranges only over optima that it knows
    known = policy.verifier_knows(market) if isinstance(policy, Formulated) else not is_entitled(market)
    if witness.every_optimum and known and policy.choices(truth) is not None:
        of_user = throughput_of(market, user)
        best = extreme(policy, truth, of_user, Sense.MAXIMIZE)
        worst = extreme(policy, after, of_user, Sense.MINIMIZE)
        return Certificate(
            MISREPORT, market, policy.name, witness.user, witness.report, worst.value - best.value, best, worst
        )
    gain = market.utility(after.shares)[user] - market.utility(truth.shares)[user]
    proofs = policy.certify(truth), policy.certify(after)
    if not all(proof.kind.decides for proof in proofs):
        raise NotCapable(f"the certificate of a decision of {policy.name} does not say whose shares it decides")
    return Certificate(MISREPORT, market, policy.told(market), witness.user, witness.report, gain, *proofs)


def extreme(policy: AnyPolicy, decision: Allocation, weights: Array, sense: Sense) -> Certificate:
    """Return the extreme sum of ``weights`` (n, k) times shares over all optima of an exact decision, certified.

    Errors: `NotCapable` where the policy has no choice or no certificate; those of the exact backend.

    >>> from fairopt import allocate
    >>> market = Market.of([[1, 2], [1, 2]], [1, 1])
    >>> decision = allocate("max-efficiency", market, exact=True)
    >>> own = throughput_of(market, 0)
    >>> [extreme("max-efficiency", decision, own, sense).value for sense in (Sense.MINIMIZE, Sense.MAXIMIZE)]
    [Fraction(0, 1), Fraction(3, 1)]
    """
    policy = policy_of(policy, Market)
    choices = policy.choices(decision)
    if choices is None:
        raise NotCapable(f"{policy.name} leaves no choice to range over")
    return extreme_over(choices, weights, sense, policy.certify(decision), Exact().solve)


def certify_solution(program: Program, solution: Solution) -> Certificate:
    """Return the exact certificate of a backend's ``solution`` of a program, linear or with integers.

    An exact optimum gives a bound with gap 0, a point in floats that is exactly feasible a bound and the remaining gap,
    an infeasible program multipliers that contradict it. Errors: `NotCapable` where nothing is proved.

    >>> from fairopt.models import MaxEfficiency
    >>> program = MaxEfficiency().formulate(Market.of([[1, 2], [1, 5]], [1, 1]), None)
    >>> certify_solution(program, Exact().solve(program)).gap
    Fraction(0, 1)
    """
    if solution.status is Status.INFEASIBLE and solution.farkas is not None:
        return Certificate(INFEASIBILITY, program, bare_duals(-solution.farkas))
    return _bare_bound(program, solution)


def certify_bound(policy: Formulated, market: Market, solution: Solution) -> Certificate:
    """Return the exact certificate of a ``solution`` of the policy's program; `NotCapable` where nothing is proved.

    >>> from fairopt.models import MaxEfficiency
    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> solution = Exact().solve(MaxEfficiency().formulate(market, None))
    >>> certify_bound(MaxEfficiency(), market, solution).bound
    Fraction(6, 1)
    """
    program = policy.formulate(market.as_(Fraction), policy.start(market))
    if not policy.verifier_knows(market) or solution.x is None:
        return certify_solution(program, solution)
    point, value, bound, gap, dual = _worth(program, solution)
    share, others = program.variable("share", point), other_variables(program, point)
    return Certificate(MARKET_BOUND, market, policy.name, share, value, bound, gap, row_duals(program, dual), others)


def _bare_bound(program: Program, solution: Solution) -> Certificate:
    point, value, bound, gap, dual = _worth(program, solution)
    sign = 1 if program.sense is Sense.MAXIMIZE else -1  # certificates are about the objective maximised
    return Certificate(BOUND, program, point, value, bound, gap, bare_duals(sign * dual))


def _worth(program: Program, solution: Solution) -> tuple[Array, Fraction, Fraction, Fraction, Array]:
    """Return an exact feasible point, its objective, a bound on all, the gap between them, and the bound's duals."""
    program, point = program.as_(Fraction), fractions(solution.point)
    if violations := program.violations(point):
        name, amount = max(violations.items(), key=lambda item: item[1])
        raise NotCapable(f"the point breaks {name} by {float(amount):g}; floats prove nothing: solve exactly")
    if (proved := exact_bound(program, solution.dual)) is None:
        raise NotCapable("no multipliers were found that bound the objective")
    value, (bound, dual) = Fraction(program.value(point)), proved
    return point, value, bound, abs(bound - value), dual


def throughput_of(market: Market, user: int) -> Array:
    """Return the weights (n, k) on shares whose sum is a user's throughput.

    >>> throughput_of(Market.of([[1, 2], [1, 5]], [1, 1]), 1).tolist()
    [[Fraction(0, 1), Fraction(0, 1)], [Fraction(1, 1), Fraction(5, 1)]]
    """
    weights = np.full(market.shape, Fraction(0), dtype=object)
    weights[user] = market.speedup[user]
    return weights


def _item(name: str, certify: Callable[[], Certificate]) -> Statement:
    try:
        return EVIDENCE.of(name=name, certificate=certify(), reason="")
    except FairoptError as error:  # a line without a proof is said to have none, with the reason
        return EVIDENCE.of(name=name, certificate=None, reason=str(error))


def certify_gangs(problem: GangAssignment, found: Solution, *, time_limit: float | None = None) -> Certificate:
    """Return what is proved of an assignment of gangs that `solve_gangs` found; with a gap of 0 it is optimal.

    ``time_limit``: seconds for the search that closes the gap. Errors: `NotSolved` where nothing was found.

    >>> from fairopt.methods.gang_assignment import solve_gangs
    >>> ones = np.ones((2, 2), dtype=bool)
    >>> problem = GangAssignment(np.array([[1.0, 3], [2, 2]]), np.array([1, 2]), np.array([2, 2]), 3, ones)
    >>> proof = certify_gangs(problem, solve_gangs(problem))
    >>> int(proof.value), int(proof.gap)
    (3, 0)
    """
    proved = prove_gangs(problem, found, time_limit=time_limit)
    rows = zip(problem.cost.tolist(), problem.allowed.tolist(), strict=True)
    cost = [[Fraction(each) if there else None for each, there in zip(*row, strict=True)] for row in rows]
    return Certificate(
        GANGS,
        gangs=problem.gangs,
        capacity=problem.capacity,
        least=problem.least,
        cost=cost,
        types=found.values["type_of"],
        **proved.evidence,
    )
