"""OEF's two programs, Eq. (9) and (10), with weights and job types: every backend, and the exact optimum certified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from fairopt import allocate, discovery
from fairopt.backends.exact import Exact
from fairopt.datasets import oef_eq6, oef_example
from fairopt.models import CooperativeOEF, MaxEfficiency, NonCooperativeOEF
from fairopt.policy import Policy
from fairopt.problem import Market, market_from_dict
from fairopt.problem.share_variables import shares_of
from fairopt.program import Affine, Formulation, Program
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, holds, only_optimum
from fairopt.proofs.ledger.wording import all_print_as, both, listed, percent, printed_table, rows
from fairopt.properties import EnvyFreeness
from fairopt.testing.samples import sample_markets

#: What the paper prints.
WEIGHTED = "1 1/3; 0 1/3; 0 1/3"
JOB_TYPES = "1 .11; 0 .41; 0 .24; 0 .24"
#: The float backends may differ by this much, relative to the objective: the first-order one stops at 1e-6.
AGREE = 1e-5
BACKENDS = ("highs", "pyomo", "ecos", "clarabel", "scs")
RANDOM = 10


def eq9() -> Finding:
    """Eq. (9): the model object against the printed program, on every backend, and certified."""
    policy, markets = NonCooperativeOEF(), list(_markets())
    same = [
        _best(_printed(market, _all_pairs_equal)) == decide(policy, market).objective for market in _unweighted(markets)
    ]
    worst = _worst_disagreement(policy, markets)
    agree = all(same) and max(worst.values()) <= AGREE
    return Finding(
        Ruling.REPRODUCED if agree else Ruling.REFUTED,
        f"{_agreement(worst, markets)} Eq. (9c) as printed, for all pairs of users, has the same exact optimum as the "
        f"model's n equations with a common level on {sum(same)} of {len(same)} markets without weights.",
    )


def eq10() -> Finding:
    """Eq. (10): the model object against both readings of (10c), on every backend, and certified."""
    policy, markets = CooperativeOEF(), list(_markets())
    decisions = [decide(policy, market) for market in _unweighted(markets)]
    mended = [_best(_printed(each.market, _all_pairs_unenvied)) == each.objective for each in decisions]
    literal = [_best(_printed(each.market, _nothing_asked)) for each in decisions]
    idle = [
        best == decide(MaxEfficiency(), each.market).objective for best, each in zip(literal, decisions, strict=True)
    ]
    more = [best > each.objective for best, each in zip(literal, decisions, strict=True)]
    example = decide(MaxEfficiency(), oef_eq6())
    envied = not holds(EnvyFreeness(), oef_eq6(), example.shares)
    worst = _worst_disagreement(policy, markets)
    agree = all(mended) and max(worst.values()) <= AGREE
    contradiction = all(idle) and any(more) and envied
    return Finding(
        (Ruling.INCONSISTENT if contradiction else Ruling.REPRODUCED) if agree else Ruling.REFUTED,
        f"As printed (10c) compares a user with itself and asks for nothing: the program is then Eq. (4) "
        f"({sum(idle)} of {len(idle)} markets; {sum(more)} have a larger optimum than without envy), and on Eq. (6) "
        f"gives {rows(example.shares)}, total {example.objective}, which u1 envies. With the other user's shares "
        f"on the right, as in the proof of Theorem 5.1, it is the model on {sum(mended)} of {len(mended)} markets and "
        f"gives Eq. (6). {_agreement(worst, markets)}",
    )


def weighted() -> Finding:
    """Sec. 4.2.3: weights by replication and directly, integer or not."""
    policy, one = NonCooperativeOEF(), oef_eq6()
    heavy = _with_weight(one, [1, 2])
    copies, direct, halves = (
        decide(policy, market) for market in (heavy.replicated(), heavy, _with_weight(one, ["1/2", "1"]))
    )
    printed = (copies.shares == printed_table(WEIGHTED)).all() and only_optimum(policy, copies)
    summed = np.array([copies.shares[0], copies.shares[1:].sum(axis=0)])
    agree = (summed == direct.shares).all() and (halves.shares == direct.shares).all()
    trials = {each.name: [_replication_agrees(each, market) for market in _weighted_markets()] for each in _modes()}
    counts = listed(f"{name} on {sum(trial)} of {len(trial)}" for name, trial in trials.items())
    every = agree and all(all(trial) for trial in trials.values())
    return Finding(
        Ruling.REPRODUCED if printed and every else Ruling.QUALIFIED if printed else Ruling.REFUTED,
        f"Replication gives {rows(copies.shares)}, the only optimum; weights 1, 2 and 1/2, 1 put into the program "
        f"itself both give {rows(direct.shares)}, the same by user. On random markets with rational weights the "
        f"direct program and replication by the weights times their common denominator give the same users the same "
        f"throughput (non-cooperative) or the same optimal total (cooperative): {counts}. Of several jobs of one user, "
        f"which the section says conventional solutions cannot handle, nothing is decided here (oef-jobtypes).",
    )


def jobtypes() -> Finding:
    """Sec. 4.2.4: two job types of u1, by virtual users."""
    policy, types = NonCooperativeOEF(), [1, 1]
    copies = decide(policy, Market.of([[1, 2], [1, 3], [1, 5], [1, 5]], capacity=types))
    jobs = market_from_dict(
        {
            "schema": 1,
            "types": ["GPU1", "GPU2"],
            "capacity": types,
            "user": [
                {"name": "u1", "job": [{"name": "a", "speedup": [1, 2]}, {"name": "b", "speedup": [1, 3]}]},
                {"name": "u2", "speedup": [1, 5]},
            ],
        }
    )
    direct = decide(policy, jobs)
    agree = all_print_as(copies.shares, JOB_TYPES) and only_optimum(policy, copies)
    summed = [*copies.shares[:2], copies.shares[2:].sum(axis=0)]
    same = all((a == b).all() for a, b in zip(summed, direct.shares, strict=True))
    own = copies.utilities
    return Finding(
        Ruling.REPRODUCED if agree and same else Ruling.REFUTED,
        f"{rows(copies.shares)}, the only optimum, prints as in the paper; each row gets {both(own[0])}, so that "
        f"the two jobs of u1 have {both(own[:2].sum())} together, as u2 has. Weights {listed(map(str, jobs.weight))} "
        f"instead of rows twice give {rows(direct.shares)}, the same.",
    )


# -- the printed programs ----------------------------------------------------------------------------------------
def _printed(market: Market, constraint: Callable[[Formulation, Market, Affine], None]) -> Program:
    """Return the largest total throughput within the capacities and the constraint, as the paper prints it."""
    p = Formulation("as printed")
    share = shares_of(p, market)
    p.maximize((market.speedup * share).sum())
    constraint(p, market, share)
    return p.program()


def _all_pairs_equal(p: Formulation, market: Market, share: Affine) -> None:
    own = (market.speedup * share).sum(axis=1)
    p.constrain("9c", own[:, None] == own[None, :])


def _all_pairs_unenvied(p: Formulation, market: Market, share: Affine) -> None:
    own = (market.speedup * share).sum(axis=1)
    p.constrain("10c", own[:, None] >= market.speedup @ share.T)


def _nothing_asked(p: Formulation, market: Market, share: Affine) -> None:
    own = (market.speedup * share).sum(axis=1)
    p.constrain("10c", own >= own)


def _best(program: Program) -> Fraction:
    return Fraction(program.value(Exact().solve(program).require_optimal().point))


# -- many markets ------------------------------------------------------------------------------------------------
def _modes() -> tuple[Policy, Policy]:
    return NonCooperativeOEF(), CooperativeOEF()


def _markets() -> Iterator[Market]:
    yield oef_example()
    yield oef_eq6()
    yield _with_weight(oef_eq6(), [1, 2])
    yield from sample_markets(RANDOM, seed=9, users=(2, 6), types=(2, 4))


def _unweighted(markets: list[Market]) -> list[Market]:
    return [market for market in markets if (market.weight == market.weight[0]).all()]


def _weighted_markets() -> Iterator[Market]:
    """Yield random markets with weights p/q that are small enough to replicate."""
    random = np.random.default_rng(423)
    for market in sample_markets(RANDOM, seed=10, users=(2, 4), types=(2, 3), weights=False):
        weights = [Fraction(int(random.integers(1, 5)), int(random.integers(1, 4))) for _ in market.users]
        yield _with_weight(market, weights)


def _with_weight(market: Market, weight: Sequence[object]) -> Market:
    return Market.of(market.speedup.tolist(), market.capacity.tolist(), weight=weight, types=market.types)


def _replication_agrees(policy: Policy, market: Market) -> bool:
    """Whether weights in the program and rows repeated lead to the same exact optimum."""
    scale = lcm(*(weight.denominator for weight in market.weight))
    times = (market.weight * scale).tolist()
    copies = decide(policy, _with_weight(market, times).replicated())
    direct = decide(policy, market)
    if isinstance(policy, CooperativeOEF):
        return bool(copies.objective == direct.objective)
    first = np.cumsum([0, *times[:-1]]).tolist()
    summed = [copies.utilities[int(a) : int(a + b)].sum() for a, b in zip(first, times, strict=True)]
    return bool((direct.utilities == summed).all())


def _worst_disagreement(policy: Policy, markets: list[Market]) -> dict[str, float]:
    """Return for each float backend how far its total is from the exact one at worst, relatively.

    Errors: `NotInstalled` where one of the libraries is missing.
    """
    exact = [float(decide(policy, market).objective) for market in markets]
    return {
        backend.name: max(
            abs(float(allocate(policy, market, backend).objective) - best) / best
            for market, best in zip(markets, exact, strict=True)
        )
        for backend in map(discovery.backend, BACKENDS)
    }


def _agreement(worst: dict[str, float], markets: list[Market]) -> str:
    return (
        f"On {len(markets)} markets (the paper's and random ones, with weights, zeros and ties) the exact optimum is "
        f"certified and {listed(worst)} agree with it to within {percent(AGREE, 3)}."
        if max(worst.values()) <= AGREE
        else f"On {len(markets)} markets backends disagree: {worst}."
    )
