"""Karma's claims on small instances: all demands, all lies, both ways to break ties; and what its library rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

from fairopt.models.karma.karma import Quantum, Slices, cut, cut_as_published, played, quantum
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import listed

#: More than anybody can spend here.
RICH = 1000
READ = (
    "Of the paper its abstract could be read, and its artifact's code (510cdd94); the exact conditions of its theorems "
    "could not."
)
ALPHAS = (Fraction(0), Fraction(1, 2), Fraction(1))
#: Users, slices of each one's fair share, quanta, and the largest demand: all demands of these are tried.
SMALL = ((2, 1, 3, 2), (3, 1, 2, 2), (2, 2, 2, 3))
#: A demand of each user, for each quantum.
Demands = Sequence[Sequence[int]]


def every(users: int, quanta: int, largest: int) -> Iterator[Demands]:
    """Yield all demands of whole numbers up to ``largest``."""
    yield from product(tuple(product(range(largest + 1), repeat=users)), repeat=quanta)


def in_order(users: int) -> tuple[Fraction, ...]:
    """Return credits that differ by less than a slice: ties go to the first, whatever they want."""
    return tuple(RICH + Fraction(users - user, 100) for user in range(users))


def run(demands: Demands, slices: Slices, credits: Sequence[Fraction | int]) -> list[Quantum]:
    """Return the quanta of users who begin with ``credits`` (n,)."""
    out: list[Quantum] = []
    for wanted in demands:
        out.append(quantum(wanted, out[-1].credits if out else credits, slices))  # type: ignore[arg-type]
    return out


def example() -> Finding:
    """The library's example: 6 slices, alpha 1/2, three users, three quanta."""
    demands = [[4, 1, 1], [0, 3, 0], [2, 2, 5]]
    given = [each.given for each in played(demands, cut_as_published(6, 3, Fraction(1, 2)), RICH)]
    printed = [(4, 1, 1), (0, 3, 0), (1, 1, 4)]
    return Finding(
        Ruling.REPRODUCED if given == printed else Ruling.REFUTED,
        f"Demands (4, 1, 1), (0, 3, 0) and (2, 2, 5) are given {listed(map(str, given))}, which is what the example "
        "program prints (compiled unmodified from 510cdd94 and run). Asked for 20000 random sequences, the compiled "
        "library gives slices and credits as fairopt does on 17128, and on the other 2872 only who wins a tie differs "
        "(60 of them are in tests/models/karma/library.txt).",
    )


def pareto_efficiency() -> Finding:
    """Pareto efficiency in every quantum: nobody wants a slice that is left."""
    count = 0
    for users, fair, quanta, largest in SMALL:
        for alpha, demands in product(ALPHAS[:2], every(users, quanta, largest)):
            slices = cut([fair] * users, alpha)
            count += 1
            for wanted, got in zip(demands, run(demands, slices, in_order(users)), strict=True):
                require(sum(got.given) == min(sum(wanted), users * fair), f"nothing is left of {demands}")
    [poor] = played([[2, 0]], cut([1, 1], Fraction(1)), 0)
    [lost] = played([[7, 7, 7]], cut_as_published(7, 3, Fraction(1, 2)), RICH)
    require(sum(poor.given) == 1, "who has no credits borrows nothing")
    require(sum(lost.given) == 6, "the library gives 6 of 7 slices")
    return Finding(
        Ruling.QUALIFIED,
        f"With credits enough it holds on all {count} small instances ({_sizes()}; alpha 0 and 1/2; all demands). It "
        f"needs credits: with two slices, alpha 1 and no credits at the start, demands (2, 0) are given {poor.given}, "
        f"and one slice is left that user 1 wants (the library begins with 999999999999). The library also needs "
        f"numbers that divide: of 7 slices for 3 users with alpha 1/2, demands (7, 7, 7) are given {lost.given}, "
        f"since shared slices and fair shares are both rounded down (so the compiled library, too). {READ}",
    )


def strategy_proofness() -> Finding:
    """Online strategy-proofness: whether a lie about demands gets a user more that it can use."""
    count = 0
    for users, fair, quanta, largest in SMALL:
        for alpha in ALPHAS:
            for demands in every(users, quanta, largest):
                count += 1
                report = _pays(demands, cut([fair] * users, alpha), in_order(users), largest)
                require(report is None, f"with ties in order no lie pays on {demands}")
    tied, over = [(1, 4, 3)], [(0, 1, 1), (2, 1, 1), (1, 2, 2)]
    halves, shared, same = cut([2, 2, 2], Fraction(1, 2)), cut([1, 1, 1], Fraction(0)), (RICH,) * 3
    known = [(2, 0, 3), (2, 3, 2), (2, 1, 3)]
    return Finding(
        Ruling.QUALIFIED,
        f"With ties broken in a fixed order no reports, even by a user that knows all later demands, get user 1 more "
        f"slices that it can use on any of {count} small instances ({_sizes()}; alpha 0, 1/2 and 1; all demands, all "
        f"reports). The library breaks ties for whoever has the least left to borrow, which can be had by asking for "
        f"less, in the same quantum and without knowing what comes: 6 slices, alpha 1/2, "
        f"{_gain(tied, 1, (3,), halves, same)}. Over several quanta asking for more pays, too: 3 slices, all shared, "
        f"{_gain(over, 1, (1, 2, 2), shared, same)}. The compiled library (510cdd94) gives the same in both. Who "
        f"knows later demands gains in larger instances with fixed ties as well: 3 slices, all shared, "
        f"{_gain(known, 0, (0, 3, 2), shared, in_order(3))}. 'Online' is about "
        f"users who do not know them. {READ}",
    )


def _gain(demands: Demands, user: int, report: Sequence[int], slices: Slices, credits: Sequence[Fraction | int]) -> str:
    """Return what a user gains by a report, in words; it must gain."""
    told = [(*w[:user], r, *w[user + 1 :]) for w, r in zip(demands, report, strict=True)]
    true, lied = (sum(_useful(demands, run(each, slices, credits), user)) for each in (demands, told))
    require(lied > true, f"{report} pays on {demands}")
    return (
        f"demands {listed(map(str, demands))}: user {user + 1} has {true} slices that it can use, and {lied} if it "
        f"reports {listed(map(str, report))}"
    )


def fairness() -> Finding:
    """Optimal fairness: the least total so far is as large as it can be, given what was given before."""
    count = 0
    for users, fair, quanta, largest in SMALL:
        for demands in every(users, quanta, largest):
            count += 1
            require(_unfair(demands, cut([fair] * users, Fraction(0)), in_order(users)) is None, f"fair on {demands}")
    half = next(
        (demands, why) for demands in every(2, 3, 2) if (why := _unfair(demands, cut([1, 1], Fraction(1)), (RICH,) * 2))
    )
    return Finding(
        Ruling.QUALIFIED,
        f"Where nothing is guaranteed (alpha 0 of the paper) it holds on all {count} small instances ({_sizes()}; all "
        "demands): no other way to give a quantum's slices, after the same quanta, makes the least total of a user "
        "larger. Credits are then the same for all but for what each was given, so that the richest is who has had the "
        f"least. Where each user keeps its fair share (alpha 1) it is not: with one slice each and demands {half[0]}, "
        f"{half[1]}. {READ}",
    )


def new_user() -> Finding:
    """The library's comment: a new user begins with average credits across users."""
    slices = cut_as_published(6, 2, Fraction(1, 2))
    quanta = played([[6, 0]] * 5, slices, 10)
    users = quanta[-1].credits
    # what the library's map has under "$public$": its free credits, and shared slices where demand is above supply
    public, before = 0, (10, 10)
    for each in quanta:
        public += slices.free[0]
        wants = min(6 - slices.guaranteed[0], before[0] + slices.free[0])
        supply = slices.guaranteed[1] + slices.shared
        public += slices.shared if supply < wants else max(0, wants - slices.guaranteed[1])
        before = each.credits  # type: ignore[assignment]
    library = (sum(users) + public) // 2
    require(library == 17, "the compiled library gives the new user 17 credits")
    return Finding(
        Ruling.REFUTED,
        "karma_allocator.cpp, add_user: '// Initialize with average credits across users'. Two users with 10 credits "
        f"each, 6 slices, alpha 1/2, demands (6, 0) for five quanta: they have {listed(map(str, users))}, on average "
        f"{sum(users) // 2}; a third begins with {library} (the compiled library, 510cdd94, too). The map of credits "
        f"has an entry '$public$' by then, with {public} credits, which is added to the sum and not to the number of "
        f"users. "
        "With the default of 999999999999 credits it makes no difference that anybody would notice.",
    )


# -- small instances -------------------------------------------------------------------------------------------------
def _sizes() -> str:
    return "; ".join(f"{n} users, {f} slices each, {t} quanta, demands to {d}" for n, f, t, d in SMALL)


def _useful(demands: Demands, quanta: Sequence[Quantum], user: int) -> list[int]:
    return [min(got.given[user], wanted[user]) for got, wanted in zip(quanta, demands, strict=True)]


def _pays(demands: Demands, slices: Slices, credits: Sequence[Fraction | int], largest: int) -> tuple[int, ...] | None:
    """Return reports by which user 1 gets more in total that it can use."""
    before = sum(_useful(demands, run(demands, slices, credits), 0))
    for report in product(range(largest + 1), repeat=len(demands)):
        told = [(r, *w[1:]) for w, r in zip(demands, report, strict=True)]
        if sum(_useful(demands, run(told, slices, credits), 0)) > before:
            return report
    return None


def _unfair(demands: Demands, slices: Slices, credits: Sequence[Fraction | int]) -> str | None:
    """Return a quantum in which another way to give all that is wanted makes the least total larger, in words."""
    users, total = len(credits), slices.shared + sum(slices.guaranteed)
    had = [0] * users
    for number, (wanted, got) in enumerate(zip(demands, run(demands, slices, credits), strict=True), start=1):
        ways = product(*(range(min(each, total) + 1) for each in wanted))
        best = max(
            min(h + g for h, g in zip(had, way, strict=True)) for way in ways if sum(way) == min(sum(wanted), total)
        )
        had = [h + g for h, g in zip(had, got.given, strict=True)]
        if min(had) < best:
            return f"totals after quantum {number} are {tuple(had)}, and the least could be {best}"
    return None
