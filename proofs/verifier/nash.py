"""Nash welfare where demands or entitlements bind: between which numbers its throughputs lie.

No logarithm is taken. Let c be the least that a unit of throughput costs a user at prices and demand duals.
The sum of c * throughput is at most what all GPUs and all demands cost, for every allocation. For every t,
t - 1 - log t is at least (1 - t)^2 / 2 where t <= 1, and at least (t - 1)^2 / (2 t) where t >= 1. With
t = c * throughput / weight, the weighted sum of t - 1 - log t at an optimum is at most the gap: what all
costs, less all weights, plus each weight times weight / (c * throughput) - 1 at the allocation that is given.
"""

from fractions import Fraction
from math import gcd, inf, lcm, prod

from .market import Market, dot, read_market, read_table, row_shown
from .programs import floors, point_of, read_duals, sharing, throughput
from .reading import ZERO, Budget, Entry, Rejected, Table, shown, summed
from .standing import entitle, require_entitled
from .statements import Decision, Proved, read_allocation, require_feasible

#: Parts that are roots are rounded down to a multiple of this.
GRAIN = Fraction(1, 10**12)
#: Weights are powers; higher ones would make numbers of millions of digits.
MOST_POWER = 64
#: Squares of the bits of products of powers, together: more would take minutes.
MOST_STEPS = 2**44
#: Terms of the gap are rounded up to a part of it, so that sums stay short: together a thousandth.
ROUNDED = 1000


def equilibrium(data: Entry) -> Decision:
    """Nash welfare: an equilibrium, see `_bundles`."""
    certificate = data.fields("market allocation prices", "demand_duals")
    market = read_market(certificate["market"])
    shares = _bundles(certificate, market, read_demand_duals(certificate["demand_duals"], market))
    optima = sharing(market)
    optima.rows |= floors(market, "utilities", dict(enumerate(market.worths(shares))))
    said = "the allocation maximises Nash welfare"
    return Decision(said, market, shares, policy="nash-welfare", optima=optima)


def read_demand_duals(entry: Entry, market: Market) -> list[Fraction]:
    """Return what each user pays for a right to one more GPU: nothing where it demands no limited number."""
    duals = [ZERO] * len(market.users) if entry.value is None else entry.numbers(len(market.users))
    if min(duals) < 0 or any(dual and most == inf for dual, most in zip(duals, market.demand, strict=True)):
        raise Rejected("a demand dual is negative, or one of who has no demand")
    return duals


def _bundles(certificate: Entry, market: Market, duals: list[Fraction] | None = None) -> Table:
    """Return an allocation; reject it unless everybody holds its best buys, its weight being its budget.

    This is Eisenberg-Gale: what a user's weight is worth at the margin, weight * speedup / throughput, is the
    price and demand dual of what it holds and no more than of the rest. What is left over costs nothing,
    and who has a demand dual holds all that it demands.
    """
    shares = read_table(certificate["allocation"], market)
    prices = certificate["prices"].numbers(len(market.types))
    require_feasible(market, shares)
    if min(prices) < 0 or dot(prices, market.left_over(shares)):
        raise Rejected("a price is negative, or one of what is left over")
    for i, bundle in enumerate(shares):
        own, name = dot(market.speedup[i], bundle), f"{market.users[i]!r}"
        if not own or summed(bundle) > market.demand[i]:
            raise Rejected(f"{name} gets nothing, or more than it demands")
        dual = duals[i] if duals else ZERO
        if dual and summed(bundle) < market.demand[i]:
            raise Rejected(f"{name} has a demand dual, and gets less than it demands")
        for speed, share, price in zip(market.speedup[i], bundle, prices, strict=True):
            worth, cost = market.weight[i] * speed, own * (price + dual)
            if worth > cost or (share and worth < cost):
                raise Rejected(f"{name} has better buys")
            if share and not speed:
                raise Rejected(f"{name} holds a type that it cannot run on")
    return shares


def partial(data: Entry) -> Decision:
    """Cole, Gkatzelis and Goel: each keeps the part of its bundle that its presence costs the others."""
    certificate = data.fields("market allocation kept together apart")
    market, shares = read_allocation(certificate)
    part, power = certificate["kept"].numbers(len(shares)), powers_of(market.weight)
    whole = _bundles(certificate["together"].fields("allocation prices"), market)
    before = market.worths(whole)
    for i, apart in enumerate(certificate["apart"].items(len(shares))):
        # a user alone costs nobody anything
        without = market.without(i)
        rest = _bundles(apart.fields("allocation prices"), without) if without.users else []
        others = zip(before[:i] + before[i + 1 :], without.worths(rest), strict=True)
        ratios, powers = [now / then for now, then in others], [*power[:i], *power[i + 1 :], power[i]]
        kept = (at_least_one([*ratios, 1 / each], powers, data.budget) for each in (part[i], part[i] + GRAIN))
        if part[i] <= 0 or [*kept] != [True, False]:
            raise Rejected("a user keeps another part")
        if shares[i] != [part[i] * share for share in whole[i]]:
            raise Rejected(f"{market.users[i]!r} holds another part")
    said = "the allocation is one that partial-allocation may leave, up to 1/10**12 of each bundle"
    return Decision(said, market, shares, policy="partial-allocation")


def powers_of(weights: list[Fraction]) -> list[int]:
    """Return the smallest integers in proportion to the weights."""
    unit = Fraction(gcd(*(w.numerator for w in weights)), lcm(*(w.denominator for w in weights)))
    powers = [int(weight / unit) for weight in weights]
    if max(powers) > MOST_POWER:
        raise Rejected(f"the weights make powers that are too high; the limit is {MOST_POWER}")
    return powers


def at_least_one(of: list[Fraction], powers: list[int], budget: Budget) -> bool:
    """Return whether a product of powers is at least 1, without common divisors, which take seconds."""
    bits = sum(max(x.numerator, x.denominator).bit_length() * p for x, p in zip(of, powers, strict=True))
    budget.spend(bits**2, MOST_STEPS, "a product of powers", "steps")
    tops, bottoms = ([x.numerator for x in of], [x.denominator for x in of])
    return bool(prod(map(pow, tops, powers)) >= prod(map(pow, bottoms, powers)))


# -- bounds ------------------------------------------------------------------------------------------------
def nash_bounds(data: Entry) -> Proved:
    """At every allocation of maximal Nash welfare each throughput lies within its bounds.

    Where there are entitlements, duals of the rows prove what all throughputs cost at most, for any costs.
    """
    free = "costs" not in data.value
    more = "prices demand_duals" if free else "costs duals owed"
    certificate = data.fields(f"market allocation gap lower upper {more}")
    market = read_market(certificate["market"]) if free else read_market(certificate["market"], whole=True)
    shares, users = read_table(certificate["allocation"], market), range(len(market.users))
    require_feasible(market, shares)
    costs, terms, note = (_bought if free else _within)(certificate, market, shares)
    lower, upper = (certificate[key].numbers(len(users)) for key in ("lower", "upper"))
    gap = certificate["gap"].amount(positive=free)
    own = [dot(market.speedup[i], shares[i]) for i in users]
    if not (min(own) > 0 and min(costs) > 0):
        raise Rejected("somebody gets nothing, or pays nothing")
    for i, weight in enumerate(market.weight):
        terms += [weight * (weight / (costs[i] * own[i]) - 1), -weight]
    grain = gap / (ROUNDED * len(terms))
    if (sum(-(-term // grain) for term in terms) * grain if gap else summed(terms)) > gap:
        raise Rejected("prices and demand duals prove a larger gap")
    for i, weight in enumerate(market.weight):
        low, high = costs[i] * lower[i] / weight, costs[i] * upper[i] / weight
        if not (0 <= low <= 1 <= high):
            raise Rejected(f"the bounds of {market.users[i]!r} are on one side of what prices say")
        if weight * (1 - low) ** 2 < 2 * gap or weight * (high - 1) ** 2 < 2 * high * gap:
            raise Rejected(f"the bounds of {market.users[i]!r} are closer than is proved")
    said = "wherever Nash welfare is largest, the throughputs of the users are at least "
    said += f"{row_shown(lower)} and at most {row_shown(upper)}; the sum of weight * log throughput of this"
    said += f" allocation is {'less than' if free else 'at most'} {shown(gap)} below the largest"
    return Proved(said, market, shares, note)


def _bought(certificate: Entry, market: Market, shares: Table) -> tuple[list[Fraction], list[Fraction], str]:
    """Return what a unit of throughput costs, and what all GPUs and demands do by prices and demand duals."""
    users = range(len(market.users))
    prices = certificate["prices"].numbers(len(market.types))
    duals = read_demand_duals(certificate["demand_duals"], market)
    if min(prices) < 0 or any(summed(shares[i]) > market.demand[i] for i in users):
        raise Rejected("a price is negative, or somebody gets more than it demands")
    terms = [price * there for price, there in zip(prices, market.capacity, strict=True)]
    terms += [dual * Fraction(most) for dual, most in zip(duals, market.demand, strict=True) if most != inf]
    kinds = [[*zip(prices, row, market.capacity, strict=True)] for row in market.speedup]
    each = [[(p + dual) / v for p, v, n in row if v and n] for row, dual in zip(kinds, duals, strict=True)]
    return [min(costs) for costs in each], terms, ""


def _within(certificate: Entry, market: Market, shares: Table) -> tuple[list[Fraction], list[Fraction], str]:
    """Return the costs that are told, what all throughputs cost at most, by duals, and what else is told."""
    program, costs = sharing(market), certificate["costs"].numbers(len(market.users))
    if market.entitled is None:
        raise Rejected("there are no entitlements")
    require_entitled(market, shares)
    note = f"within entitlements; {entitle(program, market, market.entitled, certificate['owed'])}"
    for i, cost in enumerate(costs):
        program.cost |= throughput(market, i, factor=cost)
    program.value(point_of(shares, Entry({})))
    return costs, [program.bound(read_duals(certificate["duals"]))], note
