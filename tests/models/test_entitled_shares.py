"""Share policies on markets with guarantees, caps and groups: floors, caps, who solves, and what is proved."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawn_seeds import seeds
from scipy.optimize import linprog

from fairopt.backends import Highs
from fairopt.backends.cvxpy import CLARABEL, ECOS
from fairopt.backends.exact import Exact
from fairopt.by_name import allocate
from fairopt.certificates import outside_decision
from fairopt.discovery import policies, property_
from fairopt.errors import BadInput, NotCapable, NotSolved
from fairopt.evidence import certify_misreport
from fairopt.models import CooperativeOEF, MaxEfficiency, MaxMin, NashWelfare, NonCooperativeOEF, WaterFilling
from fairopt.models.gavel.hierarchical import HierarchicalWaterFilling
from fairopt.models.gavel.partitions import Normaliser
from fairopt.models.oef.above_guarantees import AboveGuarantees
from fairopt.policy import Formulated, decide, follow
from fairopt.problem import Entitled, Entitlements, Gangs, Market
from fairopt.problem.floors import Floors, floors_of
from fairopt.program import Array
from fairopt.proofs.verify import Rejected, verify
from fairopt.properties import Answer, StrategyProofness
from fairopt.testing.samples import guaranteed_market as entitled

TOLERANCE = 1e-7
ALL = (MaxEfficiency(), MaxMin(), WaterFilling(), CooperativeOEF(), NonCooperativeOEF())
OEF = (CooperativeOEF(), NonCooperativeOEF())


def members_of(market: Market) -> Array:
    """Return which users are below which node (N, n)."""
    owed = market.entitlements
    assert owed is not None
    return owed.total(np.eye(len(market.users), dtype=np.int64))


def bounded(market: Market, floors: Floors, best: Array, more: list[tuple[Array, float]] = []) -> float:  # noqa: B006
    """Return the most of a sum of shares (n, k) within floors and caps, by SciPy; minus infinity where there are none.

    ``more``: further rows, each a sum of shares (n, k) and the least that it is.
    """
    (n, k), at_most = market.shape, []
    for node, below in enumerate(members_of(market)):
        for j in range(k):
            row = np.zeros((n, k))
            row[below > 0, j] = 1
            at_most += [(row, floors.cap[node, j]), (-row, -floors.floor[node, j])]
    for j in range(k):
        at_most.append((np.eye(k)[j] * np.ones((n, 1)), floors.lendable[j]))
    for i in np.flatnonzero(market.limit < np.inf):
        at_most.append((np.eye(n)[i][:, None] * np.ones(k), market.limit[i]))
    at_most += [(-row, -least) for row, least in more]
    sides = [(0, None if runs else 0) for runs in (market.speedup > 0).ravel()]
    rows, most = np.array([row.ravel() for row, _ in at_most], float), np.array([high for _, high in at_most], float)
    found = linprog(-np.asarray(best, float).ravel(), A_ub=rows, b_ub=most, bounds=sides)
    return -found.fun if found.status == 0 else -np.inf


@pytest.mark.parametrize("seed", seeds(20, 60))
def test_a_floor_is_what_members_can_use_of_a_guarantee(seed: int) -> None:
    """Type by type, the fastest first, no floor could be higher: SciPy finds the most that members could hold."""
    market = entitled(seed)
    owed, found = market.entitlements, floors_of(market)
    assert owed is not None
    n, below = len(market.users), members_of(market)
    promised, open_ = np.minimum(owed.guarantee, found.cap), found.floor.astype(float) * 0
    free = Floors(open_, found.cap, np.full(market.shape[1], 1e9))
    for i in range(n):
        used = market.select([i]).plain().utility([promised[i].tolist()])[0]
        assert (market.speedup[i] * found.floor[i]).sum() == used  # its fastest GPUs first, up to its demand
    open_[:n] = found.floor[:n]
    for group in (node for node in owed.upwards if node >= n):
        for j in reversed(market.type_order()):
            most = bounded(market, free, np.where(below[group][:, None] > 0, np.eye(len(market.types))[j], 0))
            assert float(found.floor[group, j]) == pytest.approx(min(float(promised[group, j]), most), abs=1e-6)
            open_[group, j] = found.floor[group, j]
    assert bounded(market, found, market.speedup) > -np.inf


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_floors_and_caps_hold_exactly_and_other_solvers_agree(policy: Formulated) -> None:
    for seed in (0, 2, 3, 5, 6, 8):
        market = entitled(seed)
        floors, below = floors_of(market), members_of(market)
        found = decide(policy, market, exact=True)
        held = below @ found.shares
        assert found.exact
        assert (floors.floor <= held).all()
        assert (held <= floors.cap).all()
        assert (found.shares.sum(axis=0) <= floors.lendable).all()
        for other in (decide(policy, market), decide(policy, market, Highs()), decide(policy, market, CLARABEL)):
            assert other.method is None
            assert float(other.objective) == pytest.approx(float(found.objective), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("seed", seeds(7, 20))
def test_optima_are_those_of_scipy(seed: int) -> None:
    market = entitled(seed)
    floors, fair = floors_of(market), market.fair_utility()
    n, k = market.shape
    best = float(decide(MaxEfficiency(), market, exact=True).objective)
    assert best == pytest.approx(bounded(market, floors, market.speedup), rel=1e-7)
    least = float(decide(MaxMin(), market, exact=True).objective)
    ratios = [np.eye(n)[i][:, None] * (market.speedup[i] / fair[i]).astype(float) for i in range(n)]
    nothing = np.zeros((n, k))
    assert bounded(market, floors, nothing, [(row, least - 1e-7) for row in ratios]) > -np.inf
    assert bounded(market, floors, nothing, [(row, least + 1e-4) for row in ratios]) == -np.inf
    # water filling: nobody can have more unless one that has no more than it has less
    filled = decide(WaterFilling(), market, exact=True).utilities / fair
    for i in range(n):
        below = [other for other in range(n) if other != i and filled[other] <= filled[i]]
        others = [(ratios[other], float(filled[other]) - 1e-7) for other in below]
        assert bounded(market, floors, ratios[i], others) == pytest.approx(float(filled[i]), abs=1e-4)


def test_members_make_room_for_each_other_in_a_groups_floor() -> None:
    """A could take the first type, but then nobody would take the second, on which B cannot run."""
    users, types = ["A", "B"], ["T1", "T2", "T3"]
    owed = Entitlements.of(users, types, group={"A": "ml", "B": "ml"}, guarantee={"ml": [1, 1, 0]})
    speedup = [[4, 3, 0], [4, 0, 1]]
    market = Market.of(speedup, [1, 1, 1], demand=[1, 1], users=users, types=types, entitlements=owed)
    assert floors_of(market).floor.tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 0]]
    assert allocate("max-min", market, exact=True).shares.tolist() == [[0, 1, 0], [1, 0, 0]]


def compared(market: Market, floors: Floors) -> Array:
    """Return whether user l is compared with i (n, n): not with the members of a group that is guaranteed by itself."""
    owed, below, n = market.entitlements, members_of(market), len(market.users)
    assert owed is not None
    out = ~np.eye(n, dtype=bool)
    for group in (node for node in owed.upwards if node >= n):
        inside, children = below[group] > 0, list(owed.children[group])
        if children and (floors.floor[group] > floors.floor[children].sum(axis=0)).any():
            out &= inside[:, None] | ~inside[None, :]
    return out


@pytest.mark.parametrize("seed", seeds(4, 12))
def test_oef_compares_what_is_held_beyond_guarantees(seed: int) -> None:
    """Optima are SciPy's within the definitions, and nobody envies a peer as the property reads it."""
    market = entitled(seed)
    floors, (n, k) = floors_of(market), market.shape
    floor, met = floors.floor[:n], floors.floor[:n].sum(axis=1) >= market.limit
    counts = np.zeros((n, k))
    for i, j in np.argwhere((market.speedup > 0) & (floors.cap[:n] > floor)):
        slowest = min(market.speedup[i][floor[i] > 0]) if met[i] else 0
        counts[i, j] = max(0, market.speedup[i, j] - slowest)
    rows = []
    for i, other in np.argwhere(compared(market, floors)):
        row = np.zeros((n, k))
        row[i] += counts[i]
        row[other] -= counts[i]
        rows.append((row, float((row * floor).sum())))
    best = bounded(market, floors, market.speedup, rows)
    if best == -np.inf:
        with pytest.raises(NotSolved, match=r"these cannot hold together: .*group_floor.*envy_free"):
            decide(CooperativeOEF(), market, exact=True)
        return
    found = decide(CooperativeOEF(), market, exact=True)
    assert float(found.objective) == pytest.approx(best, rel=1e-6)
    assert property_("envy_within_peers").check(market, found.shares).answer is Answer.HOLDS


def test_guarantees_are_no_reason_for_envy_by_hand() -> None:
    """B keeps 4 of 8 H100. Of the rest A gets 3, worth 6 to B, as its other H100 and the 4 A100s are."""
    market = two(guarantee={"B": [4, 0]})
    found = decide(CooperativeOEF(), market, exact=True)
    assert [[str(each) for each in row] for row in found.shares] == [["3", "0"], ["5", "4"]]
    assert property_("envy_freeness").check(market, found.shares).answer is Answer.FAILS  # of B's guarantee
    assert property_("envy_within_peers").check(market, found.shares).margin == 0
    equal = decide(NonCooperativeOEF(), market, exact=True)
    above = equal.utilities - [0, 8]
    assert above[0] == above[1] > 0


def test_nash_welfare_is_exact_within_floors_and_caps() -> None:
    for seed in range(4):
        market, policy = entitled(seed), NashWelfare()
        floors = floors_of(market)
        found, other = decide(policy, market), decide(policy, market, ECOS)
        assert found.solver is not None
        assert found.solver.name == "clarabel"
        assert found.exact
        assert found.error == 0
        held = members_of(market) @ found.shares
        assert (floors.floor <= held).all()
        assert (held <= floors.cap).all()
        assert float(found.objective) == pytest.approx(float(other.objective), abs=1e-6)
        told = json.loads(json.dumps(policy.certify(found).to_json()))
        assert "is at most 0 below the largest [within entitlements" in verify(told)
        more, dearer = ([str(2 * Fraction(each)) for each in told[key]] for key in ("lower", "costs"))
        for forged in ({"lower": more}, {"costs": dearer}, {"duals": []}, {"gap": "-1"}):
            with pytest.raises(Rejected):
                verify(told | forged)
        # in floats, a linear program bounds it
        floats = decide(policy, market.as_(float))
        assert floats.solution is not None
        assert float(floats.objective) <= floats.solution.bound + 1e-12  # type: ignore[operator]
        assert floats.solution.bound == pytest.approx(float(floats.objective), abs=1e-4)
        assert floats.utilities.astype(float) == pytest.approx(found.utilities.astype(float), rel=1e-4)


def two(**more: Any) -> Market:
    """Return two users with 8 GPUs of one type and 4 of another."""
    owed = Entitlements.of(["A", "B"], ["H100", "A100"], **more)
    return Market.of([[3, 1], [2, 1]], [8, 4], users=["A", "B"], types=["H100", "A100"], entitlements=owed)


def test_guarantees_that_do_not_fit_are_named_with_type_and_numbers() -> None:
    with pytest.raises(BadInput, match=r"guarantee, 'H100': .* add up to 10, and there are only 8"):
        allocate("max-min", two(guarantee={"A": [6, 0], "B": [4, 0]}))
    group = {"A": "ml", "B": "ml"}
    with pytest.raises(BadInput, match=r"'A100': guarantees of the members of 'ml' add up to 4, and its cap is 3"):
        allocate("max-min", two(guarantee={"A": [6, 2], "B": [2, 2]}, group=group, cap={"ml": [8, 3]}))


def test_what_is_reserved_is_lent_to_nobody() -> None:
    market = two(guarantee={"B": [0, 3]}, reserve={"B": [0, 3]}).misreport("B", [2, 0])  # B cannot use its A100s
    assert allocate("max-efficiency", market).shares.sum(axis=0).tolist() == [8, 1]


def test_a_guarantee_of_more_than_there_is_does_not_fit() -> None:
    with pytest.raises(BadInput, match="add up to 9, and there are only 8"):
        allocate("max-min", two(guarantee={"A": [9, 0]}))


def test_a_guarantee_without_bound_is_no_floor() -> None:
    market = two(guarantee={"A": [None, None], "B": [2, 0]}, cap={"A": [7, 4]})
    assert floors_of(market).floor.tolist() == [[0, 0], [2, 0]]
    for policy in (*ALL, *FILLING[:-1], NashWelfare()):
        found = decide(policy, market, exact=True)
        assert (found.shares[0] < market.capacity).any()
        assert verify(json.loads(json.dumps(policy.certify(found).to_json())))


def test_what_users_hold_and_wait_for_changes_no_share_and_no_proof() -> None:
    """B holds no A100 now, of which it is guaranteed one: policies decide by demands, and so does the verifier."""
    users, types = ["A", "B"], ["H100", "A100"]
    gangs = Gangs.of(["B"], [1], users=users, types=types, allowed=[["H100"]], on=[None])
    market = two(guarantee={"B": [1, 1]}, held={"A": [4, 4], "B": [2, 0]}, gangs=gangs).misreport("B", [1, 2])
    for policy in (*ALL, *FILLING[:-1], NashWelfare()):
        found = decide(policy, market, exact=True)
        told = json.loads(json.dumps(policy.certify(found).to_json()))
        assert verify(told)
    program = MaxEfficiency().formulate(market.plain(), None)
    passed_off = outside_decision(market, MaxEfficiency().told(market), program, Exact().solve(program)).to_json()
    with pytest.raises(Rejected, match="the allocation breaks guarantees"):  # A has all H100
        verify(json.loads(json.dumps(passed_off)))


def test_a_group_of_floats_is_guaranteed_no_more_than_its_members_are() -> None:
    """In floats 1/10 and 2/10 are more than 3/10, and 1/10 and 7/10 less than 8/10: the members' sums all the same."""
    tenths = {"A": ["1/10", "1/10"], "B": ["2/10", "7/10"]}
    market = two(guarantee=tenths, group={"A": "ml", "B": "ml"})
    for each in (market, market.as_(float), market.as_(float).as_(Fraction)):
        assert AboveGuarantees.of(each).level.tolist() == [0, 0]
    met = replace(market.as_(float), demand=np.array([0.2, 0.9])).as_(Fraction)
    assert not AboveGuarantees.of(met).rises.any()


def test_guarantees_in_floats_that_exceed_the_capacity_by_rounding_fit() -> None:
    """In floats 1/3 and 5/3 are more than 2; nothing is left then, where floats are unsure and rationals refuse."""
    owed = Entitlements.of(["A", "B"], ["T"], guarantee={"A": ["1/3"], "B": ["5/3"]})
    market = Market.of([[1], [2]], [2], users=owed.users, types=owed.types, entitlements=owed).as_(float)
    with pytest.raises(BadInput, match="add up to"):
        decide(MaxMin(), market, exact=True)
    for policy in (*ALL, NashWelfare()):
        found = decide(policy, market)
        assert found.utilities == pytest.approx([1 / 3, 10 / 3])


def test_what_a_policy_does_not_support_is_refused_by_name() -> None:
    owed = two(guarantee={"B": [1, 0]}, cap={"B": [6, 4]}, group={"A": "ml"}, tier={"A": 1})
    for policy in policies(Market):
        assert Entitled.TIERS not in policy.supports or not isinstance(policy, Formulated)
    with pytest.raises(NotCapable, match="max-min does not support tiers, which"):
        allocate("max-min", owed)
    with pytest.raises(NotCapable, match="oef-cooperative does not support tiers, which"):
        allocate("oef-cooperative", owed)
    with pytest.raises(NotCapable, match="equal-split does not support caps, groups, guarantees, tiers"):
        allocate("equal-split", owed)


def test_methods_refuse_entitlements_and_a_back_end_solves_instead() -> None:
    market = two(guarantee={"B": [4, 0]})
    for policy in ALL:
        for method in policy.methods:
            with pytest.raises(
                NotCapable, match=f"{method.name}, {policy.name}'s own method, supports no entitlements"
            ):
                decide(policy, market, method)
        found = decide(policy, market)
        assert found.solver is not None
        assert found.solver.name in ("highs", "exact")  # rationals where floats are not sure
        assert follow(policy)(market).shares[1, 0] >= 4 - TOLERANCE


@pytest.mark.parametrize("policy", [each for each in ALL if each.name != "water-filling"], ids=lambda each: each.name)
def test_the_certificate_holds_the_program(policy: Formulated) -> None:
    market = two(guarantee={"B": [4, 0]}, cap={"A": [3, 4]})
    told = policy.certify(decide(policy, market, exact=True)).to_json()
    statement = verify(told)
    assert f"the author of '{policy.name} with entitlements' wrote" in statement
    assert "entitlements of 2 users and groups" in statement
    found = decide(policy, market, exact=True).shares
    for name in ("guarantee_kept", "cap_kept", *["envy_within_peers"] * (policy.name == "oef-cooperative")):
        verdict = property_(name).check(market, found)
        assert verdict.answer is Answer.HOLDS
        assert name in verify(property_(name).certify(market, found, verdict).to_json())
    with pytest.raises(Exception, match="proved from the market"):  # the plain policy decides otherwise
        verify(json.loads(json.dumps(told | {"policy": policy.name})))
    plain = policy.certify(decide(policy, market.plain(), exact=True))
    assert (plain.allocation != found).any()
    with pytest.raises(Exception, match="entitlements"):  # kinds that the verifier writes the program of know none
        verify(plain.to_json() | {"market": told["market"]})
    program = policy.formulate(market.plain(), None)
    best = Exact().solve(program)
    passed_off = outside_decision(market, policy.told(market), program, best).to_json()
    with pytest.raises(Exception, match="the allocation breaks"):  # the plain optimum is not this market's
        verify(passed_off)


FILLING = [
    *(WaterFilling(normaliser=each) for each in Normaliser),
    HierarchicalWaterFilling(),
    HierarchicalWaterFilling(fifo=["a"]),
]


@pytest.mark.parametrize("policy", FILLING, ids=lambda each: each.told(two()))
def test_water_filling_is_proved_round_by_round(policy: WaterFilling) -> None:
    for seed in range(2):
        market = entitled(seed)
        found = decide(policy, market, exact=True)
        told = json.loads(json.dumps(policy.certify(found).to_json()))
        statement = verify(told)
        assert (
            f"as {policy.told(market)} makes them [floors of groups, and GPUs that are lent, are as told" in statement
        )
        if "fifo" in vars(policy) and policy.fifo:  # such a group there must be
            continue
        plain = json.loads(json.dumps(policy.certify(decide(policy, market.plain(), exact=True)).to_json()))
        assert f"as {policy.told(market.plain())} makes them" in verify(plain)
        with pytest.raises(Rejected):  # what entitlements make of groups is told where there are some, and nowhere else
            verify(plain | {"owed": told["owed"]})
        if plain["allocation"] != told["allocation"]:
            with pytest.raises(Rejected):
                verify(told | {key: plain[key] for key in ("allocation", "rounds")})


def test_forged_floors_of_water_filling_are_rejected() -> None:
    market = two(guarantee={"ml": [0, 3]}, group={"A": "ml"}, reserve={"ml": [0, 3]}).misreport("A", [2, 0])
    policy, idle = WaterFilling(), two(guarantee={"B": [4, 0]})
    told = json.loads(json.dumps(policy.certify(decide(policy, market, exact=True)).to_json()))
    assert told["owed"] == {"floors": [["0", "0"]], "lent": ["8", "1"]}
    verify(told)
    for floors, lent in (([[0, 3]], [8, 1]), ([[0, 4]], [8, 1]), ([[0, 0]], [8, 2]), ([[-1, 0], [0, 0]], [8, 1])):
        with pytest.raises(Rejected):
            verify(told | {"owed": {"floors": floors, "lent": lent}})
    with pytest.raises(Rejected, match=r"guarantees|bounds"):  # B has less than it is guaranteed
        verify(
            json.loads(json.dumps(policy.certify(decide(policy, idle, exact=True)).to_json()))
            | {"allocation": [["16/3", 2], ["8/3", 2]]}
        )


def test_a_lie_to_an_entitled_market_is_proved() -> None:
    market, policy = two(guarantee={"B": [4, 0]}), MaxEfficiency()
    truth, after = (decide(policy, each, exact=True) for each in (market, market.misreport("B", [4, 1])))
    lie = StrategyProofness().told(market, 1, market.misreport("B", [4, 1]).speedup[1], truth, after)
    assert lie.gain == 8
    assert "max-efficiency with entitlements" in verify(certify_misreport(policy, market, lie).to_json())
