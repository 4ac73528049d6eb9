"""Certificates of what a policy decides on a market, and of how far its choice among optima reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import gcd, inf, lcm, prod
from typing import Any

from .entitled import read_entitled
from .faces import best
from .market import ONE, ZERO, Market, Table, dot, read_market, read_table, table_shown
from .programs import (
    PROGRAMS,
    SENSES,
    Row,
    entitle,
    point_of,
    policy_shown,
    read_duals,
    read_point,
    read_program,
    rising,
    shares_shown,
    sharing,
    sharing_with,
    throughput,
)
from .reading import Budget, Entry, Rejected, Unreadable, brief, require, shown, summed
from .standing import SAID, cap_kept, guarantee_kept
from .statements import Decision, Range, read_allocation, require_bound, require_feasible
from .trading import trades_due

#: Parts that are roots are rounded down to a multiple of this.
GRAIN = Fraction(1, 10**12)
#: Users and types among which trades are looked for.
MOST_PAIRS = 2 * 10**8
#: Weights are powers; higher ones would make numbers of millions of digits.
MOST_POWER = 64
#: Squares of the bits of products of powers, together: more would take minutes.
MOST_STEPS = 2**44


# -- policies that are programs ----------------------------------------------------------------------------
def optimality(data: Entry) -> Decision:
    """The allocation is an optimum of the policy's program: feasible, and duals have the same objective."""
    told = data.fields("market policy allocation value duals", "variables")
    market, shares = read_allocation(told)
    policy = told["policy"].choice(PROGRAMS)
    program = PROGRAMS[policy](market)
    best = program.optimum(point_of(shares, told["variables"]), read_duals(told["duals"]))
    if best != told["value"].number():
        raise Rejected("the value is not the point's")
    said = f"the allocation is optimal for {policy_shown(policy, market)}, objective {shown(best)}"
    return Decision(said, market, shares, policy=policy, optima=program.keeping(best))


def equal_time(market: Market, i: int) -> Fraction:
    """Return what user i's part of every type is worth to it, whatever it demands."""
    return replace(market, demand=[inf] * len(market.users)).equal_share(i)


def isolated(market: Market, i: int) -> Fraction:
    """Return what user i's part of every type is worth to it, all of them scaled down to its demand."""
    part = summed(market.capacity) * market.weight[i] / market.weights
    return equal_time(market, i) * Fraction(min(ONE, market.demand[i] / part))


#: What a ratio is to: a throughput, by Gavel's normalisers.
NORMALISERS: dict[str, Callable[[Market, int], Fraction]] = {
    "own-partition": Market.equal_share,
    "equal-time": equal_time,
    "isolated": isolated,
}


def levels(data: Entry) -> Decision:
    """Water filling: in each round the least ratio is the largest possible, and duals show who is held down.

    A dual that is not zero says that the user's row is tight at every optimum of the round. Ratios rise alike
    from 0; or, where rates are told, as fast as these, and are then to what a unit of weight is worth.
    """
    told = data.fields("market allocation rounds", "normaliser owed rates")
    market = read_whole(told["market"])
    shares, owed, users = read_table(told["allocation"], market), market.entitled, range(len(market.users))
    require_feasible(market, shares)  # as the rows of every round do
    program, notes = sharing(market), [AT_STATED] * bool(market.bounds)
    require((owed is None) == (told["owed"].value is None), "owed", "it is what entitlements make of groups")
    if owed:
        require_entitled(market, shares)
        notes.append(entitle(program, market, owed, told["owed"]))
    rated = told["rates"].value is not None
    by = told["normaliser"]
    named = "own-partition" if by.value is None else by.choice(NORMALISERS)
    fair = [NORMALISERS[named](market, i) for i in users]
    if rated:  # for each unit of weight: the rates have the weights
        fair = [fair[i] * market.weights / len(users) / market.weight[i] for i in users]
    rounds, had, fixed = told["rounds"].items(), [ZERO] * len(users), set[int]()
    rates = [row.numbers(len(users)) for row in told["rates"].items(len(rounds))] if rated else []
    notes += [f"the rates are, in each round, {table_shown(rates)}"] if rates else []
    for at, this in enumerate(entry.fields("level fixed duals") for entry in rounds):
        level, duals = this["level"].number(), read_duals(this["duals"])
        rate = rates[at] if rated else [ZERO if i in fixed else ONE for i in users]
        x = point_of(shares, this.of({"least_ratio": this["level"].value}, ""))
        rising(program, market, fair, had, rate).optimum(x, duals)
        new = {name.position(market.users) for name in this["fixed"].items()}
        held_down = {key[1] for key, y in duals.items() if key[0] == "least_ratio" and y and rate[key[1]]}
        if not new or not new <= held_down - fixed or min(rate) < 0 or any(rate[i] for i in fixed):
            raise Rejected("a round fixes nobody, somebody twice, or whom no dual holds down")
        rises = enumerate(zip(had, rate, strict=True))
        had = [a + b * level if rated or i in new else a for i, (a, b) in rises]
        fixed |= new
    if len(fixed) < len(users):
        raise Rejected("somebody is never fixed")
    name = "hierarchical-water-filling at rates that are told" if rated else "water-filling"
    name += (" with entitlements" if owed else "") + ("" if named == "own-partition" else f", {named}")
    said = f"ratios to {'own partitions' if named == 'own-partition' else f'{named} throughputs'} "
    said += "rise as far as they can" if rated else "are lexicographically max-min"
    for i in users:
        program.rows["levels", i] = Row(throughput(market, i), had[i] * fair[i], inf)
    only_here = repr([told[key].value for key in ("rates", "owed")]) if rated or owed else ""
    said += f", as {name} makes them"
    return Decision(said, market, shares, "; ".join(notes), policy=name, optima=program, told=only_here)


def read_whole(entry: Entry) -> Market:
    """Return a market with its entitlements, and with the bounds of speedups that are not known."""
    market, place = read_market(entry, whole=True), f"{entry.place}, entitlements"
    owed = read_entitled(entry.of(entry.value.get("entitlements"), place), market.users, market.types)
    return replace(market, entitled=owed)


def require_entitled(market: Market, shares: Table) -> None:
    """Reject shares that break a cap or a guarantee of GPUs; users ask for demands, whatever they hold."""
    if market.entitled is None:
        return
    numbers = [[ZERO if most == inf else most for most in row] for row in market.entitled.guarantee]
    none = [[ZERO for _ in row] for row in shares]
    owed = replace(market.entitled, guarantee=numbers, held=none, fixed=none, pending=[])
    market = replace(market, entitled=owed)  # a guarantee without bound is no number
    for says, keeps in (("caps", cap_kept), ("guarantees", guarantee_kept)):
        if SAID[says](market, owed) and not keeps(market, shares):
            raise Rejected(f"the allocation breaks {says}")


#: What is proved from the market besides, and what a program of somebody else leaves open.
OF_MARKETS = ("water-filling", "nash-welfare", "partial-allocation", "oef-efficient")


AT_STATED = "by the speedups that are stated, not at all within the bounds"
NOT_DECIDED = "whether it is the policy's program is not decided here"
AS_TOLD = "rates, floors of groups and lent GPUs are as told; whether the policy's is not decided here"


def on_both(before: Decision, after: Decision) -> tuple[str, str]:
    """Return how a statement on a truth and a lie begins, and what is not decided."""
    both = f"on the truth {before.embedded or before.note}; on the misreport {after.embedded or after.note}"
    if before.embedded:
        by = f"by the two embedded programs, which the author of {before.named} wrote, "
        return by, f"{NOT_DECIDED}; {both}"
    if before.told:
        return "by what each of the two decisions tells, ", f"{AS_TOLD}; {both}"
    return "", AT_STATED if before.subject.bounds else ""


def embedded(data: Entry) -> Decision:
    """The program that a policy's author wrote has this optimum, and some of its variables are the shares.

    Whether the program is the policy's is not decided: the verifier cannot make it from the market.
    """
    told = data.fields("program point value bound gap duals market policy shares")
    market, program = read_whole(told["market"]), read_program(told["program"])
    x = read_point(told["point"], program)
    best = program.sign * program.optimum(x, read_duals(told["duals"]))
    require_bound(best, best, told)
    places = [row.items(len(market.types)) for row in told["shares"].items(len(market.users))]
    for key in (("x", each.integer()) for row in places for each in row):
        if key not in x:
            raise Rejected(f"the program has no variable {key[1]}")
    shares = [[x["x", each.value] for each in row] for row in places]
    require_feasible(market, shares)
    require_entitled(market, shares)
    policy = told["policy"].name()
    if policy in (*PROGRAMS, *TRADING, *OF_MARKETS):
        raise Rejected(f"decisions of {policy} are proved from the market, not by a program that is given")
    said = f"the embedded program, which the author of {policy!r} wrote, has this optimum"
    said += f": objective {shown(best)}"
    return Decision(said, market, shares, f"{NOT_DECIDED}; {program}", policy=policy, embedded=str(program))


# -- policies that are markets -----------------------------------------------------------------------------
def equilibrium(data: Entry) -> Decision:
    """Nash welfare: an equilibrium, see `_bundles`."""
    told = data.fields("market allocation prices", "demand_duals")
    market = read_market(told["market"])
    shares = _bundles(told, market, read_demand_duals(told["demand_duals"], market))
    optima = sharing_with(market, "utilities", dict(enumerate(market.worths(shares))))
    said = "the allocation maximises Nash welfare"
    return Decision(said, market, shares, policy="nash-welfare", optima=optima)


def read_demand_duals(entry: Entry, market: Market) -> list[Fraction]:
    """Return what each user pays for a right to one more GPU: nothing where it demands no limited number."""
    demand_duals = [ZERO] * len(market.users) if entry.value is None else entry.numbers(len(market.users))
    if min(demand_duals) < 0 or any(
        demand_dual and most == inf for demand_dual, most in zip(demand_duals, market.demand, strict=True)
    ):
        raise Rejected("a demand dual is negative, or one of who has no demand")
    return demand_duals


def _bundles(told: Entry, market: Market, demand_duals: list[Fraction] | None = None) -> Table:
    """Return an allocation; reject it unless everybody holds its best buys, its weight being its budget.

    This is Eisenberg-Gale: what a user's weight is worth at the margin, weight * speedup / throughput, is the
    price and demand dual of what it holds and no more than of the rest. What is left over costs nothing,
    and who has a demand dual holds all that it demands.
    """
    shares, prices = read_table(told["allocation"], market), told["prices"].numbers(len(market.types))
    require_feasible(market, shares)
    if min(prices) < 0 or dot(prices, market.left_over(shares)):
        raise Rejected("a price is negative, or one of what is left over")
    for i, bundle in enumerate(shares):
        own, name = dot(market.speedup[i], bundle), f"{market.users[i]!r}"
        if not own or summed(bundle) > market.demand[i]:
            raise Rejected(f"{name} gets nothing, or more than it demands")
        demand_dual = demand_duals[i] if demand_duals else ZERO
        if demand_dual and summed(bundle) < market.demand[i]:
            raise Rejected(f"{name} has a demand dual, and gets less than it demands")
        for speed, share, price in zip(market.speedup[i], bundle, prices, strict=True):
            worth, cost = market.weight[i] * speed, own * (price + demand_dual)
            if worth > cost or (share and worth < cost):
                raise Rejected(f"{name} has better buys")
            if share and not speed:
                raise Rejected(f"{name} holds a type that it cannot run on")
    return shares


def partial(data: Entry) -> Decision:
    """Cole, Gkatzelis and Goel: each keeps the part of its bundle that its presence costs the others."""
    told = data.fields("market allocation kept together apart")
    market, shares = read_allocation(told)
    part, power = told["kept"].numbers(len(shares)), powers_of(market.weight)
    whole = _bundles(told["together"].fields("allocation prices"), market)
    before = market.worths(whole)
    for i, apart in enumerate(told["apart"].items(len(shares))):
        # a user alone costs nobody anything
        without = market.without(i)
        rest = _bundles(apart.fields("allocation prices"), without) if without.users else []
        others = zip(before[:i] + before[i + 1 :], without.worths(rest), strict=True)
        ratio = product([now / then for now, then in others], power[:i] + power[i + 1 :], data.budget)
        if not (part[i] > 0 and part[i] ** power[i] <= ratio < (part[i] + GRAIN) ** power[i]):
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


def product(of: list[Fraction], powers: list[int], budget: Budget) -> Fraction:
    """Return a product of powers."""
    bits = sum(max(x.numerator, x.denominator).bit_length() * p for x, p in zip(of, powers, strict=True))
    budget.spend(bits**2, MOST_STEPS, "a product of powers", "steps")
    return prod((x**p for x, p in zip(of, powers, strict=True)), start=ONE)


# -- policies that are procedures --------------------------------------------------------------------------
TRADING = ("equal-split", "second-price-trading")
TRADE = "buyer seller fast slow price fast_amount slow_amount"


def trace(data: Entry) -> Decision:
    """Second-price trading: all trades that are due, and no others. Without trades: the equal split."""
    told = data.fields("market allocation", "trades")
    market, shares = read_allocation(told)
    held, traded = market.equal_split(), told["trades"].value is not None
    if traded:
        pairs = (len(market.users) * len(market.types)) ** 2
        data.budget.spend(pairs, MOST_PAIRS, "trades", "pairs of users and of types")
        _replay(told["trades"].items(), trades_due(market, held))
    if shares != held:
        raise Rejected("the trades that are told lead elsewhere")
    policy = TRADING[traded]
    return Decision(f"the allocation is that of {policy}", market, held, policy=policy, ties=False)


def _replay(told: list[Entry], due: Iterator[list[Any]]) -> None:
    """Refuse trades that are not those that are due; `trades_due` carries each of them out."""
    at = 0
    for trade in due:
        if at == len(told):
            raise Rejected(f"a trade that is due is missing: {' '.join(map(str, trade[:2]))}")
        entry = told[at].fields(TRADE)
        *words, price, fast, slow = (entry[key] for key in TRADE.split())
        if [*(each.value for each in words), price.number(), fast.number(), slow.number()] != trade:
            raise Rejected(f"trade {at} is not the one that is due")
        at += 1
    if at < len(told):
        raise Rejected("a trade is told that is not due")


# -- ranges over optima ------------------------------------------------------------------------------------
EXTREME = "of sense weights allocation value duals"


def extreme(data: Entry) -> Decision:
    """Over all optima of a decision, a sum of weights times shares goes to the value, and no further."""
    told = data.fields(EXTREME, "variables")
    if rule_of(told["of"])[0] is extreme:  # before any of them is decided
        raise Rejected("a range leaves no choice over which a range is certified")
    found, sense = decided(told["of"]), told["sense"].choice(SENSES)
    if found.optima is None:
        raise Rejected(f"{found.named} leaves no choice over which a range is certified")
    market, program = found.subject, found.optima
    sign, most = (1, "maximum") if sense == "maximize" else (-1, "minimum")
    weights, shares = (read_table(told[key], market) for key in ("weights", "allocation"))
    for i, row in enumerate(weights):
        program.cost |= {("share", i, j): sign * weight for j, weight in enumerate(row)}
    value = sign * program.optimum(point_of(shares, told["variables"]), read_duals(told["duals"]))
    if value != told["value"].number():
        raise Rejected("the value is not the point's")
    said = f"over all optima of {found.named}, the {most} of {shares_shown(weights, market)}"
    said += f" is {shown(value)}"
    reach = Range(sense, weights, value)
    return replace(found, statement=said, allocation=None, optima=program, range=reach)


#: Decisions by the word in the certificate; each of them may stand inside of other certificates.
DECISIONS: dict[str, Callable[[Entry], Decision]] = {
    "optimality": optimality,
    "levels": levels,
    "equilibrium": equilibrium,
    "partial": partial,
    "trace": trace,
    "efficient": best,
    "extreme": extreme,
}


def decided(entry: Entry) -> Decision:
    """Return the decision that a certificate inside of another proves."""
    rule, body = rule_of(entry)
    return rule(body)


def rule_of(entry: Entry) -> tuple[Callable[[Entry], Decision], Entry]:
    """Return what decides a certificate inside of another, and what it says."""
    kind, body = opened(entry)
    if kind == "bound" and "shares" in body.value:
        return embedded, body
    if kind == "bound":
        raise Rejected(f"{entry.place}: a bound on a bare program does not say whose shares it decides")
    if kind not in DECISIONS:
        raise Rejected(f"{entry.place}: {brief(kind)} is no decision")
    return DECISIONS[kind], body


def opened(entry: Entry) -> tuple[str, Entry]:
    """Return the word that says what a certificate states, and the rest of it without its version."""
    data = entry.value
    if type(data) is not dict or "schema" not in data or "certificate" not in data:
        raise Unreadable(f"{entry.place or 'certificate'}: it has no keys schema and certificate")
    entry["schema"].version()
    rest = {key: value for key, value in data.items() if key not in ("schema", "certificate")}
    return entry["certificate"].text(), entry.of(rest, "")


def asked_of(entry: Entry) -> tuple[Market, object, Table]:
    """Return the market that a decision is on, and of a range its sense and weights; nothing is decided."""
    rule, body = rule_of(entry)
    sense, weights = "", None
    if rule is extreme:
        body = body.fields(EXTREME, "variables")
        sense, weights, (_, body) = body["sense"].value, body["weights"], rule_of(body["of"])
    market = read_whole(body.by_name().get("market", body.of(None, "market")))
    return market, sense, read_table(weights, market) if weights else []
