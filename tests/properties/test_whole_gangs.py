"""Whole gangs: who is owed more while others are lent it, and what is wasted, where a gang runs as a whole or not."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from operator import add, le
from typing import Any

import numpy as np
import pytest
from one_type import now, one_type

from fairopt.problem import Entitlements, Gangs, Good, Market
from fairopt.proofs.verifier import standing
from fairopt.proofs.verifier.reading import Rejected
from fairopt.proofs.verify import verify as proved
from fairopt.properties import Answer, Verdict
from fairopt.properties.entitlements import nobody_starves_while_lent, whole_gangs
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed
from fairopt.properties.entitlements.nobody_starves_while_lent import NobodyStarvesWhileLent, _Starving
from fairopt.properties.entitlements.whole_gangs import Chooser
from fairopt.properties.entitlements.whole_gpu_conservation import WholeGpuConservation
from fairopt.properties.property import SlackCase
from fairopt.testing.samples import entitled_markets, stated


def agreed(market: Market, shares: Any = None) -> Verdict:
    """Return who starves with shares, by default those that are held; the verifier says the same, and not the other."""
    asked, shares = NobodyStarvesWhileLent(), now(market) if shares is None else shares
    verdict = asked.check(market, shares)
    told = asked.certify(market, shares, verdict).to_json()
    assert proved(told)
    with pytest.raises(Rejected):
        proved(told | {"answer": "FAILS" if verdict.holds else "HOLDS"})
    return verdict


def gangs_of(sizes: list[int], *, free: int, lent: int, guarantee: int) -> Market:
    """Return a, which waits for gangs of these sizes, and b and c, which borrow; what b holds is a gang each GPU."""
    users, running = ["a", "b", "c"], ["b"] * (lent - lent // 2) + ["c"] * (lent // 2)
    gangs = Gangs.of(
        ["a"] * len(sizes) + running,
        [*sizes, *[1] * lent],
        users=users,
        types=["H100"],
        on=[None] * len(sizes) + ["H100"] * lent,
    )
    owed = Entitlements.of(users, ["H100"], guarantee={"a": [guarantee]}, gangs=gangs)
    return Market.of([[1]] * 3, [free + lent], users=users, types=["H100"], entitlements=owed)


@pytest.mark.parametrize(
    ("sizes", "free", "lent", "guarantee", "margin", "action"),
    [
        (
            [4],
            3,
            1,
            6,
            -4,
            "start a gang of 4 of a on H100 within its guarantee: give a 3 idle H100 and reclaim 1 H100",
        ),
        ([4, 4], 0, 8, 6, -4, "start a gang of 4 of a on H100 within its guarantee: reclaim 4 H100 from b for a"),
        ([5, 4, 4, 3], 0, 8, 8, -8, "start"),
        ([2, 2, 3], 0, 6, 6, -5, "start a gang of 3 and a gang of 2 of a on H100 within its guarantee: reclaim 3 H100"),
        (
            [1] * 5,
            0,
            4,
            8,
            -4,
            "start 4 gangs of 1 of a on H100 within its guarantee: reclaim 2 H100 from b and 2 H100",
        ),
        ([4], 0, 4, 3, 0, ""),  # it does not fit the guarantee
        ([4], 2, 1, 6, 0, ""),  # nor what can be had
    ],
)
def test_only_whole_gangs_starve(
    sizes: list[int], free: int, lent: int, guarantee: int, margin: int, action: str
) -> None:
    market = gangs_of(sizes, free=free, lent=lent, guarantee=guarantee)
    verdict = agreed(market)
    assert (verdict.margin, verdict.holds) == (margin, margin == 0)
    assert verdict.holds or str(verdict.witness).startswith(action)


def test_three_idle_gpus_are_not_wasted_while_the_smallest_gang_is_four() -> None:
    market = gangs_of([4], free=3, lent=1, guarantee=6)
    verdict = WholeGpuConservation().check(market, now(market))
    assert (verdict.holds, verdict.margin) == (True, 1)
    four = gangs_of([4], free=4, lent=0, guarantee=6)
    assert str(WholeGpuConservation().check(four, now(four)).witness) == "start g1 of a on 4 idle H100"


def test_what_members_of_a_group_lend_is_no_more_than_what_the_group_does() -> None:
    """b and c of one group hold 2 each, and the group only 2 more than its guarantee: a gang of 4 cannot be had."""
    more: dict[str, Any] = {"group": {"b": "g", "c": "g"}, "guarantee": {"a": [4], "g": [2]}}
    market = one_type(4, {"a": 0, "b": 2, "c": 2}, {"a": 4}, **more)
    assert agreed(market).holds
    two = one_type(4, {"a": 0, "b": 2, "c": 2}, {"a": 2}, **more)
    assert agreed(two).margin == -2


def test_a_cap_of_the_user_s_group_stops_what_comes_from_outside() -> None:
    """a and b may hold 4 together, and b holds 4: a's gang is owed what b holds, and not what c does."""
    more: dict[str, Any] = {"group": {"a": "g", "b": "g"}, "cap": {"g": [4]}, "guarantee": {"a": [4], "b": [2]}}
    market = one_type(12, {"a": 0, "b": 4, "c": 8}, {"a": 2}, **more)
    verdict = agreed(market)
    assert str(verdict.witness).endswith("reclaim 2 H100 from b for a")
    four = one_type(12, {"a": 0, "b": 4, "c": 8}, {"a": 4}, **more)
    assert agreed(four).holds


def with_cpu(cpus: list[Any], *, stock: Any, guarantee: int, held: int) -> Market:
    """Return a, whose gangs of 2 wait and take so many CPUs each, and b, which holds all 8 GPUs and some CPUs."""
    users, count = ["a", "b"], len(cpus)
    gangs = Gangs.of(
        ["a"] * count + ["b"],
        [2] * count + [8],
        users=users,
        types=["H100"],
        on=[None] * count + ["H100"],
        other={"cpu": [*cpus, held]},
    )
    owed = Entitlements.of(
        users,
        ["H100"],
        goods={Good("cpu", "all"): stock},
        guarantee={"a": {"H100": 8, "cpu:all": guarantee}},
        gangs=gangs,
    )
    return Market.of([[1]] * 2, [8], users=users, types=["H100"], entitlements=owed)


@pytest.mark.parametrize(
    ("cpus", "stock", "guarantee", "held", "margin", "action"),
    [
        ([5, 3, 4], 9, 0, 0, -4, "start 2 gangs of 2 of a on H100 within its guarantee: reclaim 4 H100 from b for a"),
        ([5, 5], 4, 0, 0, 0, ""),
        (
            [5, 5],
            8,
            5,
            8,
            -5,
            "start a gang of 2 of a on H100 within its guarantee: reclaim 5 cpu:all from b for a and ",
        ),
        ([5, 5], 8, 4, 8, 0, ""),  # what it is not guaranteed is not taken back for it
        ([5], 5, 0, 0, -2, "start a gang of 2 of a on H100 within its guarantee: reclaim 2 H100 from b for a"),
        (
            [Fraction(1, 2)] * 2,
            Fraction(3, 4),
            0,
            0,
            -2,
            "start a gang of 2 of a on H100 within its guarantee: reclaim",
        ),
    ],
)
def test_what_gangs_take_beside_gpus_can_be_had_too(
    cpus: list[Any], stock: Any, guarantee: int, held: int, margin: int, action: str
) -> None:
    market = with_cpu(cpus, stock=stock, guarantee=guarantee, held=held)
    verdict = agreed(market)
    assert (verdict.margin, verdict.holds) == (margin, margin == 0)
    assert verdict.holds or str(verdict.witness).startswith(action)


def test_what_is_idle_in_part_and_lent_in_part_is_told_of_what_gangs_take_besides() -> None:
    market = with_cpu([5], stock=9, guarantee=5, held=8)
    stands = HeldAndOwed.of(market, now(market))
    witness = NobodyStarvesWhileLent().owed(stands, 0, 0, *_Starving(stands).of(0, 0))
    assert witness.others == (("cpu:all", (("", 1), ("b", 4))),)
    idle = with_cpu([5], stock=13, guarantee=5, held=8)
    stands = HeldAndOwed.of(idle, now(idle))
    assert NobodyStarvesWhileLent().owed(stands, 0, 0, *_Starving(stands).of(0, 0)).others == ()


def test_a_group_lends_no_more_than_its_members_and_a_member_gets_it_once() -> None:
    """b holds no more than its own guarantee, though its group does; of the 2 that b holds too much a is to get 4."""
    kept: Any = {"group": {"b": "g"}, "guarantee": {"b": [5], "g": [3], "c": [2]}}
    assert agreed(one_type(5, {"b": 5, "c": 0}, {"c": 2}, **kept)).holds
    once: Any = {"group": {"a": "g", "b": "g"}, "guarantee": {"a": [4], "b": [2], "g": [2]}}
    assert agreed(one_type(4, {"a": 0, "b": 4}, {"a": 4}, **once)).holds


def test_half_a_gpu_that_is_taken_away_is_owed() -> None:
    market = one_type(4, {"a": 2, "b": 2}, {}, guarantee={"a": [2]})
    assert agreed(market, np.array([[Fraction(3, 2)], [Fraction(5, 2)]], dtype=object)).margin == -Fraction(1, 2)


def test_of_the_second_good_all_that_waits_is_counted() -> None:
    """a waits for 6 CPUs, which b has to give back, and for a GPU with one more, which b keeps."""
    users, goods = ["a", "b"], {Good("air", "all"): 1, Good("cpu", "all"): 8}
    gangs = Gangs.of(
        [*"aab"], [0, 1, 1], users=users, types=["H100"], on=[None, None, "H100"], other={"cpu": [6, 1, 8]}
    )
    guarantee = {"a": {"cpu:all": 6}, "b": {"H100": 1}}
    owed = Entitlements.of(users, ["H100"], goods=goods, guarantee=guarantee, gangs=gangs)
    verdict = agreed(Market.of([[1]] * 2, [1], users=users, types=["H100"], entitlements=owed))
    assert verdict.margin == -6


def starved(amount: int, gangs: tuple[Any, ...] = (), sources: tuple[Any, ...] = ()) -> SlackCase:
    """Return the case of a, which is owed so many H100."""
    shown = {"user": "a", "type": "H100", "amount": amount, "gangs": gangs, "sources": sources, "others": ()}
    return NobodyStarvesWhileLent().case(-amount, 1, **shown)


def test_gangs_that_have_some_of_their_gpus_are_run_and_others_started() -> None:
    gangs = (("g1", 4, "H100"), ("g2", 2, "A100"), ("g3", 2, "T4"))
    said = {amount: str(starved(amount, gangs, (("b", 4),))) for amount in (3, 4, 5)}
    assert {amount: words.partition(" ")[0] for amount, words in said.items()} == {3: "run", 4: "start", 5: "run"}


def owed_of(market: Market, column: int) -> Any:
    """Return how much more of a column the first user is owed."""
    return _Starving(HeldAndOwed.of(market, now(market))).of(0, column)[0]


def test_gangs_that_wait_for_cpus_get_no_more_gpus_than_there_are() -> None:
    assert owed_of(with_cpu([1] * 5, stock=5, guarantee=5, held=5), 1) == 4  # of 2 GPUs each, and 8 can be had
    users, types = ["a", "b"], ["T1", "T2"]
    gangs = Gangs.of(
        [*"aaabb"], [1] * 5, users=users, types=types, on=[None] * 3 + types, other={"cpu": [1, 1, 1, 3, 0]}
    )
    guarantee = {"a": {"T1": 1, "T2": 1, "cpu:all": 3}}
    owed = Entitlements.of(users, types, goods={Good("cpu", "all"): 3}, guarantee=guarantee, gangs=gangs)
    market = Market.of([[1, 1]] * 2, [1, 1], users=users, types=types, entitlements=owed)
    assert [owed_of(market, column) for column in range(3)] == [1, 1, 2]


def test_in_floats_a_gang_gets_the_last_gpu_and_the_last_cpu() -> None:
    market = with_cpu([5, 0, 0, 0], stock=5, guarantee=0, held=0)
    assert owed_of(market, 0) == owed_of(market.as_(float), 0) == 8


def test_who_holds_some_and_can_have_no_whole_gang_is_owed_nothing() -> None:
    assert owed_of(one_type(6, {"a": 1, "b": 5}, {"a": 4}, guarantee={"a": [4]}), 0) == 0
    assert owed_of(one_type(2, {"a": 1, "b": 1}, {"a": 4}, guarantee={"a": [2], "b": [1]}), 0) == 0


def test_one_gpu_is_enough_to_starve() -> None:
    market = gangs_of([1], free=0, lent=2, guarantee=1)
    assert starved(1).refutes(market, now(market))


def test_gangs_of_a_user_are_chosen_as_of_all_choices_the_best() -> None:
    random = np.random.default_rng(3)
    for _ in range(150):
        sizes, room = random.integers(1, 12, random.integers(0, 9)).tolist(), int(random.integers(0, 40))
        found = Chooser().fullest(sizes, room)
        sums = {sum(each) for m in range(len(sizes) + 1) for each in combinations(sizes, m)}
        assert sum(found) == max(each for each in sums if each <= room)
        assert not Counter(found) - Counter(sizes)
        over = Fraction(int(random.integers(1, 80)), 2)
        assert standing.fits_between(sizes, over, Fraction(room)) == any(over < each <= room for each in sums)


def test_gangs_that_take_just_so_much_do_not_take_more() -> None:
    assert not standing.fits_between([2], Fraction(2), Fraction(3))
    assert standing.fits_between([2, 1], Fraction(2), Fraction(3))


def test_gangs_are_chosen_within_several_bounds_as_of_all_choices_the_best() -> None:
    random = np.random.default_rng(4)
    for _ in range(60):
        rooms = tuple(random.integers(4, 14, 3).tolist())
        kinds: Counter[Any] = Counter()
        for _ in range(5):
            takes = random.integers([[1, 0, 0]], [[4, 4, 4]], (int(random.integers(1, 3)), 3))
            kinds[tuple(map(tuple, takes.tolist()))] += int(random.integers(1, 3))
        chooser, gangs = Chooser(), [ways for ways, count in kinds.items() for _ in range(count)]
        sums = {(0, 0, 0)}
        for ways in gangs:
            more = {tuple(map(add, have, takes)) for have in sums for takes in ways}
            sums |= {each for each in more if all(map(le, each, rooms))}
        found = chooser.best(kinds, rooms)
        total = [sum(count * ways[way][at] for ways, way, count in found) for at in range(3)]
        used: Counter[Any] = Counter()
        for ways, way, count in found:
            assert 0 <= way < len(ways)
            used[ways] += count
        assert chooser.complete
        assert tuple(total) in sums
        assert used <= kinds
        assert total[0] == max(each[0] for each in sums)


def test_gangs_that_run_on_either_type_are_split_between_them() -> None:
    """A gang of 3 on each of the two types with 3 GPUs: the other gangs of 3 and those of 2 do not fit any more."""
    kinds = {((size, size, 0), (size, 0, size)): count for size, count in ((2, 2), (3, 3))}
    found = Chooser().best(kinds, (6, 3, 3))
    assert sorted((way, ways[way][0], count) for ways, way, count in found) == [(0, 3, 1), (1, 3, 1)]


def test_gangs_of_many_sizes_are_traced_to_their_sum() -> None:
    random = np.random.default_rng(5)
    for _ in range(8):
        sizes = (2 * random.choice(np.arange(8, 60), 14, replace=False)).tolist()
        room, sums = int(sum(sizes) * 0.4), {0}
        for size in sizes:
            sums |= {each + size for each in sums}
        found = Chooser().fullest(sizes, room)
        assert sum(found) == max(each for each in sums if each <= room)
        assert not Counter(found) - Counter(sizes)


def test_bundles_make_every_number_and_are_few() -> None:
    for count in range(20):
        bundles = list(whole_gangs._bundles(count))
        assert {sum(each) for m in range(len(bundles) + 1) for each in combinations(bundles, m)} == set(
            range(count + 1)
        )
        assert len(bundles) == count.bit_length()


def test_work_that_just_suffices_is_enough_and_what_fills_the_room_takes_none() -> None:
    chooser = Chooser(work=5)
    assert [chooser._may(5), chooser._may(1), chooser._may(0)] == [True, False, False]
    full = Chooser(work=0)
    assert [count for *_, count in full.best({((2, 1),): 2}, (4, 9))] == [2]
    assert [count for *_, count in full.best({((2, 1),): 2}, (7, 9))] == [2]
    assert full.fullest([2, 2, 3], 5) == (3, 2)
    assert full.complete


def test_a_gang_without_gpus_is_not_chosen() -> None:
    assert Chooser().fullest([0, 3], 5) == (3,)


def test_where_there_are_too_many_ways_some_are_found_and_said_not_to_be_all() -> None:
    sizes = [6 * each for each in range(1, 60)]
    small = Chooser(work=10**4)
    assert 990 <= sum(small.fullest([*sizes, 997], 999)) <= 999
    assert not small.complete
    large = Chooser()
    assert sum(large.fullest([3] * 400_000, 10**6)) == 999_999  # by threes, there is no more
    assert large.complete
    assert sum(large.fullest([2**20 * 5, 2**20 * 7, 2**25 - 1], 2**25 + 2)) == 2**25 - 1
    assert not large.complete
    some = Chooser(work=1).best({((2, each),): 3 for each in range(1, 5)}, (11, 9))
    assert sum(ways[way][0] * count for ways, way, count in some) == 10


def test_work_that_is_used_up_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nobody_starves_while_lent, "Chooser", lambda: Chooser(work=1))
    asked, market = NobodyStarvesWhileLent(), gangs_of([7, 4, 4], free=0, lent=9, guarantee=9)
    verdict = asked.check(market, now(market))
    assert (verdict.margin, verdict.holds) == (-7, False)
    assert "more may starve" in verdict.effort
    half = asked.check(market, [[7], [1], [1]])
    assert (half.answer, half.reason) == (
        Answer.UNDECIDED,
        "there are too many ways to choose among the gangs that wait",
    )


def test_a_statement_that_takes_too_long_to_decide_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, market = NobodyStarvesWhileLent(), gangs_of([7, 4, 4], free=0, lent=9, guarantee=9)
    shares = np.array([[7], [1], [1]], dtype=object) * Fraction(1)
    verdict = asked.check(market, shares)
    assert (verdict.margin, verdict.holds) == (-1, False)  # 4 and 4 are more than 7
    told = asked.certify(market, shares, verdict).to_json()
    assert proved(told)
    monkeypatch.setattr(standing, "MOST_SUMS", 20)
    with pytest.raises(Rejected, match="GPUs for which gangs are chosen"):
        proved(told)


def test_any_part_is_owed_where_nobody_says_who_asks() -> None:
    owed = Entitlements.of(["a", "b"], ["H100"], guarantee={"a": [4]})
    market = Market.of([[1]] * 2, [8], users=["a", "b"], types=["H100"], demand=[3, 9], entitlements=owed)
    assert [agreed(market, np.array([[a], [8 - a]]) * Fraction(1, 2)).margin for a in (0, 1)] == [-3, Fraction(-5, 2)]
    assert agreed(market, np.array([[3], [5]]) * Fraction(1)).holds


def test_the_verifier_decides_who_starves_as_the_property_does() -> None:
    answers = set()
    for market in entitled_markets(12, seed=6):
        told, held = stated(market), now(market)
        if NobodyStarvesWhileLent().asked_of(market):
            for shares in (held,) if told.goods else (held, held[::-1].copy(), held * Fraction(2, 3)):
                answers.add(agreed(market, shares).answer)
    assert answers == {Answer.HOLDS, Answer.FAILS}
