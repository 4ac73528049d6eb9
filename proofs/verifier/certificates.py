"""Certificates: a statement about a market or a bare program, and the numbers that prove it.

The verifier rebuilds from the market itself what a policy may do and what it wants, and decides in
fractions whether the numbers prove the statement. It returns what it has checked: that only may be believed.
Here are statements about an allocation, users that gain by a false report, and programs; those about what a
policy decides are in `decisions`.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import inf
from operator import mul, ne
from typing import Any

from . import programs, standing
from .bounds import COMPARED, UNSURE, gain_at_all, in_use, nobody_prefers, pareto_efficiency, within_bounds
from .decisions import DECISIONS, asked_of, decided, embedded, on_both, opened
from .faces import efficient
from .frontier import frontier
from .gangs import gangs
from .market import Market, dot, in_integers, read_market, read_table, row_shown
from .nash import GRAIN, nash_bounds
from .programs import PROGRAMS, SENSES, Point, Program
from .reading import (
    MOST_COMPARED,
    ONE,
    STEPS,
    ZERO,
    Entry,
    Rejected,
    Table,
    Unreadable,
    brief,
    require,
    shown,
    summed,
)
from .statements import Decision, Proved, read_allocation, require_bound, require_feasible

#: Nobody shall take an allocation that is impossible for one that can be had.
IMPOSSIBLE = ", which gives out what is not there"


# -- properties: there is nothing to prove, only to compute ------------------------------------------------
def envy_freeness(market: Market, shares: Table) -> bool:
    """Return whether nobody prefers another's shares, scaled by the two weights, to its own."""
    users, spend = range(len(shares)), market.budget.spend
    spend(len(users) ** 2 * (2 + len(market.types)), 3 * MOST_COMPARED, "envy_freeness", STEPS)
    bundles = [in_integers(bundle, weight) for bundle, weight in zip(shares, market.weight, strict=True)]
    for i, own in enumerate(market.worths(shares)):
        row, scale = in_integers(market.speedup[i], ONE)
        most = own * scale / market.weight[i]
        more = [sum(map(mul, row, of)) * most.denominator > most.numerator * by for of, by in bundles]
        others = [other for other in users if more[other]]  # it gets more there, if it may use all of it
        slow = len(others) if market.demand[i] < inf else 0
        spend(slow * (10 + 2 * len(row)), MOST_COMPARED, "envy_freeness", STEPS)
        envies = (own < market.out_of_shares(shares, i, other) for other in others)
        if others and (market.demand[i] == inf or any(envies)):
            return False
    return True


def work_conservation(market: Market, shares: Table) -> bool:
    """Return whether no GPU is idle that somebody below its demand could run on."""
    used = [market.used(i, bundle) for i, bundle in enumerate(shares)]
    idle = market.left_over(used)
    wants_more = [summed(row) < demand for row, demand in zip(used, market.demand, strict=True)]
    return not any(
        wants_more[i] and there > 0 and speed
        for i, row in enumerate(market.speedup)
        for there, speed in zip(idle, row, strict=True)
    )


def adjacent_types(market: Market, shares: Table) -> bool:
    """Return whether the types that each user holds stand next to each other, types without GPUs left out."""
    there = [j for j, gpus in enumerate(market.capacity) if gpus]
    held = [[place for place, j in enumerate(there) if bundle[j] > 0] for bundle in shares]
    return all(not places or places[-1] - places[0] == len(places) - 1 for places in held)


#: How each property is decided, and what it means that it holds: first those of entitlements.
OF_ENTITLEMENTS: dict[str, tuple[Callable[[Market, Table], bool], str]] = {
    **standing.PROPERTIES,
    "guarantee_incentive": (
        partial(nobody_prefers, "guarantee_incentive"),
        "everybody gets at least what its guarantee (at most all that there is) is worth to it, for what it"
        " asks for",
    ),
    "envy_within_peers": (
        partial(nobody_prefers, "envy_within_peers"),
        "nobody would get more with what another of its group and tier holds beyond its guarantee, scaled by"
        " weights and within the own caps, in the place of what it holds so itself",
    ),
}
PROPERTIES: dict[str, tuple[Callable[[Market, Table], bool], str]] = {
    "feasibility": (
        Market.feasible,
        "no share is negative, no type is given out more often than it is there",
    ),
    "sharing_incentive": (
        partial(nobody_prefers, "sharing_incentive"),
        "everybody gets at least what its weight's part of every type is worth to it",
    ),
    "envy_freeness": (
        envy_freeness,
        "nobody would get more out of another's shares, scaled by the two weights",
    ),
    "work_conservation": (work_conservation, "no GPU is idle that somebody who wants more could run on"),
    "adjacent_types": (adjacent_types, "nobody holds two types, and none of a type between them"),
    "pareto_efficiency": (pareto_efficiency, "no feasible allocation gives nobody less and somebody more"),
    **OF_ENTITLEMENTS,
}


def property_(data: Entry) -> Proved:
    """A property holds or fails by its bare definition."""
    certificate = data.fields("market allocation property answer", "speedups")
    market = read_market(certificate["market"], whole=True)
    shares = read_table(certificate["allocation"], market)
    name = certificate["property"].choice(PROPERTIES)
    if name != "feasibility":
        _require_worth(shares)
    holds, meaning = PROPERTIES[name]
    if market.bounds and name in COMPARED:
        answer = within_bounds(market, shares, name, certificate["speedups"], holds)
    else:
        if name == "work_conservation" and any(in_use(market, i, shares[i]) is None for i in market.bounds):
            raise Rejected(UNSURE)
        require(certificate["speedups"].value is None, "speedups", "they are of no use here")
        answer = "HOLDS" if holds(market, shares) else "FAILS"
        if answer == "FAILS" and name == "pareto_efficiency":
            raise Rejected("that it fails is shown by an allocation that is better")
    if certificate["answer"].value != answer:
        raise Rejected(f"{name} does not get {brief(certificate['answer'].value)}")
    note = f"it means: {meaning}"
    if name == "adjacent_types":
        there = [repr(kind) for kind, gpus in zip(market.types, market.capacity, strict=True) if gpus]
        note += f", in the order {', '.join(there)} (types without GPUs do not count)"
    if name in OF_ENTITLEMENTS and standing.leaves_goods_out(market, shares):
        note += "; of GPUs only, since who would hold the further goods is not told"
    impossible = "" if name == "feasibility" or market.feasible(shares) else IMPOSSIBLE
    said = f"{name} {answer.lower()} for the allocation"
    if answer == "DEPENDS":
        said = f"{name} holds for the allocation at some speedups within the bounds, and fails at others"
    elif market.bounds and name in {*COMPARED, "pareto_efficiency"}:
        said += ", at all speedups within the bounds"
    return Proved(f"{said}{impossible}", market, shares, note)


def _require_worth(shares: Table) -> None:
    if min(map(min, shares)) < 0:
        raise Rejected("what a negative share is worth is not defined")


# -- what is wrong with an allocation, and that nothing is -------------------------------------------------
def envy(data: Entry) -> Proved:
    """One user would get more out of another's shares than out of its own."""
    certificate = data.fields("market allocation user envied")
    market, shares = read_allocation(certificate, feasible=False)
    _require_worth(shares)
    user, other = (certificate[key].position(market.users) for key in ("user", "envied"))
    own, theirs = market.worth(user, shares[user]), market.out_of_shares(shares, user, other)
    if own >= theirs:
        raise Rejected("there is no envy")
    said = f"{market.users[user]!r} gets {shown(own)}, and would get {shown(theirs)} out of the shares of"
    said += f" {market.users[other]!r}{'' if market.feasible(shares) else IMPOSSIBLE}"
    return Proved(said, market, shares, "shares are scaled by the two weights")


def dominance(data: Entry) -> Proved:
    """Another feasible allocation gives nobody less, and somebody more.

    With ``optima``, the most that each user gets at any optimum of a policy: than any such optimum.
    """
    certificate = data.fields("market allocation better", "optima")
    market = read_market(certificate["market"], whole=True)
    shares, better = (read_table(certificate[key], market) for key in ("allocation", "better"))
    require_feasible(market, shares)
    require(market.entitled is None, "market", "what users are entitled to is not supported here")
    if not market.feasible(better):
        raise Rejected("the better allocation is not feasible")
    if certificate["optima"].value is None:
        what, both = "the allocation", zip(shares, better, strict=True)
        worst = [gain_at_all(market, i, *pair) for i, pair in enumerate(both)]
        gains, helps = [least for least, _ in worst], [surely for _, surely in worst]
    else:
        named, most = _most_of_each(certificate["optima"].items(), market)
        what, pairs = f"any optimum of {named}", zip(most, market.worths(better), strict=True)
        gains = [after - before for before, after in pairs]
        helps = [gain > 0 for gain in gains]
    if not (min(gains) >= 0 and any(helps)):
        raise Rejected("somebody loses, or nobody gains")
    who = max(range(len(gains)), key=lambda i: (helps[i], gains[i]))
    said = f"{what} is not Pareto-efficient: {market.users[who]!r} could get {shown(gains[who])} more"
    said += ", or any more, at all speedups within the bounds" if market.bounds else ""
    return Proved(said, market, shares if certificate["optima"].value is None else None)


def _most_of_each(ranges: list[Entry], market: Market) -> tuple[str, list[Fraction]]:
    """Return a policy, and the most that each user gets at any of its optima."""
    needed = Rejected("each user's most at any optimum of one policy, told alike, is needed, in order")
    wanted = ((market, SENSES[0], market.throughput_of(i)) for i in range(len(market.users)))
    if len(ranges) != len(market.users) or any(map(ne, map(asked_of, ranges), wanted)):
        raise needed  # before any of them is decided
    most, policies = list[Fraction](), set[tuple[str, str, str]]()
    for found in map(decided, ranges):  # one at a time: each holds a program
        policies.add((found.named, found.policy, found.stated))
        most += [found.range.value] if found.range else []
    if len(policies) != 1:
        raise needed
    return policies.pop()[0], most


def pareto_weights(data: Entry) -> Proved:
    """The allocation maximises a sum of throughputs with positive weights: nobody can gain without a loser.

    ``prices`` of GPUs, and ``demand_duals`` of a user's right to use one more, bound that sum.
    """
    certificate = data.fields("market allocation weights prices", "demand_duals")
    market, shares = read_allocation(certificate)
    weights, most = programs.priced(certificate, market)
    if dot(weights, market.worths(shares)) != most:
        raise Rejected("prices prove nothing")
    return Proved("the allocation is Pareto-efficient", market, shares)


# -- misreports --------------------------------------------------------------------------------------------
def misreport(data: Entry) -> Proved:
    """A user gains by a misreport; ``truth`` and ``lie`` prove what is decided without it and with it.

    Where they range over all optima, it gains even by the worst after the misreport over the best before it.
    """
    certificate = data.fields("market policy user report gain truth lie")
    market, policy = read_market(certificate["market"], whole=True), certificate["policy"].text()
    i, report = certificate["user"].position(market.users), certificate["report"].numbers(len(market.types))
    if any(low < high for low, high in market.bounds.get(i, [])):
        raise Rejected("what a user gains whose speedups are not known is not decided")
    known = {user: ends for user, ends in market.bounds.items() if user != i}
    reported = replace(market, speedup=[*market.speedup[:i], report, *market.speedup[i + 1 :]], bounds=known)
    on = [asked_of(certificate[key])[0] for key in ("truth", "lie")]
    if on != [market, reported]:  # before any of the two is decided
        raise Rejected("the decisions are not on the truth and on the misreport")
    before, after = decided(certificate["truth"]), decided(certificate["lie"])
    if [(each.subject, each.policy) for each in (before, after)] != [(market, policy), (reported, policy)]:
        raise Rejected("the decisions are not on the truth and on the misreport, or another policy's")
    if bool(before.embedded) != bool(after.embedded) or bool(before.stated) != bool(after.stated):
        raise Rejected("one decision is proved from the market, and the other by what somebody tells")
    gain, how = _gain(market, i, before, after)
    # a gain may be off because the decisions of a policy are rounded
    unsure = GRAIN * market.worth(i, market.capacity) if policy == "partial-allocation" else ZERO
    if reported == market or gain != certificate["gain"].number() or gain <= unsure:
        raise Rejected("the misreport does not gain this, or it is the truth")
    said, note = on_both(before, after)
    said += f"{before.named} rewards {market.users[i]!r} for reporting {row_shown(report)}: "
    return Proved(f"{said}{shown(gain)} more, {how}", market, note=note)


def _gain(market: Market, i: int, before: Decision, after: Decision) -> tuple[Fraction, str]:
    """Return what user i gains by its true speedups, and over which choices among optima that is so."""
    if before.range and after.range:
        own = market.throughput_of(i)
        found = [(each.sense, each.weights) for each in (before.range, after.range)]
        if found != [(sense, own) for sense in SENSES]:
            raise Rejected("the best at any optimum before and the worst after are needed")
        return after.range.value - before.range.value, "whatever optima are chosen"
    if not before.allocation or not after.allocation:
        raise Rejected("one decision ranges over all optima, and the other does not")
    gain = market.worth(i, after.allocation[i]) - market.worth(i, before.allocation[i])
    if before.ties or after.ties:
        return gain, "by the two decisions given; where optima tie, the policy may choose others"
    return gain, "and the policy leaves no choice"


# -- programs ----------------------------------------------------------------------------------------------
def bound(data: Entry) -> Proved:
    """A feasible point of a program, and a bound on all of them; if they meet, the point is optimal."""
    if "shares" in data.value:
        return embedded(data)
    if "program" in data.value:
        certificate = data.fields("program point value bound gap duals")
        program = programs.read_program(certificate["program"])
        x = programs.read_point(certificate["point"], program)
        return Proved(_bound(program, x, certificate, "the program"), program)
    certificate = data.fields("market allocation policy value bound gap duals", "variables")
    market, shares = read_allocation(certificate)
    policy = certificate["policy"].choice(PROGRAMS)
    x = programs.point_of(shares, certificate["variables"])
    said = _bound(PROGRAMS[policy](market), x, certificate, programs.policy_shown(policy, market))
    return Proved(said, market, shares)


def _bound(program: Program, x: Point, certificate: Entry, name: str) -> str:
    duals = programs.read_duals(certificate["duals"])
    value, limit = program.sign * program.value(x), program.sign * program.bound(duals)
    require_bound(value, limit, certificate)
    said = f"a feasible point of {name} has objective {shown(value)}, none is beyond {shown(limit)}"
    return f"{said}: optimal" if limit == value else said


def infeasibility(data: Entry) -> Proved:
    """No point satisfies a bare program, or no feasible allocation gives these users these throughputs."""
    if "program" in data.value:
        certificate = data.fields("program duals")
        program = programs.read_program(certificate["program"])
        _require_contradiction(program, certificate["duals"])
        return Proved("no point satisfies the program", program)
    certificate = data.fields("market at_least duals")
    market, least = read_market(certificate["market"]), dict[int, Fraction]()
    for each in certificate["at_least"].items():
        name, at_least = each.items(2)
        i = name.position(market.users)
        require(i not in least, each.place, f"{name.value!r} stands twice")
        least[i] = at_least.number()
    program = programs.sharing(market)
    program.rows |= programs.floors(market, "at_least", least)
    _require_contradiction(program, certificate["duals"])
    said = " and ".join(f"{market.users[i]!r} {shown(at_least)}" for i, at_least in least.items())
    return Proved(f"no feasible allocation gives {said}", market)


def _require_contradiction(program: Program, duals: Entry) -> None:
    """Refuse multipliers that do not prove 0, made the objective of every point, to be below 0."""
    if replace(program, cost={}, offset=ZERO).bound(programs.read_duals(duals)) >= 0:
        raise Rejected("the multipliers contradict nothing")


#: What decides a certificate, by the word in it.
RULES: dict[str, Callable[[Entry], Proved]] = {
    **DECISIONS,
    "efficient": efficient,
    "nash_bounds": nash_bounds,
    "property": property_,
    "envy": envy,
    "dominance": dominance,
    "pareto_weights": pareto_weights,
    "frontier": frontier,
    "gangs": gangs,
    "misreport": misreport,
    "bound": bound,
    "infeasibility": infeasibility,
}


def recognises(first: Any) -> bool:
    """Return whether a JSON value is meant as a certificate."""
    return type(first) is dict and "certificate" in first


def verify(data: Any) -> str:
    """Return the statement that a certificate proves. Errors: `Rejected` where it proves none."""
    try:
        kind, body = opened(Entry(data))
        if kind in RULES:
            return str(RULES[kind](body))
    except (Unreadable, RecursionError) as error:
        raise Rejected(f"it is not built like a certificate: {error}") from error
    raise Rejected(f"it is not built like a certificate: {brief(kind)} is none of {', '.join(RULES)}")
