"""Decide certificates: ``python proofs/verify.py FILE-OR-FOLDER...``. Trusts no solver, and nothing of fairopt.

A certificate is a JSON object: a statement about a market (or a bare program) and the numbers that prove it. This file
rebuilds from the market itself what a policy may do and what it wants, and decides in fractions whether the numbers
prove the statement. It prints what it has checked: that line is what a reader may believe, and only that. Numbers in
JSON are integers or strings "p/q". Exit status: 0 all accepted, 1 something is rejected, 2 something cannot be read.
"""

import json
import re
import sys
from fractions import Fraction
from itertools import permutations
from math import gcd, lcm, prod
from pathlib import Path
from typing import Any, NamedTuple

Key = tuple[Any, ...]
Table = list[list[Fraction]]
INF, NONE, ONE, GRAIN = float("inf"), Fraction(0), Fraction(1), Fraction(1, 10**12)  # roots are rounded to GRAIN


class Rejected(Exception):
    """The certificate does not prove what it states, or states nothing that can be understood."""


def need(holds: bool, otherwise: str) -> bool:
    """Reject the certificate unless ``holds``."""
    if not holds:
        raise Rejected(otherwise)
    return True


def number(value: Any) -> Fraction:
    """Return an integer or a string "p/q" as the fraction that it is."""
    written = str(value) if type(value) in (int, str) else ""
    need(re.fullmatch(r"-?[0-9]+(/0*[1-9][0-9]*)?", written) is not None, f"{value!r:.80} is no number")
    return Fraction(written)


def numbers(values: Any, length: int) -> list[Fraction]:
    """Return a list of ``length`` numbers."""
    need(isinstance(values, list) and len(values) == length, f"{length} numbers are needed, not {values!r:.80}")
    return [number(value) for value in values]


def fields(data: Any, needed: str, optional: str = "") -> list[Any]:
    """Return the values of the needed and optional keys (None where absent); any other key is refused."""
    need(isinstance(data, dict), f"an object is needed, not {data!r:.80}")
    missing, strange = set(needed.split()) - set(data), set(data) - {*needed.split(), *optional.split()}
    need(not missing and not strange, f"missing keys: {sorted(missing)}; unknown keys: {sorted(strange)}")
    return [data.get(key) for key in needed.split() + optional.split()]


class Market(NamedTuple):
    """Users with a weight, a demand (infinity: no limit) and speedups on types of GPUs, of each of which so many."""

    users: list[str]
    types: list[str]
    speedup: Table
    capacity: list[Fraction]
    weight: list[Fraction]
    demand: list[Any]

    def used(self, i: int, bundle: list[Fraction]) -> list[Fraction]:
        """Return what user i runs on of a bundle: its fastest GPUs first, no more of them than it demands."""
        left, runs = self.demand[i], [NONE] * len(bundle)
        for j in sorted(range(len(bundle)), key=lambda j: -self.speedup[i][j]):
            runs[j] = min(bundle[j], left) if self.speedup[i][j] else NONE
            left -= runs[j]
        return runs

    def worth(self, i: int, bundle: list[Fraction]) -> Fraction:
        """Return user i's throughput on a bundle."""
        return sum((s * x for s, x in zip(self.speedup[i], self.used(i, bundle))), NONE)

    def fair(self, i: int) -> Fraction:
        """Return what user i's own partition of the cluster, its weight's part of every type, is worth to it."""
        return self.worth(i, [self.weight[i] / sum(self.weight) * there for there in self.capacity])

    def envied(self, shares: Table, i: int, other: int) -> Fraction:
        """Return what user i would get out of another's shares, scaled by the two weights."""
        return self.worth(i, [self.weight[i] / self.weight[other] * x for x in shares[other]])

    def out_of(self, i: int, holder: int, factor: Fraction = ONE) -> dict[Key, Fraction]:
        """Return the terms, in shares, of ``factor`` times what user i would get out of the shares of ``holder``."""
        return {("share", holder, j): factor * speed for j, speed in enumerate(self.speedup[i]) if speed}

    def of_user(self, i: int) -> Table:
        """Return the weights on shares whose sum is user i's throughput."""
        return [row if other == i else [NONE] * len(row) for other, row in enumerate(self.speedup)]

    def equal_split(self) -> Table:
        """Return what everybody gets: GPUs weight * t up to its demand, t as high as GPUs last, of all types alike."""
        total, left, others, held = sum(self.capacity), sum(self.capacity), sum(self.weight), dict[int, Any]()
        for i in sorted(range(len(self.users)), key=lambda i: self.demand[i] / self.weight[i]):
            held[i] = min(self.demand[i], left * self.weight[i] / others)
            left, others = left - held[i], others - self.weight[i]
        return [[held[i] / total * there for there in self.capacity] for i in range(len(self.users))]

    def overbooked(self, shares: Table) -> bool:
        """Return whether a share is negative or a type given out more often than it is there."""
        return min(map(min, shares)) < 0 or any(sum(c) > most for c, most in zip(zip(*shares), self.capacity))


def table(values: Any, market: Market) -> Table:
    """Return a table of numbers, a row for each user and a column for each type."""
    need(isinstance(values, list) and len(values) == len(market.users), "a row for each user is needed")
    return [numbers(row, len(market.types)) for row in values]


def read_market(data: Any) -> Market:
    """Return the market of an object with the keys of fairopt's market files; one entry a user."""
    schema, types, capacity, entries = fields(data, "schema types capacity user")
    need(type(schema) is int and schema == 1 and type(types) is type(entries) is list, "schema, types or users are odd")
    users = [fields(entry, "name speedup", "weight demand") for entry in entries]
    speedup = [numbers(user[1], len(types)) for user in users]
    weight = [ONE if user[2] is None else number(user[2]) for user in users]
    demand = [INF if user[3] is None else number(user[3]) for user in users]
    market = Market([user[0] for user in users], types, speedup, numbers(capacity, len(types)), weight, demand)
    for names in (market.users, market.types):
        need(all(type(n) is str and n.isprintable() and n.strip() for n in names), "a name cannot be printed")
        need(len(set(names)) == len(names), "a name stands twice")
    need(min(market.capacity) >= 0 and min(map(min, market.speedup)) >= 0, "a capacity or speedup is negative")
    need(min(market.weight) > 0 < min(market.demand), "a weight or demand is not positive")
    need(all(market.fair(i) > 0 for i in range(len(users))), "a user can run nowhere")
    return market


def given(data: Any, needed: str = "", optional: str = "", feasible: bool = True) -> list[Any]:
    """Return the market, the allocation and the other fields of a certificate; the allocation must be feasible."""
    raw, shares, *rest = fields(data, "market allocation " + needed, optional)
    market = read_market(raw)
    allocation = table(shares, market)
    need(not feasible or not market.overbooked(allocation), "the allocation is not feasible")
    return [market, allocation, *rest]


class Program:
    """Maximise cost . x + offset where lower <= row . x <= upper for all rows and low <= x <= high; some x integers."""

    def __init__(self) -> None:
        self.bounds: dict[Key, tuple[Any, Any]] = {}
        self.rows: dict[Key, tuple[dict[Key, Fraction], Any, Any]] = {}
        self.cost: dict[Key, Fraction] = {}
        self.offset, self.integer = NONE, set[Key]()

    def value(self, x: dict[Key, Fraction], *duals: Any) -> Fraction:
        """Return the objective at a feasible ``x``; with ``duals``, which must prove that no ``x`` has a larger one."""
        need(x.keys() == self.bounds.keys(), "the point does not give every variable a value")
        for key, (low, high) in self.bounds.items():
            whole = key not in self.integer or x[key].denominator == 1
            need(low <= x[key] <= high and whole, f"variable {key} is outside of its bounds, or no integer")
        for key, (terms, low, high) in self.rows.items():
            need(low <= sum(rate * x[name] for name, rate in terms.items()) <= high, f"the point breaks row {key}")
        total = self.offset + sum(rate * x[key] for key, rate in self.cost.items())
        need(not duals or self.bound(*duals) == total, "the duals do not prove the point optimal")
        return total

    def bound(self, duals: Any) -> Fraction:
        """Return a number that no feasible point's objective exceeds, for any y with entries [row..., number].

        It is cost.x = (cost - yA).x + y(Ax), with both terms at the most that they are between their bounds.
        """
        y = {tuple(entry[:-1]): number(entry[-1]) for entry in duals}
        need(len(y) == len(duals) and y.keys() <= self.rows.keys(), "a row is not there, or has two duals")
        reduced, most = dict(self.cost), self.offset
        for key, rate in y.items():
            terms, low, high = self.rows[key]
            most += at_most(rate, low, high)
            for name, coefficient in terms.items():
                reduced[name] = reduced.get(name, NONE) - rate * coefficient
        return most + sum(at_most(rate, *self.bounds[name]) for name, rate in reduced.items())


def at_most(rate: Fraction, low: Any, high: Any) -> Fraction:
    """Return the largest ``rate * value`` over low <= value <= high."""
    side = high if rate > 0 else low
    need(not rate or abs(side) != INF, "a dual has the sign of a bound that there is not")
    return rate * side if rate else NONE


def read_program(data: Any) -> tuple[Program, int]:
    """Return a bare program, to be maximised, and its sign; variables are ("x", j), rows ("row", r)."""
    sense, offset, variables, rows = fields(data, "sense offset variables rows")
    p, sign = Program(), {"maximize": 1, "minimize": -1}[sense]
    p.offset = sign * number(offset)
    for j, entry in enumerate(variables):
        cost, low, high, integer = fields(entry, "cost lower upper integer")
        p.bounds["x", j] = (-INF if low is None else number(low), INF if high is None else number(high))
        p.cost["x", j] = sign * number(cost)
        p.integer |= {True: {("x", j)}, False: set()}[integer]
    for r, entry in enumerate(rows):
        terms, low, high = fields(entry, "terms lower upper")
        coefficients = {("x", j): number(rate) for j, rate in terms}
        need(len(coefficients) == len(terms) and coefficients.keys() <= p.bounds.keys(), f"row {r} has a strange term")
        p.rows["row", r] = (coefficients, -INF if low is None else number(low), INF if high is None else number(high))
    return p, sign


def sharing(market: Market) -> Program:
    """Return the program of all feasible allocations: variables ("share", i, j) >= 0, within capacities and demands."""
    p, users, types = Program(), range(len(market.users)), range(len(market.types))
    p.bounds = {("share", i, j): (0, INF if market.speedup[i][j] else 0) for i in users for j in types}
    p.rows = {("capacity", j): ({("share", i, j): ONE for i in users}, -INF, market.capacity[j]) for j in types}
    p.rows |= {("demand", i): ({("share", i, j): ONE for j in types}, -INF, market.demand[i]) for i in users}
    return p


def point(shares: Table, more: Any) -> dict[Key, Fraction]:
    """Return the point of an allocation and of the values of a program's other variables, by name."""
    x = {("share", i, j): share for i, row in enumerate(shares) for j, share in enumerate(row)}
    return x | {(name,): number(value) for name, value in (more or {}).items()}


def program_of(market: Market, policy: Any, fixed: dict[int, Fraction]) -> Program:
    """Return the program of a policy called by name; in water filling, who is ``fixed`` keeps its level."""
    need(policy in ("max-efficiency", "oef-noncooperative", "oef-cooperative", "max-min"), f"policy {policy!r:.80}")
    p, users = sharing(market), range(len(market.users))
    p.cost = {key: rate for i in users for key, rate in market.out_of(i, i).items()}  # OEF Eq. (4): the total
    if policy == "oef-noncooperative":  # OEF Eq. (9): throughput ``level`` per unit of weight for everybody
        p.bounds["level",] = (-INF, INF)
        for i in users:
            p.rows["equal_efficiency", i] = (market.out_of(i, i) | {("level",): -market.weight[i]}, 0, 0)
    if policy == "oef-cooperative":  # OEF Eq. (10): nobody prefers another's shares, scaled by weight, to its own
        for i, other in permutations(users, 2):
            theirs = market.out_of(i, other, -market.weight[i] / market.weight[other])
            p.rows["envy_free", i, other] = (market.out_of(i, i) | theirs, 0, INF)
    if policy == "max-min":  # Gavel Sec. 4.1: the largest ``least_ratio`` of throughput to own partition
        p.bounds["least_ratio",], p.cost = (-INF, INF), {("least_ratio",): ONE}
        for i in users:
            rising = {} if i in fixed else {("least_ratio",): -ONE}
            p.rows["least_ratio", i] = (market.out_of(i, i, 1 / market.fair(i)) | rising, fixed.get(i, NONE), INF)
    return p


class Decided(NamedTuple):
    """What a policy decides, once proved, the program of all its choices, and how far a sum of shares goes in it."""

    market: Market
    policy: str
    allocation: Table
    optima: Any
    statement: str
    range: tuple[str, Table, Fraction] | None = None


def optimality(data: Any) -> Decided:
    """The allocation is an optimum of the policy's program: a feasible point, and duals with the same objective."""
    market, allocation, policy, value, duals, more = given(data, "policy value duals", "variables")
    p = program_of(market, policy, {})
    best = p.value(point(allocation, more), duals)
    need(best == number(value), "the value is not the point's")
    p.rows["optimum",] = (p.cost, best, INF)
    return Decided(market, policy, allocation, p, f"the allocation is optimal for {policy}, objective {best}")


def levels(data: Any) -> Decided:
    """Water filling: round by round the least ratio is the largest possible, and a dual holds down whom it fixes."""
    market, allocation, rounds = given(data, "rounds")
    fixed: dict[int, Fraction] = {}
    for entry in rounds:
        level, names, duals = fields(entry, "level fixed duals")
        program_of(market, "max-min", fixed).value(point(allocation, {"least_ratio": level}), duals)
        new = {market.users.index(name): number(level) for name in names}
        held_down = {entry[1] for entry in duals if entry[0] == "least_ratio" and number(entry[-1])} - fixed.keys()
        need(bool(new) and new.keys() <= held_down, "a round fixes nobody, somebody twice, or whom no dual holds down")
        fixed |= new
    need(len(fixed) == len(market.users), "somebody is never fixed")
    p = sharing(market)
    p.rows |= {("levels", i): (market.out_of(i, i), level * market.fair(i), INF) for i, level in fixed.items()}
    return Decided(market, "water-filling", allocation, p, "ratios to own partitions are lexicographically max-min")


def equilibrium(data: Any) -> Decided:
    """Nash welfare: at these prices, weights being budgets, everybody holds its best buys (Eisenberg and Gale)."""
    market, allocation, prices = given(data, "prices")
    price, optima = numbers(prices, len(market.types)), sharing(market)
    paid_for = [p * (there - sum(held)) for p, held, there in zip(price, zip(*allocation), market.capacity)]
    need(min(price) >= 0 and not any(paid_for), "a price is negative, or one of what is left over")
    for i, (user, row) in enumerate(zip(market.users, allocation)):
        own = sum((s * x for s, x in zip(market.speedup[i], row)), NONE)
        need(own > 0 and sum(row) <= market.demand[i], f"{user} gets nothing, or more than it demands")
        for s, x, p in zip(market.speedup[i], row, price):  # w s / u is what one more GPU is worth at the margin
            need(market.weight[i] * s == own * p if x else market.weight[i] * s <= own * p, f"{user} has better buys")
        optima.rows["utilities", i] = (market.out_of(i, i), own, INF)
    return Decided(market, "nash-welfare", allocation, optima, "the allocation maximises Nash welfare")


def partial(data: Any) -> Decided:
    """Cole, Gkatzelis and Goel: each keeps the part of its bundle that its presence costs the others."""
    market, allocation, kept, together, apart = given(data, "kept together apart")
    raw, n, weights = data["market"], len(market.users), market.weight
    whole, part = equilibrium(together | {"market": raw}).allocation, numbers(kept, n)
    unit = Fraction(gcd(*(w.numerator for w in weights)), lcm(*(w.denominator for w in weights)))
    power = [int(w / unit) for w in weights]
    need(max(power) <= 64, "the weights make powers that are too high")
    for i, without in zip(range(n), apart, strict=True):
        others = [o for o in range(n) if o != i]
        fewer = raw | {"user": [raw["user"][o] for o in others]}
        rest = equilibrium(without | {"market": fewer}).allocation if others else []  # a user alone keeps everything
        ratio = prod((market.worth(o, whole[o]) / market.worth(o, row)) ** power[o] for o, row in zip(others, rest))
        need(part[i] > 0 and part[i] ** power[i] <= ratio < (part[i] + GRAIN) ** power[i], "a user keeps another part")
        need(allocation[i] == [part[i] * x for x in whole[i]], f"{market.users[i]} holds another part")
    return Decided(market, "partial-allocation", allocation, None, "partial-allocation leaves this, to 1/10**12")


def trace(data: Any) -> Decided:
    """Second-price trading: each trade is the one that is due at that point, none is missing; or none at all."""
    market, allocation, trades = given(data, "", "trades")
    held, told = market.equal_split(), iter(trades or [])
    for due in trades_due(market, held) if trades is not None else ():
        *names, price, bought, sold = fields(next(told, None), "buyer seller fast slow price fast_amount slow_amount")
        need([*names, number(price), number(bought), number(sold)] == due, f"a trade is not the one that is due, {due}")
    need(not list(told) and allocation == held, "trades are told that are not due, or lead elsewhere")
    policy = "equal-split" if trades is None else "second-price-trading"
    return Decided(market, policy, held, None, f"the allocation is that of {policy}")


def trades_due(market: Market, held: Table) -> Any:
    """Yield the trades of Gandiva_fair Sec. 3.4 and carry out each on ``held``: fastest type against slowest first."""
    speedup, names = market.speedup, market.users
    whole = [sum(s * there for s, there in zip(row, market.capacity)) for row in speedup]
    mean = [sum(w * s / all_ for w, s, all_ in zip(market.weight, column, whole)) for column in zip(*speedup)]
    order = sorted(range(len(mean)), key=lambda j: (mean[j], j))
    for fast, slow in ((order[a], order[b]) for a in reversed(range(len(order))) for b in range(a)):
        gain: list[Any] = [0 if not row[fast] else row[fast] / row[slow] if row[slow] else INF for row in speedup]
        buyers, sellers = set(range(len(names))), set(range(len(names)))
        while True:  # who gains most by a fast GPU buys of who gains least, at the second highest bid
            bidders = sorted((i for i in buyers if held[i][slow] > 0), key=lambda i: (-gain[i], names[i]))
            owners = sorted((i for i in sellers if held[i][fast] > 0), key=lambda i: (gain[i], names[i]))
            if not bidders or not owners or gain[bidders[0]] <= gain[owners[0]]:
                break
            b, s = bidders[0], owners[0]
            middle = (gain[b] + gain[s]) / 2 if gain[b] < INF else 2 * gain[s] or held[b][slow] / held[s][fast]
            price = max((gain[i] for i in bidders[1:] if gain[s] < gain[i] < INF), default=middle)
            amount = most = min(held[s][fast], held[b][slow] / price)
            for i, each, role in ((s, price - 1, sellers), (b, 1 - price, buyers)):  # each: more GPUs a fast GPU traded
                room: Any = max(market.demand[i] - sum(held[i]), 0) / each if each > 0 else INF
                amount = min(amount, room)
                role -= {i} if room < most else set()
            if amount > 0:
                for i, sign in ((b, 1), (s, -1)):
                    held[i][fast] += sign * amount
                    held[i][slow] -= sign * amount * price
                yield [names[b], names[s], market.types[fast], market.types[slow], price, amount, amount * price]


def extreme(data: Any) -> Decided:
    """Over all optima of a decision, the sum of weights times shares goes up (or down) to the value, and no further."""
    of, sense, weights, shares, told, duals, more = fields(data, "of sense weights allocation value duals", "variables")
    found, sign = proved(of), {"maximize": 1, "minimize": -1}[sense]
    market, weight, p = found.market, table(weights, found.market), found.optima
    p.cost = {("share", i, j): sign * rate for i, row in enumerate(weight) for j, rate in enumerate(row)}
    value = sign * p.value(point(table(shares, market), more), duals)
    need(value == number(told), "the value is not the point's")
    sums = [f"{w} x[{u!r}, {j!r}]" for u, row in zip(market.users, weight) for w, j in zip(row, market.types) if w]
    statement = f"over all optima of {found.policy}, the {sense[:3]}imum of {' + '.join(sums) or 0} is {value}"
    return Decided(market, found.policy, found.allocation, None, statement, (sense, weight, value))


def judged(data: Any) -> str:
    """A property holds or fails by its bare definition: nothing to prove, only to compute."""
    market, shares, name, answer = given(data, "property answer", feasible=False)
    need(name == "feasibility" or min(map(min, shares)) >= 0, "what a negative share is worth is not defined")
    users, columns = range(len(shares)), [j for j, there in enumerate(market.capacity) if there]
    held = [[place for place, j in enumerate(columns) if row[j] > 0] for row in shares]
    used = [market.used(i, row) for i, row in enumerate(shares)]
    idle = [sum(column) < there for column, there in zip(zip(*used), market.capacity)]
    hungry = [i for i in users if sum(used[i]) < market.demand[i]]
    holds = {
        "feasibility": not market.overbooked(shares),
        "sharing_incentive": all(market.worth(i, shares[i]) >= market.fair(i) for i in users),
        "envy_freeness": all(market.worth(i, shares[i]) >= market.envied(shares, i, o) for i in users for o in users),
        "work_conservation": not any(left and market.speedup[i][j] for i in hungry for j, left in enumerate(idle)),
        "adjacent_types": all(not row or row[-1] - row[0] == len(row) - 1 for row in held),
    }
    need(name in holds and answer == ("HOLDS" if holds[name] else "FAILS"), f"{name!r:.80} does not get {answer!r:.80}")
    return f"{name} {'holds' if holds[name] else 'fails'} for the allocation"


def envy(data: Any) -> str:
    """One user would get more out of another's shares than out of its own."""
    market, shares, user, other = given(data, "user envied", feasible=False)
    need(min(map(min, shares)) >= 0, "what a negative share is worth is not defined")
    own, theirs = (market.envied(shares, market.users.index(user), market.users.index(name)) for name in (user, other))
    need(own < theirs, "there is no envy")
    return f"{user!r} gets {own}, and would get {theirs} out of the shares of {other!r}"


def dominance(data: Any) -> str:
    """Another feasible allocation gives nobody less, somebody more; with ranges, than any optimum of a policy gives."""
    market, shares, better, ranges = given(data, "better", "optima")
    now, then, what = [market.worth(i, row) for i, row in enumerate(shares)], table(better, market), "the allocation"
    if ranges is not None:  # the most that each user gets at any optimum
        found = [proved(each) for each in ranges]
        wanted = [(market, found[0].policy, "maximize", market.of_user(i)) for i in range(len(now))]
        need([(e.market, e.policy, *e.range[:2]) for e in found] == wanted, "each user's most, in order, is needed")
        now, what = [each.range[2] for each in found], f"any optimum of {found[0].policy}"
    need(not market.overbooked(then), "the better allocation is not feasible")
    gains = [market.worth(i, row) - before for i, (row, before) in enumerate(zip(then, now))]
    need(min(gains) >= 0 < max(gains), "somebody loses, or nobody gains")
    return f"{what} is not Pareto-efficient: {market.users[gains.index(max(gains))]!r} could get {max(gains)} more"


def pareto_weights(data: Any) -> str:
    """The allocation maximises a sum of throughputs with positive weights, so nobody can gain without a loser."""
    market, shares, weights, prices, rents = given(data, "weights prices", "rents")
    weight, price = numbers(weights, len(market.users)), numbers(prices, len(market.types))
    rent = numbers(rents, len(market.users)) if rents is not None else [NONE] * len(market.users)
    paid = all(w * s <= p + r for w, r, row in zip(weight, rent, market.speedup) for s, p in zip(row, price))
    need(paid and min(weight) > 0 <= min(price + rent), "a price is negative or too low, or a weight is not positive")
    bound = sum(at_most(y, 0, m) for y, m in zip(price + rent, market.capacity + market.demand))
    need(sum(weight[i] * market.worth(i, row) for i, row in enumerate(shares)) == bound, "prices prove nothing")
    return "the allocation is Pareto-efficient"


def misreport(data: Any) -> str:
    """A user gains by a lie; where optima are ranged over, even by the worst after the lie over the best before it."""
    raw, policy, user, report, gain, *pair = fields(data, "market policy user report gain truth lie")
    market, i = read_market(raw), read_market(raw).users.index(user)
    told = market._replace(speedup=[*market.speedup[:i], numbers(report, len(market.types)), *market.speedup[i + 1 :]])
    before, after = map(proved, pair)
    made = [(each.market, each.policy) for each in (before, after)]
    need(made == [(market, policy), (told, policy)], "the decisions are not on the truth and on the lie, or another's")
    if before.range or after.range:
        ranges, own = (before.range[:2], after.range[:2]), market.of_user(i)
        need(ranges == (("maximize", own), ("minimize", own)), "the best before and the worst after are needed")
        more, how = after.range[2] - before.range[2], "whatever optima are chosen"
    else:
        more, how = market.worth(i, after.allocation[i]) - market.worth(i, before.allocation[i]), "by these decisions"
    unsure = GRAIN * market.worth(i, market.capacity) if policy == "partial-allocation" else NONE
    need(more == number(gain) > unsure and told != market, "the lie does not gain this, or is the truth")
    return f"{policy} rewards {user!r} for reporting {', '.join(map(str, told.speedup[i]))}: {gain} more, {how}"


def infeasibility(data: Any) -> str:
    """No point satisfies a bare program, or no feasible allocation gives these users these throughputs."""
    if "program" in data:
        raw, duals = fields(data, "program duals")
        p, statement = read_program(raw)[0], "no point satisfies the program"
    else:
        raw, at_least, duals = fields(data, "market at_least duals")
        market, p, statement = read_market(raw), sharing(read_market(raw)), "no allocation gives"
        for name, amount in at_least:
            i, statement = market.users.index(name), f"{statement} {name!r} {number(amount)}"
            p.rows["at_least", i] = (market.out_of(i, i), number(amount), INF)
    p.cost, p.offset = {}, NONE
    need(p.bound(duals) < 0, "the multipliers contradict nothing")  # 0 is the objective of every point
    return statement


def bound(data: Any) -> str:
    """A feasible point of a program, and a bound on all; if they meet, the point is optimal."""
    if "program" in data:
        raw, x, *told, duals = fields(data, "program point value bound gap duals")
        (p, sign), at, name = read_program(raw), {("x", j): number(entry) for j, entry in enumerate(x)}, "the program"
    else:
        market, shares, policy, *told, duals, more = given(data, "policy value bound gap duals", "variables")
        p, sign, at, name = program_of(market, policy, {}), 1, point(shares, more), policy
    value, limit, gap, best, most = *numbers(told, 3), p.value(at), p.bound(duals)
    need((sign * value, sign * limit, gap) == (best, most, most - best), "value, bound or gap is another")
    return f"a feasible point of {name} has objective {value}, none is beyond {limit}" + ("" if gap else ": optimal")


MOST = (optimality, levels, equilibrium, partial, trace, extreme, envy, dominance, pareto_weights, misreport)
KINDS: dict[Any, Any] = {"property": judged} | {each.__name__: each for each in (*MOST, infeasibility, bound)}
JSON = json.JSONDecoder(object_pairs_hook=lambda of: need(len(dict(of)) == len(of), "a key stands twice") and dict(of))


def proved(data: Any) -> Any:
    """Return what a certificate proves: a `Decided` or a statement."""
    need(type(data["schema"]) is int and data["schema"] == 1, f"schema {data['schema']!r:.80} is not 1")
    return KINDS[data["certificate"]]({key: data[key] for key in data if key not in ("schema", "certificate")})


def verify(data: Any) -> str:
    """Return the statement that a certificate proves; raise `Rejected` where it proves none."""
    try:
        return str(getattr(found := proved(data), "statement", found))
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Rejected(f"it is not built like a certificate of one of {', '.join(KINDS)} ({error!r:.200})") from error


def main(arguments: list[str]) -> int:
    """Verify files, and the .json files in folders; print a line for each and return the exit status."""
    worst, named = 0, map(Path, arguments)
    for path in (file for each in named for file in (each.is_dir() and sorted(each.rglob("*.json"))) or [each]):
        try:
            told = f"accepted: {verify(JSON.decode(path.read_text(encoding='utf-8')))}"
        except (Rejected, OSError, ValueError, RecursionError) as why:
            told = f"{'REJECTED' if isinstance(why, Rejected) else 'cannot be read'}: {why}"
            worst = max(worst, 1 if isinstance(why, Rejected) else 2)
        print("".join(c if " " <= c <= "~" else ascii(c)[1:-1] for c in f"{path}: {told}"))  # one line, plain letters
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if sys.argv[1:] else print(__doc__) or 2)
