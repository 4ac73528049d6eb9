"""OEF Fig. 7 and 8 on real speedups: how much more two modes of OEF make of a cluster than Gavel and trading do.

``python -m fairopt.proofs.claims.oef.figures`` prints the whole distribution, under every reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from fairopt import allocate
from fairopt.models import CooperativeOEF, EqualSplit, MaxMin, NonCooperativeOEF, SecondPriceTrading
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.claims.oef.printed_range import CUT, PRINTED_HIGH, PRINTED_LOW, most_above_gavel
from fairopt.proofs.claims.oef.tenants import (
    GPUS,
    LARGEST_GAIN,
    SLOWEST_GAIN,
    TENANTS,
    RatioSpread,
    between,
    bounded,
    draw,
    market_of,
    tables,
)
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, extent
from fairopt.proofs.ledger.wording import both, listed, percent, rows

DRAWS, SEED, SEARCHED = 200, 8, 300
#: Gavel's total is above that of cooperative OEF here; found among speedups of three users up to 5.
BELOW = Market.of([[1, 1, 3], [1, 2, 2], [1, 2, 4]], capacity=[1, 1, 1])
#: "20%" and "comparable", as medians; 20% as a number that no market may exceed.
ABOUT, COMPARABLE, PRINTED = (0.15, 0.25), 0.05, Fraction(1, 5)
#: Totals in floats that differ by less, relatively, are the same.
SAME = 1e-6
#: Readings of who may use how many GPUs at once: how many Gavel's tenants may, and how many all others may.
FREE = "nobody bounded"
READINGS: dict[str, tuple[str, str]] = {
    FREE: ("free", "free"),
    "Gavel's tenants bounded by their part of all GPUs": ("part", "free"),
    "Gavel's tenants bounded by one GPU": ("one", "free"),
    "everybody bounded by one GPU": ("one", "one"),
}
#: Readings of "throughput": of all tenants relative to the slowest GPU (Sec. 6.1.4), or to the tenant's own partition.
UNITS = ("on the slowest GPU", "on the own partition")
POLICIES: dict[str, Policy] = {
    "cooperative": CooperativeOEF(),
    "noncooperative": NonCooperativeOEF(),
    "Gavel": MaxMin(),
    "trading": SecondPriceTrading(),
    "equal split": EqualSplit(),
}


#: What both figures lack; public tables show only how much depends on it.
MISSING = "The paper's own numbers need its RTX speedups, which it does not give."


class DrawnTotals(NamedTuple):
    """Totals by (policy, bound, unit), each an array over the draws from one table."""

    table: str
    totals: dict[tuple[str, str, str], Array]

    def above(self, mode: str, baseline: str, reading: str, unit: str) -> Array:
        """Return by how much a mode is above a baseline, relatively, in each draw."""
        gavel, others = READINGS[reading]
        bound = gavel if baseline == "Gavel" else others
        return self.totals[mode, others, unit] / self.totals[baseline, bound, unit] - 1


def fig8(draws: int = DRAWS) -> Finding:
    """Fig. 8: cooperative OEF against Gavel and trading."""
    both_about = [
        (sample.table, reading, unit)
        for sample, reading, unit in product(samples(draws), READINGS, UNITS)
        if all(ABOUT[0] <= median <= ABOUT[1] for median in _medians(sample, "cooperative", reading, unit))
    ]
    searched = SEARCHED * draws // DRAWS
    reach = listed(
        f"{percent(_most_in_printed_range(searched, name), 1)} above {name}" for name in ("Gavel", "trading")
    )
    below = {
        name: np.mean(
            [sample.above("cooperative", name, "nobody bounded", UNITS[0]) < -SAME for sample in samples(draws)]
        )
        for name in ("Gavel", "trading")
    }
    anywhere = (
        "About 20% above both comes out for " + listed(" / ".join(where) for where in both_about)
        if both_about
        else f"In none of {len(samples(draws)) * len(READINGS) * len(UNITS)} combinations of table, bound and unit is "
        f"the median {percent(ABOUT[0], 0)} to {percent(ABOUT[1], 0)} above both"
    )
    proof = theorem("SharingIncentive", "sharing_incentive_above_gavel")
    bound = most_above_gavel(PRINTED_LOW, PRINTED_HIGH, CUT)
    require(bound < PRINTED, f"no total in the printed range is {percent(PRINTED, 0)} above Gavel's")
    under = listed(f"{name} in {percent(part, 1)} of the draws" for name, part in below.items())
    proved = (
        f"No speedups in the printed range, a tenant's RTX 3080 between its 3070 and 3090, bring more than "
        f"{percent(bound, 1)} above Gavel where nobody is bounded (own-above-gavel-range: a proof in words, on top of "
        f"{proof}). So there 'by {percent(PRINTED, 0)}' is false; for speedups outside of it, four of the six models "
        "having none printed, and for bounded shares in Gavel it is not decided."
    )
    return Finding(
        Ruling.QUALIFIED,
        f"{proved} {_instances(draws)} {_by_table(draws, 'cooperative')} "
        f"{_other_readings(draws, 'cooperative')} {anywhere}; the largest totals that {2 * searched} steps of search "
        f"find within the printed range are {reach}. The mode is even below {under}; "
        f"{_may_be_below()}. {MISSING}",
    )


def fig7(draws: int = DRAWS) -> Finding:
    """Fig. 7: non-cooperative OEF against Gavel and trading."""
    comparable = [
        (sample.table, reading, unit)
        for sample, reading, unit in product(samples(draws), READINGS, UNITS)
        if all(abs(median) <= COMPARABLE for median in _medians(sample, "noncooperative", reading, unit))
    ]
    free = {unit: [table for table, reading, of in comparable if (reading, of) == (FREE, unit)] for unit in UNITS}
    where = listed(f"measured {unit} for {listed(names) or 'no table'}" for unit, names in free.items())
    return Finding(
        _ruling(len(comparable)),
        f"{_instances(draws)} {_by_table(draws, 'noncooperative')} Medians are within {percent(COMPARABLE, 0)} of both "
        f"{where}. Sec. 6.1.4 measures on the slowest GPU. {_other_readings(draws, 'noncooperative')} {MISSING}",
    )


def _ruling(agreeing: int) -> Ruling:
    """Return the verdict on a figure whose speedups are not given, from the combinations that agree with it.

    Reproduced where it comes out on every table, in every unit and with every bound; else it depends on the data.
    """
    combinations = len(tables()) * len(READINGS) * len(UNITS)
    return Ruling.REPRODUCED if agreeing == combinations else Ruling.NOT_DECIDABLE_HERE


# -- samples -----------------------------------------------------------------------------------------------------
def samples(draws: int) -> list[DrawnTotals]:
    """Return what all policies make of ``draws`` markets from each table."""
    return [_sample(name, draws) for name in tables()]


@cache
def _sample(table: str, draws: int) -> DrawnTotals:
    random, speedups = np.random.default_rng(SEED), tables()[table]
    rows = [_totals(draw(speedups, random)) for _ in range(draws)]
    return DrawnTotals(table, {key: np.array([row[key] for row in rows]) for key in rows[0]})


def _totals(market: Market) -> dict[tuple[str, str, str], float]:
    n = len(market.users)
    part = Fraction(sum(market.capacity.tolist())) / n
    markets = {"free": market, "part": bounded(market, part), "one": bounded(market, 1)}
    out = {}
    for (name, policy), (bound, instance) in product(POLICIES.items(), markets.items()):
        own = instance.as_(float).utility(allocate(policy, instance).shares.astype(float))
        out[name, bound, UNITS[0]] = float(own.sum())
        out[name, bound, UNITS[1]] = float((own / market.as_(float).fair_utility()).sum())
    return out


def _medians(sample: DrawnTotals, mode: str, reading: str, unit: str) -> list[float]:
    return [float(np.median(sample.above(mode, baseline, reading, unit))) for baseline in ("Gavel", "trading")]


class _Models(NamedTuple):
    """A few models within the printed range, and which of them each tenant has.

    ``fast`` is the 3090's speedup, ``place`` where the 3080 is between 3070 (0) and 3090 (1).
    """

    fast: Array
    place: Array
    who: Array

    @classmethod
    def drawn(cls, random: np.random.Generator) -> _Models:
        models = int(random.integers(2, 7))
        ends = SLOWEST_GAIN, LARGEST_GAIN
        fast = random.choice(ends, models) if random.random() < 0.5 else random.uniform(*ends, models)
        place = random.choice([0, 0.5, 1], models) if random.random() < 0.5 else random.uniform(0, 1, models)
        return cls(fast, place, random.choice(models, TENANTS, p=random.dirichlet(np.full(models, 0.5))))

    def changed(self, random: np.random.Generator) -> _Models:
        """Return the same with one number, or the model of up to five tenants, drawn again."""
        fast, place, who = (part.copy() for part in self)
        one, what = int(random.integers(len(fast))), random.random()
        if what < 0.3:
            fast[one] = random.choice([SLOWEST_GAIN, LARGEST_GAIN, random.uniform(SLOWEST_GAIN, LARGEST_GAIN)])
        elif what < 0.6:
            place[one] = random.choice([0, 1, random.uniform()])
        else:
            who[random.integers(TENANTS, size=int(random.integers(1, 6)))] = one
        return _Models(fast, place, who)

    def above(self, baseline: str) -> float:
        """Return by how much the total of cooperative OEF is above the baseline's, relatively."""
        rows = np.stack([np.ones(len(self.fast)), 1 + self.place * (self.fast - 1), self.fast], axis=1)
        market = market_of(rows[self.who])
        ours, theirs = (
            market.as_(float).utility(allocate(POLICIES[name], market).shares.astype(float)).sum()
            for name in ("cooperative", baseline)
        )
        return float(ours / theirs - 1)


def _most_in_printed_range(markets: int, baseline: str) -> float:
    """Return by how much cooperative OEF exceeds a baseline at most: in the best of some markets, improved as often."""
    random = np.random.default_rng(SEED)
    best, models = max(
        ((each.above(baseline), each) for each in (_Models.drawn(random) for _ in range(markets))),
        key=lambda found: found[0],
    )
    for _ in range(markets):
        other = models.changed(random)
        reached = other.above(baseline)
        if reached >= best:
            best, models = reached, other
    return best


def _may_be_below() -> str:
    """Return an exact market, certified, on which the total of cooperative OEF is not above Gavel's at all."""
    ours, gavel = decide(CooperativeOEF(), BELOW), decide(MaxMin(), BELOW)
    least, _ = extent(MaxMin(), gavel, BELOW.speedup)
    return (
        f"exactly, on speedups {rows(BELOW.speedup)} with one GPU each, cooperative OEF totals "
        f"{both(ours.objective)} and Gavel {both(least)} at {'the least' if least < gavel.utilities.sum() else 'any'} "
        f"of its optima"
        if least > ours.objective
        else f"on speedups {rows(BELOW.speedup)} it is above Gavel"
    )


# -- words -------------------------------------------------------------------------------------------------------
def _instances(draws: int) -> str:
    return (
        f"{draws} draws of {TENANTS} tenants (seed {SEED}) on {GPUS} GPUs of each type, totals in units of the slowest "
        f"GPU, nobody bounded; medians, in brackets quartiles and extremes."
    )


def _by_table(draws: int, mode: str) -> str:
    against = [
        f"{sample.table}: "
        + listed(
            f"{RatioSpread.of(sample.above(mode, baseline, 'nobody bounded', UNITS[0]))} against {baseline}"
            for baseline in ("Gavel", "trading")
        )
        for sample in samples(draws)
    ]
    return "; ".join(against)[:1].upper() + "; ".join(against)[1:] + "."


def _other_readings(draws: int, mode: str) -> str:
    def medians(baseline: str, reading: str, unit: str = UNITS[0]) -> str:
        return between([float(np.median(sample.above(mode, baseline, reading, unit))) for sample in samples(draws)])

    free, part, one, everybody = READINGS
    return (
        f"Other readings, medians over the tables: {medians('Gavel', part)} against Gavel with tenants bounded by "
        f"their part of all GPUs, {medians('Gavel', one)} with one GPU each; with one GPU each for everybody "
        f"{medians('Gavel', everybody)} against Gavel and {medians('trading', everybody)} against trading; "
        f"{medians('equal split', free)} against the equal split; in units of the own partition "
        f"{medians('Gavel', free, UNITS[1])} against Gavel and {medians('trading', free, UNITS[1])} against trading."
    )


def lines(draws: int = DRAWS) -> Iterator[str]:
    """Yield every distribution, one a line."""
    for sample, reading, unit in product(samples(draws), READINGS, UNITS):
        for mode, baseline in product(("cooperative", "noncooperative"), ("Gavel", "trading", "equal split")):
            spread = RatioSpread.of(sample.above(mode, baseline, reading, unit))
            yield f"{sample.table} | {reading} | {unit} | {mode} against {baseline}: {spread}"


if __name__ == "__main__":
    print("\n".join(lines()))
