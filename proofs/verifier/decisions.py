"""Certificates of what a policy decides on a market, and of how far its choice among optima reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, inf, lcm, prod
from typing import Any

from .market import Market, Table, dot, read_market, read_table, table_shown
from .programs import (
    PROGRAMS,
    Point,
    Program,
    Row,
    max_min,
    point_of,
    policy_shown,
    program_of,
    read_duals,
    read_point,
    read_program,
    shares_shown,
    sharing,
    throughput,
)
from .reading import (
    Rejected,
    Unreadable,
    brief,
    choice,
    fields,
    integer,
    items,
    names,
    number,
    numbers,
    position,
    schema,
    shown,
    summed,
    text,
)
from .trading import trades_due

#: Parts that are roots are rounded down to a multiple of this.
GRAIN = Fraction(1, 10**12)
#: Weights are powers; higher ones would make numbers of millions of digits.
MOST_POWER = 64
SENSES = ["maximize", "minimize"]


@dataclass(frozen=True)
class Proved:
    """A statement that has been decided, what it speaks of, and a note on how its words are meant."""

    statement: str
    subject: Market | Program
    allocation: Table | None = None
    note: str = ""

    def __str__(self) -> str:
        """Return all that a reader may believe."""
        about = [self.note, str(self.subject)]
        about += [] if self.allocation is None else [f"allocation {table_shown(self.allocation)}"]
        return f"{self.statement} [{'; '.join(each for each in about if each)}]"


@dataclass(frozen=True)
class Range:
    """The most (maximize) or the least (minimize) of a sum of shares times ``weights``, over all optima."""

    sense: str
    weights: Table
    value: Fraction


@dataclass(frozen=True)
class Decision:
    """What a policy decides on a market, once proved.

    ``optima`` allows all allocations that it could have chosen; None where no range over them can be
    certified. ``ties`` says whether there may be others. ``condition`` is what has to be believed about the
    policy, if anything.
    """

    statement: str
    market: Market
    policy: str
    shares: Table
    optima: Program | None = None
    ties: bool = True
    condition: str = ""
    range: Range | None = None

    @property
    def proved(self) -> Proved:
        """The statement, of the allocation or, where there is a range, of all optima."""
        return Proved(self.statement, self.market, None if self.range else self.shares)

    @property
    def named(self) -> str:
        """The policy for a statement; a name that somebody else chose is quoted."""
        return repr(self.policy) if self.condition else policy_shown(self.policy, self.market)


def read_allocation(told: dict[str, Any], *, feasible: bool = True) -> tuple[Market, Table]:
    """Return the market and the allocation of a certificate, which must be feasible unless told otherwise."""
    market = read_market(told["market"])
    shares = read_table(told["allocation"], market, "allocation")
    if feasible and not market.feasible(shares):
        raise Rejected("the allocation is not feasible")
    return market, shares


# -- policies that are programs ----------------------------------------------------------------------------
def optimality(data: Any) -> Decision:
    """The allocation is an optimum of the policy's program: feasible, and duals have the same objective."""
    told = fields(data, "optimality", "market policy allocation value duals", "variables")
    market, shares = read_allocation(told)
    policy = choice(told["policy"], "policy", list(PROGRAMS))
    program = program_of(market, policy)
    best = program.optimum(point_of(shares, told["variables"]), read_duals(told["duals"], "duals"))
    if best != number(told["value"], "value"):
        raise Rejected("the value is not the point's")
    said = f"the allocation is optimal for {policy_shown(policy, market)}, objective {shown(best)}"
    return Decision(said, market, policy, shares, optima=program.keeping(best))


def levels(data: Any) -> Decision:
    """Water filling: in each round the least ratio is the largest possible, and duals show who is held down.

    A dual that is not zero says that the user's row is tight at every optimum of the round.
    """
    told = fields(data, "levels", "market allocation rounds")
    market, shares = read_allocation(told)
    fixed: dict[int, Fraction] = {}
    for at, entry in enumerate(items(told["rounds"], "rounds")):
        place = f"rounds[{at}]"
        this = fields(entry, place, "level fixed duals")
        level, duals = number(this["level"], f"{place}, level"), read_duals(this["duals"], f"{place}, duals")
        max_min(market, fixed).optimum(point_of(shares, {"least_ratio": this["level"]}), duals)
        new = {
            position(name, market.users, f"{place}, fixed")
            for name in items(this["fixed"], f"{place}, fixed")
        }
        held_down = {key[1] for key, rate in duals.items() if key[0] == "least_ratio" and rate}
        if not new or not new <= held_down - fixed.keys():
            raise Rejected("a round fixes nobody, somebody twice, or whom no dual holds down")
        fixed |= dict.fromkeys(new, level)
    if len(fixed) < len(market.users):
        raise Rejected("somebody is never fixed")
    optima = sharing(market)
    for i, level in fixed.items():
        optima.rows["levels", i] = Row(throughput(market, i), level * market.equal_share(i), inf)
    said = "ratios to own partitions are lexicographically max-min, as water-filling makes them"
    return Decision(said, market, "water-filling", shares, optima=optima)


def embedded(data: Any) -> Decision:
    """The program that a policy's author wrote has this optimum, and some of its variables are the shares.

    That the program is the policy's is not decided: the verifier cannot make it from the market.
    """
    told = fields(data, "bound", "program point value bound gap duals market policy shares")
    market, program = read_market(told["market"]), read_program(told["program"])
    x = read_point(told["point"], program, "point")
    best = program.sign * program.optimum(x, read_duals(told["duals"], "duals"))
    if numbers([told["value"], told["bound"], told["gap"]], "value, bound, gap") != [best, best, 0]:
        raise Rejected("value, bound or gap is another")
    shares = [
        [_variable(j, program, x) for j in items(row, f"shares, row {i}", len(market.types))]
        for i, row in enumerate(items(told["shares"], "shares", len(market.users)), 1)
    ]
    if not market.feasible(shares):
        raise Rejected("the allocation is not feasible")
    (policy,) = names([told["policy"]], "policy")
    if policy in (*PROGRAMS, "water-filling", "nash-welfare", "partial-allocation", *TRADING):
        raise Rejected(f"decisions of {policy} are proved from the market, not by a program that is given")
    condition = f"the embedded {program}, which the policy's author wrote, is that of {policy!r}"
    said = f"if {condition}: the allocation is optimal for it, objective {shown(best)}"
    return Decision(said, market, policy, shares, condition=condition)


def _variable(told: Any, program: Program, x: Point) -> Fraction:
    key = ("x", integer(told, "shares"))
    if key not in program.bounds:
        raise Rejected(f"the program has no variable {key[1]}")
    return x[key]


# -- policies that are markets -----------------------------------------------------------------------------
def equilibrium(data: Any) -> Decision:
    """Nash welfare: see `_equilibrium`."""
    told = fields(data, "equilibrium", "market allocation prices")
    market, shares = read_allocation(told)
    _require_equilibrium(market, shares, numbers(told["prices"], "prices", len(market.types)))
    optima = sharing(market)
    for i, bundle in enumerate(shares):
        optima.rows["utilities", i] = Row(throughput(market, i), market.worth(i, bundle), inf)
    return Decision("the allocation maximises Nash welfare", market, "nash-welfare", shares, optima=optima)


def _require_equilibrium(market: Market, shares: Table, prices: list[Fraction]) -> None:
    """Refuse prices at which somebody does not hold its best buys, with weights as budgets (Eisenberg-Gale).

    What a user's weight is worth at the margin, weight * speedup / throughput, is the price of what it
    holds and no more than the price of the rest. What is left over costs nothing.
    """
    if not market.feasible(shares):
        raise Rejected("the allocation is not feasible")
    held = [summed(column) for column in zip(*shares, strict=True)]
    left = [there - used for there, used in zip(market.capacity, held, strict=True)]
    if min(prices) < 0 or dot(prices, left):
        raise Rejected("a price is negative, or one of what is left over")
    for i, bundle in enumerate(shares):
        own, name = dot(market.speedup[i], bundle), f"{market.users[i]!r}"
        if not own or summed(bundle) > market.demand[i]:
            raise Rejected(f"{name} gets nothing, or more than it demands")
        for speed, share, price in zip(market.speedup[i], bundle, prices, strict=True):
            worth, cost = market.weight[i] * speed, own * price
            if worth > cost or (share and worth < cost):
                raise Rejected(f"{name} has better buys")
            if share and not speed:
                raise Rejected(f"{name} holds a type that it cannot run on")


def partial(data: Any) -> Decision:
    """Cole, Gkatzelis and Goel: each keeps the part of its bundle that its presence costs the others."""
    told = fields(data, "partial", "market allocation kept together apart")
    market, shares = read_allocation(told)
    users = range(len(market.users))
    part, power = numbers(told["kept"], "kept", len(users)), _powers(market.weight)
    whole = _bundles(told["together"], market, "together")
    for i, without in zip(users, items(told["apart"], "apart", len(users)), strict=True):
        others = [other for other in users if other != i]
        # a user alone costs nobody anything
        rest = _bundles(without, market.without(i), f"apart[{i}]") if others else []
        ratio = prod(
            (market.worth(other, whole[other]) / market.worth(other, bundle)) ** power[other]
            for other, bundle in zip(others, rest, strict=True)
        )
        if not (part[i] > 0 and part[i] ** power[i] <= ratio < (part[i] + GRAIN) ** power[i]):
            raise Rejected("a user keeps another part")
        if shares[i] != [part[i] * share for share in whole[i]]:
            raise Rejected(f"{market.users[i]!r} holds another part")
    said = "the allocation is one that partial-allocation may leave, up to 1/10**12 of each bundle"
    return Decision(said, market, "partial-allocation", shares)


def _bundles(data: Any, market: Market, place: str) -> Table:
    told = fields(data, place, "allocation prices")
    shares = read_table(told["allocation"], market, f"{place}, allocation")
    _require_equilibrium(market, shares, numbers(told["prices"], f"{place}, prices", len(market.types)))
    return shares


def _powers(weights: list[Fraction]) -> list[int]:
    """Return the smallest integers in proportion to the weights."""
    unit = Fraction(gcd(*(w.numerator for w in weights)), lcm(*(w.denominator for w in weights)))
    powers = [int(weight / unit) for weight in weights]
    if max(powers) > MOST_POWER:
        raise Rejected(f"the weights make powers that are too high; the limit is {MOST_POWER}")
    return powers


# -- policies that are procedures --------------------------------------------------------------------------
TRADING = ("equal-split", "second-price-trading")
TRADE = "buyer seller fast slow price fast_amount slow_amount"


def trace(data: Any) -> Decision:
    """Second-price trading: all trades that are due, and no others. Without trades: the equal split."""
    told = fields(data, "trace", "market allocation", "trades")
    market, shares = read_allocation(told)
    held = market.equal_split()
    if told["trades"] is not None:
        _replay(items(told["trades"], "trades"), trades_due(market, held))
    if shares != held:
        raise Rejected("the trades that are told lead elsewhere")
    policy = TRADING[told["trades"] is not None]
    return Decision(f"the allocation is that of {policy}", market, policy, held, ties=False)


def _replay(told: list[Any], due: Iterator[list[Any]]) -> None:
    """Refuse trades that are not those that are due; `trades_due` carries each of them out."""
    at = 0
    for trade in due:
        if at == len(told):
            raise Rejected(f"a trade that is due is missing: {' '.join(map(str, trade[:2]))}")
        entry = fields(told[at], f"trades[{at}]", TRADE)
        *words, price, fast, slow = (entry[key] for key in TRADE.split())
        if [*words, *numbers([price, fast, slow], f"trades[{at}]")] != trade:
            raise Rejected(f"trade {at} is not the one that is due")
        at += 1
    if at < len(told):
        raise Rejected("a trade is told that is not due")


# -- ranges over optima ------------------------------------------------------------------------------------
def extreme(data: Any) -> Decision:
    """Over all optima of a decision, a sum of weights times shares goes to the value, and no further."""
    told = fields(data, "extreme", "of sense weights allocation value duals", "variables")
    found, sense = decided(told["of"], "of"), choice(told["sense"], "sense", SENSES)
    if found.range or found.optima is None:
        raise Rejected(f"{found.named} leaves no choice over which a range is certified")
    market, sign = found.market, 1 if sense == "maximize" else -1
    weights = read_table(told["weights"], market, "weights")
    shares = read_table(told["allocation"], market, "allocation")
    program = found.optima
    for i, row in enumerate(weights):
        program.cost |= {("share", i, j): sign * weight for j, weight in enumerate(row)}
    x, duals = point_of(shares, told["variables"]), read_duals(told["duals"], "duals")
    value = sign * program.optimum(x, duals)
    if value != number(told["value"], "value"):
        raise Rejected("the value is not the point's")
    most = "maximum" if sense == "maximize" else "minimum"
    said = (
        f"over all optima of {found.named}, the {most} of {shares_shown(weights, market)} is {shown(value)}"
    )
    reach = Range(sense, weights, value)
    return Decision(said, market, found.policy, found.shares, program, range=reach)


#: Decisions by the word in the certificate; each of them may stand inside of other certificates.
DECISIONS: dict[str, Callable[[Any], Decision]] = {
    "optimality": optimality,
    "levels": levels,
    "equilibrium": equilibrium,
    "partial": partial,
    "trace": trace,
    "extreme": extreme,
}


def decided(data: Any, place: str) -> Decision:
    """Return the decision that a certificate inside of another proves."""
    kind, body = opened(data, place)
    if kind == "bound" and "shares" in body:
        return embedded(body)
    if kind == "bound":
        raise Rejected(f"{place}: a bound on a bare program does not say whose shares it decides")
    if kind not in DECISIONS:
        raise Rejected(f"{place}: {brief(kind)} is no decision")
    return DECISIONS[kind](body)


def opened(data: Any, place: str) -> tuple[str, dict[str, Any]]:
    """Return the word that says what a certificate states, and the rest of it without its version."""
    if type(data) is not dict or "schema" not in data or "certificate" not in data:
        raise Unreadable(f"{place}: it has no keys schema and certificate")
    schema(data["schema"], f"{place}, ")
    kind = text(data["certificate"], f"{place}, certificate")
    return kind, {key: value for key, value in data.items() if key not in ("schema", "certificate")}
