"""Certificates of a trade-off: the most of a goal where a property may fail by epsilon, for every epsilon.

Allocations prove what can be had, and their mixtures what can be had between them. Duals prove what cannot:
epsilon stands alone in its rows, so that their bound is a line over epsilon.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import inf

from . import programs
from .market import MOST_SHOWN, Market, digest_of, dot, read_market, read_table, row_shown
from .nash import at_least_one, powers_of
from .programs import Key, Program, Row, throughput
from .reading import ONE, ZERO, Entry, Rejected, shown, summed
from .statements import Proved

Rows = dict[Key, Row]
HELD = "nobody holds what it cannot use or does not demand"
GAINS = "; gains are over equal shares, and nash_welfare is their geometric mean by weight"
NASH, EFFICIENT = "nash_welfare", "pareto_efficiency"


def _envy(market: Market, fair: list[Fraction], epsilon: Fraction) -> Rows:
    rows = [each for each in programs.oef_cooperative(market).rows.items() if each[0][0] == "envy_free"]
    return {key: row._replace(low=-epsilon * fair[key[1]]) for key, row in rows}


def _sharing(market: Market, fair: list[Fraction], epsilon: Fraction) -> Rows:
    least = {i: (1 - epsilon) * each for i, each in enumerate(fair)}
    return programs.floors(market, "sharing_incentive", least)


def _equality(market: Market, fair: list[Fraction], epsilon: Fraction) -> Rows:
    rows, mean = {}, summed(fair) / market.weights
    for i, weight in enumerate(market.weight):
        over = throughput(market, i) | {("level",): -weight}
        rows["at_least", i], rows["at_most", i] = Row(over, 0, inf), Row(over, -inf, epsilon * weight * mean)
    return rows


GOALS = {"total_efficiency": programs.max_efficiency, "least_gain": programs.max_min, NASH: programs.sharing}
#: The rows of each property, and what an epsilon of 1 is. Efficiency is proved point by point.
RELAXED: dict[str, tuple[Callable[[Market, list[Fraction], Fraction], Rows], str]] = {
    "envy_freeness": (_envy, "the equal share of who envies; all GPUs of the other count"),
    "sharing_incentive": (_sharing, "the user's equal share"),
    "equal_throughput": (_equality, "the mean throughput per weight of equal shares"),
    EFFICIENT: (lambda market, fair, epsilon: {}, "the sum of gains over equal shares"),
}


@dataclass
class Tradeoff:
    """A goal against a property; ``fair`` is what equal shares are worth."""

    market: Market
    fair: list[Fraction]
    goal: str
    name: str

    def program(self, epsilon: Fraction) -> Program:
        """Return the program in which the property fails by epsilon at most."""
        program = GOALS[self.goal](self.market)
        program.rows |= RELAXED[self.name][0](self.market, self.fair, epsilon)
        program.bounds |= {("level",): (-inf, inf)} if self.name == "equal_throughput" else {}
        return program

    def at_least_one(self, of: list[Fraction]) -> bool:
        """Return whether the product of users' numbers, to powers in proportion to weights, is at least 1."""
        return at_least_one(of, powers_of(self.market.weight), self.market.budget)

    def point(self, entry: Entry, efficient: tuple[list[Fraction], Fraction] | None) -> list[Fraction]:
        """Return an epsilon, and a value that an allocation reaches there."""
        epsilon, value = entry["epsilon"].amount(), entry["value"].number()
        shares = read_table(entry["allocation"], self.market)
        reached = self.program(epsilon).value(programs.point_of(shares, entry["variables"])) == value
        own = self.market.worths(shares)
        if self.goal == NASH:  # rounded down
            gains = [gain / share / (value or 1) for gain, share in zip(own, self.fair, strict=True)]
            reached = value == 0 or (value > 0 and self.at_least_one(gains))
        if not reached or (efficient and dot(efficient[0], own) != efficient[1]):
            raise Rejected("a point does not reach its value, or is not efficient")
        return [epsilon, value]

    def line(self, entry: Entry) -> tuple[Fraction, Fraction]:
        """Return constant and slope of a line that nothing is above."""
        constant, slope = entry["constant"].number(), entry["slope"].number()
        for epsilon in (ZERO, ONE):
            program = self.program(epsilon)
            if self.goal == NASH:  # a geometric mean is at most the mean, after factors that do not lower it
                factors = entry["factors"].numbers(len(self.fair))
                if min(factors) <= 0 or not self.at_least_one(factors):
                    raise Rejected("factors are not positive, or their product is below 1")
                for i, weight in enumerate(self.market.weight):
                    rate = weight / self.market.weights * factors[i] / self.fair[i]
                    program.cost |= throughput(self.market, i, factor=rate)
            if program.bound(programs.read_duals(entry["duals"])) != constant + slope * epsilon:
                raise Rejected("the duals do not prove a line")
        return constant, slope


def frontier(data: Entry) -> Proved:
    """The largest goal where a property fails by epsilon at most is on lines between points, up to a gap."""
    certificate = data.fields("market goal property points lines gap", "weights prices demand_duals")
    goal, name = certificate["goal"].choice(GOALS), certificate["property"].choice(RELAXED)
    market, entries = read_market(certificate["market"]), certificate["points"].items()
    fair = [market.equal_share(i) for i in range(len(market.users))]
    tradeoff = Tradeoff(market, fair, goal, name)
    proved = certificate["weights"].value is not None or name == EFFICIENT
    efficient = programs.priced(certificate, market) if proved else None
    entries = [each.fields("epsilon value allocation", "variables") for each in entries]
    points = [tradeoff.point(each, efficient) for each in entries]
    above = certificate["lines"].items(len(points))
    lines = [tradeoff.line(each.fields("constant slope duals", "factors")) for each in above]
    if not points or any(left[0] >= right[0] for left, right in pairwise(points)) or lines[-1][1] > 0:
        raise Rejected("there are no points, they are out of order, or the last line rises")
    spans = [[left, right] for left, right in pairwise(points)] + [points[-1:]]
    gap = max(c + s * e - value for (c, s), span in zip(lines, spans, strict=True) for e, value in span)
    if (points[0][0] and not proved) or gap != certificate["gap"].number():
        raise Rejected("the first point is not at epsilon 0, or the gap is another")
    where = ", ".join(map(row_shown, points)) if len(points) <= MOST_SHOWN else f"points {digest_of(points)}"
    said = f"the largest {goal}{' of Pareto-efficient allocations' if proved else ''} where {name} fails by"
    said += f" epsilon at most is, from epsilon {shown(points[0][0])} on, that of the lines through {where},"
    said += f" and level then{f', or up to {shown(gap)} more' if gap else ''}"
    note = f"points are (epsilon, value); an epsilon of 1 is {RELAXED[name][1]}; {HELD}"
    note += "" if goal == "total_efficiency" else GAINS
    return Proved(said, market, note=note)
