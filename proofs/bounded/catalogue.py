"""All claims that are decided here, with the sizes: quick ones, and those that take a minute or that Z3 gives up on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from fairopt.problem import Market
from fairopt.proofs.bounded import claims as c
from fairopt.proofs.bounded.decisions import BoundedDecision, Negation, decide, decide_all
from fairopt.proofs.bounded.solver import Limits
from fairopt.proofs.bounded.tickets import redistribution
from fairopt.proofs.bounded.trading import hurts_nobody

Size = tuple[int, int]


@dataclass(frozen=True)
class BoundedClaim:
    """``name``, the ``id`` in the ledger of claims, the reading decided in words, and how it is decided for a size.

    ``search`` is the negation for a size, where the claim has no parts. ``proved``: where Z3 gives up and a theorem of
    ``proofs/theorems`` decides, which.
    """

    name: str
    id: str
    says: str
    run: Callable[[int, int, Limits], BoundedDecision]
    quick: tuple[Size, ...]
    slow: tuple[Size, ...] = ()
    search: Callable[[int, int], Negation] | None = None
    proved: Mapping[Size, str] = field(default_factory=dict)


#: That larger reports never pay is proved for all sizes.
OVER_REPORTING = "EqualEfficiency.noncooperative_oef_over_reporting"
#: What the markets of a search have in common; README says what of it is no restriction.
OF_ONE_GPU = "; one GPU of each type, equal weights"
#: Speedups (1, 2, 5), (1, 9, 23), (1, 3, 11) with 3, 2 and 1 GPUs, in units of one GPU of each type.
NOT_FROM_THE_LEFT = Market.of([[1, "4/3", "5/3"], [1, 6, "23/3"], [1, 2, "11/3"]], [1, 1, 1])


def _claim(
    name: str,
    id: str,
    says: str,
    search: Callable[[int, int], Negation],
    quick: str = "",
    slow: str = "",
    known: Market | None = None,
) -> BoundedClaim:
    def searched(n: int, k: int) -> Negation:
        return replace(search(n, k), known=(known,) if known is not None and known.shape == (n, k) else ())

    def run(n: int, k: int, limits: Limits) -> BoundedDecision:
        return decide(name, searched(n, k), limits)

    return BoundedClaim(name, id, f"{says}{OF_ONE_GPU}", run, _sizes(quick), _sizes(slow), searched)


def _sizes(text: str) -> tuple[Size, ...]:
    return tuple((int(n), int(k)) for n, k in (size.split("x") for size in text.split()))


def _pareto() -> list[BoundedClaim]:
    coop = partial(c.pareto_efficiency, c.COOPERATIVE)
    says = "cooperative OEF is Pareto-efficient among all feasible allocations"
    found = []
    for words, text, sizes, slow in (
        ("", "any units", "2x2 2x3 2x4 2x5", "3x2"),
        ("normalised", "speedup 1 on the first type", "2x2 2x3 2x4", "3x2 4x2 3x3"),
        ("normalised rising", "speedup 1 on the first type, rising strictly", "2x2 2x3", "3x2 4x2 3x3"),
    ):
        for every in (True, False):
            name = "-".join(["pareto-coop", *words.split(), "every" if every else "some"])
            which = "every optimum" if every else "some optimum"
            search = partial(coop, assumptions=words, every=every)
            found.append(_claim(name, "oef-thm5.3", f"{says}: {which}; {text}", search, sizes, slow))
    noncoop = partial(c.pareto_efficiency, c.NONCOOPERATIVE)
    says = "non-cooperative OEF is Pareto-efficient: every optimum"
    found.append(
        _claim("pareto-noncoop", "oef-thm5.3", f"{says}; positive speedups", noncoop, "2x2 2x3 2x4 3x2", "4x2 3x3")
    )

    def with_zeros(n: int, k: int, limits: Limits) -> BoundedDecision:
        return decide_all("pareto-noncoop-zeros", c.pareto_with_zeros(c.NONCOOPERATIVE, n, k), limits)

    found.append(
        BoundedClaim("pareto-noncoop-zeros", "oef-thm5.3", f"{says}; zeros allowed{OF_ONE_GPU}", with_zeros, ((2, 2),))
    )
    return found


def _adjacent() -> list[BoundedClaim]:
    readings = {
        "": "any speedups",
        "normalised rising": "speedup 1 on the first type, rising strictly",
        "ordered": "users strictly ordered by their ratios, any units",
        "normalised ordered": "users strictly ordered by their ratios, speedup 1 on the first type",
        "normalised rising ordered": "the same, and speedups rise strictly",
        "normalised tied": "users ordered by their ratios, ties allowed, speedup 1 on the first type",
    }
    found = []
    for mode, short, title in (
        (c.COOPERATIVE, "coop", "cooperative"),
        (c.NONCOOPERATIVE, "noncoop", "non-cooperative"),
    ):
        for words, text in readings.items():
            ordered = "ordered" in words
            if short == "noncoop" and ordered and words != "ordered":
                continue  # follows: it holds in any units
            small = "2x3 2x4" if ordered else "2x3"
            for every in (True, False):
                slow = ""
                if ordered:
                    slow = (
                        "3x3" if every or short == "noncoop" else "3x3 4x3 3x4"
                    )  # what refutes "some" refutes "every"
                name = "-".join([f"adjacent-{short}", *words.split(), "every" if every else "some"])
                says = f"{title} OEF gives adjacent types: {'every' if every else 'some'} optimum; {text}"
                search = partial(c.adjacent_types, mode, assumptions=words, every=every)
                found.append(
                    _claim(name, "oef-thm5.2", says, search, small if ordered or "tied" in words else "2x3", slow)
                )
    return found


def _truth() -> list[BoundedClaim]:
    found = []
    for kind in ("larger", "smaller", "any"):
        for normalised in (True, False):
            units = "normalised" if normalised else "any-units"
            says = f"non-cooperative OEF is strategy-proof against {kind} reports; {units.replace('-', ' ')}"
            search = partial(c.strategy_proofness, c.NONCOOPERATIVE, kind=kind, normalised=normalised)
            quick, slow = ("2x2", "") if kind != "larger" else ("2x2", "2x3 3x2") if normalised else ("", "2x2 2x3 3x2")
            claim = _claim(f"truth-noncoop-{kind}-{units}", "oef-thm5.4", says, search, quick, slow)
            known = OVER_REPORTING if kind == "larger" else ""
            found.append(replace(claim, proved={size: known for size in claim.slow if known}))
    for mode, short, id, title in (
        (c.COOPERATIVE, "coop", "oef-thm3.2", "among envy-free allocations"),
        (c.SHARING_INCENTIVE, "si", "oef-thm3.3", "among sharing-incentive allocations"),
    ):
        says = f"no user surely gains by a larger report where the largest total {title} is taken; normalised"
        search = partial(c.strategy_proofness, mode, kind="larger", normalised=True, exact_fallback=True)
        found.append(_claim(f"truth-{short}-larger-surely", id, says, search, "2x2"))
    return found


def _lemma() -> list[BoundedClaim]:
    found = []
    for mode, short, title in (
        (c.MAX_EFFICIENCY, "max-efficiency", "Eq. (4), no fairness"),
        (c.COOPERATIVE, "coop", "envy-free, Eq. (10)"),
        (c.SHARING_INCENTIVE, "si", "sharing-incentive"),
        (c.NONCOOPERATIVE, "noncoop", "equal, Eq. (9)"),
    ):
        for order, text in (
            ("entries", "least speedup on each type"),
            ("ratios", "least ratio between all neighbours"),
        ):
            says = f"Lemma 3.1, every optimum of the largest total, {title}; slowest user: {text}"
            says += "; speedup 1 on the first type, rising strictly"
            search = partial(c.lemma_3_1, mode, order=order)
            name = f"lemma3.1-{short}-{order}"
            known = NOT_FROM_THE_LEFT if name == "lemma3.1-coop-ratios" else None
            found.append(_claim(name, "oef-lemma3.1", says, search, "2x2 2x3 3x2", "3x3", known))
    return found


def _others() -> list[BoundedClaim]:
    found = []
    says = "max-min is Pareto-efficient: every optimum"
    pareto = partial(c.pareto_efficiency, c.MAX_MIN)
    found.append(_claim("pareto-max-min", "oef-table1", f"{says}; positive speedups", pareto, "2x2", "2x3 3x2 3x3"))
    envy = partial(c.envy_freeness, c.MAX_MIN)
    claim = _claim("envy-max-min", "oef-table1", "max-min is envy-free: every optimum", envy, "2x2 3x2", "2x3")
    found.append(replace(claim, proved={(2, 3): "EqualEfficiency.gavel_two_users_envy_free"}))
    envy = partial(c.envy_freeness, c.NONCOOPERATIVE)
    found.append(_claim("envy-noncoop", "oef-table1", "non-cooperative OEF is envy-free: every optimum", envy, "2x2"))
    for words in ("", "normalised"):
        name = "-".join(["nonzeros-coop", *words.split()])
        says = f"an optimal extreme point of cooperative OEF has at most n + k - 1 non-zeros; {words or 'any units'}"
        search = partial(c.nonzeros, c.COOPERATIVE, assumptions=words)
        found.append(_claim(name, "oef-nonzeros", says, search, "2x2 2x3", "3x2 2x4"))
    trade = "a second-price trade leaves neither side worse off (any state, any number k of types)"

    def run(n: int, k: int, limits: Limits) -> BoundedDecision:
        return hurts_nobody("trading-hurts-nobody", n, limits)

    found.append(BoundedClaim("trading-hurts-nobody", "oef-table1", trade, run, tuple((n, 0) for n in (2, 3, 4, 5))))
    return [*found, _tickets()]


def _tickets() -> BoundedClaim:
    says = (
        "what users with little demand leave is divided among the others: all GPUs are handed out or all demands met, "
        "nobody gets more than it demands, who gets less has as much for a ticket as anybody, tickets are conserved; "
        "any positive tickets, demands and number of GPUs, one type"
    )

    def run(n: int, _: int, limits: Limits) -> BoundedDecision:
        return redistribution("tickets-water-filling", n, limits)

    return BoundedClaim("tickets-water-filling", "gandiva-eq1-3", says, run, ((1, 1), (2, 1), (3, 1)), ((4, 1),))


CLAIMS: tuple[BoundedClaim, ...] = (*_pareto(), *_adjacent(), *_truth(), *_lemma(), *_others())
