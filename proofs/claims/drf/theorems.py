"""The properties that the DRF paper claims, decided for divisible tasks, and those of its two rivals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.models.drf.drf import program, rates
from fairopt.proofs.claims.drf import real
from fairopt.proofs.claims.drf.divisible import (
    Tasks,
    asset,
    at_random,
    bottleneck_fairness,
    drf,
    envy_freeness,
    in_order,
    lies,
    pareto_efficiency,
    population_monotonicity,
    resource_monotonicity,
    sharing_incentive,
    strategy_proofness,
)
from fairopt.proofs.ledger.checking import found, require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import both, listed

#: Random problems for each property; with and without demands of zero.
SAMPLE = 150
#: Those on which misreports are tried.
LIED = 20
EXAMPLE = Tasks.of([[1, 4], [3, 1]], [9, 18])
READ = "The paper could be read in public excerpts only, so that sections are as others cite them."
#: Whether a property is broken on a problem, in words.
Broken = Callable[[Tasks], str | None]


def example() -> Finding:
    """Sec. 4.1: 9 CPUs and 18 GB, tasks of <1, 4> and <3, 1>."""
    tasks = drf(EXAMPLE)
    rate = rates(EXAMPLE.demand, EXAMPLE.capacity, EXAMPLE.weight)
    solved = Exact().solve(program(EXAMPLE.demand, EXAMPLE.capacity, rate))
    require(solved.x is not None and solved.objective == Fraction(2, 3), "the linear program's optimum is 2/3")
    for each in at_random(SAMPLE, 2, zeros=False):
        other = Exact().solve(program(each.demand, each.capacity, rates(each.demand, each.capacity, each.weight)))
        require(other.x is not None and (other.x[:-1] == drf(each)).all(), f"the linear program's tasks on {each}")
    held = tasks[:, None] * EXAMPLE.demand
    return Finding(
        Ruling.REPRODUCED if tasks.tolist() == [3, 2] else Ruling.REFUTED,
        f"Progressive filling gives {listed(map(str, tasks))} tasks, which is <{', '.join(map(str, held[0]))}> and "
        f"<{', '.join(map(str, held[1]))}>, and dominant shares of {solved.objective}; the linear program of Sec. 4.1 "
        f"has the same optimum, exactly, here and on {SAMPLE} random problems of up to 5 users and 4 resources. "
        f"Algorithm 1, with whole tasks, ends there too (fairopt's policy drf). {READ}",
    )


def kept(name: str, broken: Broken, sampled: int = SAMPLE) -> Finding:
    """A property that holds: for all positive reals at small sizes by Z3, and on random problems with zeros."""
    words = real.decided(name)
    for tasks in (*at_random(sampled, 3, zeros=False), *at_random(sampled, 4, zeros=True)):
        require(broken(tasks) is None, f"{name} on {tasks}")
    return Finding(
        Ruling.HOLDS_BOUNDED,
        f"{words}. Where somebody needs nothing of a resource, users stop one after another; on {sampled} random "
        f"problems of up to 5 users and 4 resources with zeros and weights, and on as many without, nothing breaks it, "
        f"exactly. {READ}",
    )


def kept_sharing_incentive() -> Finding:
    """Everybody runs as many tasks as on its part of every resource."""
    return kept("sharing_incentive", partial(sharing_incentive, drf))


def kept_envy_freeness() -> Finding:
    """Nobody would run more tasks with another's bundle."""
    return kept("envy_freeness", partial(envy_freeness, drf))


def kept_pareto_efficiency() -> Finding:
    """Nobody can run more tasks unless another runs fewer."""
    return kept("pareto_efficiency", partial(pareto_efficiency, drf))


def kept_strategy_proofness() -> Finding:
    """Nobody runs more tasks by reporting other demands."""
    return kept("strategy_proofness", lambda tasks: strategy_proofness(drf, tasks, lies), LIED)


def kept_bottleneck_fairness() -> Finding:
    """A resource that is everybody's dominant one is divided by weight; so is the only one."""
    alone = [tasks for tasks in at_random(4 * SAMPLE, 5, zeros=False) if len(tasks.capacity) == 1]
    for tasks in alone:
        require(bottleneck_fairness(drf, tasks) is None, f"max-min on {tasks}")
    finding = kept("bottleneck_fairness", partial(bottleneck_fairness, drf))
    words = f"With one resource it is max-min by weight (also on {len(alone)} random problems of one). "
    return Finding(finding.verdict, words + finding.evidence)


def population() -> Finding:
    """Population monotonicity: who stays loses nothing when another leaves."""
    words = real.decided("population_monotonicity")
    for tasks in at_random(SAMPLE, 3, zeros=False):
        require(population_monotonicity(drf, tasks) is None, f"population monotonicity on {tasks}")
    tasks, why = _first(in_order(3, 2, 2, least=0), partial(population_monotonicity, drf))
    counted = list(at_random(SAMPLE, 4, zeros=True))
    lost = sum(population_monotonicity(drf, each) is not None for each in counted)
    return Finding(
        Ruling.QUALIFIED,
        f"Where everybody needs every resource: {words}. Where somebody needs nothing of one it is false: with "
        f"{tasks}, {why}; smallest in whole numbers. Who left had stopped another user early, and that one now "
        f"competes for longer with a third. So it is on {lost} of {SAMPLE} random problems with zeros. As we know the "
        f"theorem it is "
        f"stated for strictly positive demands. {READ}",
    )


def resources() -> Finding:
    """Resource monotonicity is violated, and no rule could have it beside sharing incentive and Pareto efficiency."""
    tasks = Tasks.of([[2, 1], [1, 2]], [6, 6])
    why = found(resource_monotonicity(drf, tasks, 4), "DRF loses on the paper's example")
    require(not real.impossibility(), "no rule has all three")
    sample = list(at_random(SAMPLE, 3, zeros=False))
    lost = sum(resource_monotonicity(drf, each, 2) is not None for each in sample)
    return Finding(
        Ruling.PROVED,
        f"With {tasks}, {why} under DRF. No rule does better: with one of each resource and then four of either, no "
        "numbers of tasks have sharing incentive and Pareto efficiency in all three systems and fall for nobody "
        "(linear arithmetic, Z3; one instance settles a claim about all rules). DRF loses when one resource doubles on "
        f"{lost} of {SAMPLE} random problems. {READ}",
    )


def asset_fairness() -> Finding:
    """Sec. 5.1, 6.1.1: asset fairness violates sharing incentive, bottleneck fairness and resource monotonicity."""
    runs = asset(EXAMPLE)
    share = Tasks.of([[1, 3], [1, 1]], [30, 30])
    bottleneck = Tasks.of([[3, 2], [4, 1]], [21, 21])
    more = Tasks.of([[4, 2], [1, 1]], [77, 77])
    cases = [
        (share, sharing_incentive(asset, share)),
        (bottleneck, bottleneck_fairness(asset, bottleneck)),
        (more, resource_monotonicity(asset, more, 2)),
    ]
    for broken in (envy_freeness, pareto_efficiency):
        for tasks in at_random(SAMPLE, 6, zeros=False):
            require(broken(asset, tasks) is None, f"{broken.__name__} of asset fairness on {tasks}")
    words = [f"with {tasks} {found(why, 'asset fairness is unfair')}" for tasks, why in cases]
    smallest, first = _first(in_order(2, 2, 3), partial(sharing_incentive, asset))
    return Finding(
        Ruling.REPRODUCED,
        f"Its own example: {listed(map(both, runs))} tasks on the system of Sec. 4.1. All three are violated: "
        f"{'; '.join(words)}. Smallest against sharing incentive: {smallest}, where {first}. Envy-freeness and Pareto "
        f"efficiency, which it keeps, hold on {SAMPLE} random problems. {READ}",
    )


def equilibrium() -> Finding:
    """Sec. 5.2, 6.1.2: competitive equilibrium from equal incomes is neither strategy-proof nor population-monotone."""
    truth = Tasks.of([[16, 1], [1, 2]], [100, 100])
    lie = truth.reporting(0, np.array([Fraction(16), Fraction(8)], dtype=object))
    before, after = _both_used_up(truth), _both_used_up(lie)
    gets = truth.runs(0, lie.demand[0] * after[0])
    require(gets > before[0], "the lie pays")
    three = Tasks.of([[4, 1], [1, 16], [16, 1]], [100, 100])
    two = three.without(2)
    left = _both_used_up(two)
    require(real.refuted(real.equilibrium(three)), "there is an equilibrium of three users")
    require(not real.refuted(real.equilibrium(three, 1, left[1])), "user 2 runs more before user 3 leaves")
    own = _both_used_up(EXAMPLE)
    return Finding(
        Ruling.REPRODUCED,
        f"On the system of Sec. 4.1 the equilibrium gives {listed(map(both, own))} tasks. With {truth} it gives "
        f"{listed(map(both, before))}; when user 1 reports <16, 8> it runs {both(gets)} instead of {both(before[0])}: "
        f"the lie pays. With {three} user 2 runs more than {both(left[1])} tasks, which is what it runs after user 3 "
        f"has left (the first is irrational; Z3 finds no equilibrium in which it is no more). Equilibria are checked "
        f"by prices: "
        f"each user spends its income, both resources are used up. {READ}",
    )


def _both_used_up(tasks: Tasks) -> list[Fraction]:
    """Return the tasks of two users in the equilibrium in which two resources are used up; its prices are checked."""
    (a, b), (c, d) = tasks.demand.T.tolist()
    first, second = tasks.capacity.tolist()
    area = a * d - b * c
    runs = [(first * d - b * second) / area, (a * second - c * first) / area]
    # prices p: p . demand_i = 1 / tasks_i
    e, f = (1 / each for each in runs)
    prices = [(e * d - f * c) / area, (a * f - b * e) / area]
    require(min(runs + prices) > 0, "both resources have a price")
    return runs


def _first(problems: Iterable[Tasks], broken: Broken) -> tuple[Tasks, str]:
    return found(next(((each, why) for each in problems if (why := broken(each))), None), "a counterexample")
