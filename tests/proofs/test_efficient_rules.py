"""Pareto-efficient rules: who may hold what, and proofs that there is none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fairopt.errors import BadInput
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.findings.truthful.chains import THREE_USERS, TWO_USERS, truthful_and_fair
from fairopt.proofs.findings.truthful.design import Design
from fairopt.proofs.findings.truthful.efficient import possible_by_integers
from fairopt.proofs.findings.truthful.efficient_rules import efficient_holders, fewest, refute
from fairopt.proofs.findings.truthful.profiles import Profiles
from fairopt.proofs.verify import verify
from fairopt.properties import Answer, ParetoEfficiency


def given_out(random: np.random.Generator, held: Array) -> Array:
    """Return shares of one GPU of each type, all given to those that hold some."""
    parts = np.where(held, random.integers(1, 5, held.shape), 0)
    return np.array([[Fraction(int(x), int(y)) for x, y in zip(row, parts.sum(axis=0), strict=True)] for row in parts])


@pytest.mark.parametrize(("n", "k"), [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_efficient_allocations_are_those_of_the_masks(n: int, k: int) -> None:
    random = np.random.default_rng(n * k)
    answers = set()
    for _ in range(12):
        speedup = random.integers(1, 4, (n, k))
        ways = efficient_holders(speedup)
        chosen = ways[random.integers(len(ways))] if random.random() < 0.5 else random.random((n, k)) < 0.6
        held = chosen | (~chosen.any(axis=0) & (np.arange(n) == 0)[:, None])
        found = ParetoEfficiency().check(Market.of(speedup, [1] * k), given_out(random, held)).answer
        assert (found is Answer.HOLDS) == any((held <= way).all() for way in ways)
        answers.add(found)
    assert answers == {Answer.HOLDS, Answer.FAILS}


def test_speedups_of_zero_are_refused() -> None:
    with pytest.raises(BadInput, match="not positive"):
        efficient_holders(np.array([[0, 1], [1, 1]]))


@pytest.mark.parametrize("chain", [TWO_USERS, THREE_USERS])
def test_no_rule_is_efficient_truthful_and_fair_on_a_chain_of_markets(chain: Profiles) -> None:
    cases = refute(chain, truthful_and_fair)
    assert cases is not None
    for case in cases:
        assert verify(case.certificate.to_json()).startswith("no point satisfies")
    # every way to be efficient at all markets falls under a case
    ways = [efficient_holders(speedup) for speedup in chain.corners[:, :, 0]]
    choices: list[dict[int, Array]] = [{}]
    for p, way in enumerate(ways):
        choices = [chosen | {p: holders} for chosen in choices for holders in way]
    for chosen in choices:
        assert any(all((chosen[p] == mask).all() for p, mask in case.holders.items()) for case in cases)
    assert not possible_by_integers(chain)
    assert possible_by_integers(chain.some(range(1, len(chain.told))))


def test_the_fewest_markets_are_found_among_many() -> None:
    twice = Profiles(TWO_USERS.cells, np.array([[0, 0], *TWO_USERS.told.tolist(), [1, 1]]), TWO_USERS.capacity)

    def impossible(profiles: Profiles) -> bool:
        return refute(profiles, truthful_and_fair) is not None

    assert sorted(fewest(twice, impossible).told.tolist()) == sorted(TWO_USERS.told.tolist())
    with pytest.raises(BadInput, match="is possible at these profiles"):
        fewest(TWO_USERS.some([0, 1]), impossible)


def test_each_two_of_the_properties_go_together() -> None:
    assert refute(TWO_USERS, Design.strategy_proof) is None
    assert refute(TWO_USERS, Design.sharing_incentive) is None
