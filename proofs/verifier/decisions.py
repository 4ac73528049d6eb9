"""Certificates of what a policy decides on a market, and of how far its choice among optima reaches."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf

from . import programs
from .faces import best
from .market import Market, read_market, read_table, table_shown
from .nash import equilibrium, partial
from .programs import PROGRAMS, SENSES, Program
from .reading import ONE, ZERO, Entry, Rejected, Table, Unreadable, brief, require, shown, summed
from .standing import entitle, require_entitled
from .statements import Decision, Range, read_allocation, require_bound, require_feasible
from .trading import TRADING, trace


# -- policies that are programs ----------------------------------------------------------------------------
def optimality(data: Entry) -> Decision:
    """The allocation is an optimum of the policy's program: feasible, and duals have the same objective."""
    certificate = data.fields("market policy allocation value duals", "variables")
    market, shares = read_allocation(certificate)
    policy = certificate["policy"].choice(PROGRAMS)
    program = PROGRAMS[policy](market)
    best = programs.certified(program, shares, certificate)
    said = f"the allocation is optimal for {programs.policy_shown(policy, market)}, objective {shown(best)}"
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


@dataclass
class Filling:
    """Water filling under way: each user's ratio to its ``fair`` throughput, and whose ratios are fixed."""

    market: Market
    shares: Table
    program: Program
    fair: list[Fraction]
    ratios: list[Fraction]
    fixed: set[int] = field(default_factory=set)

    def fill(self, entry: Entry, rates: list[Fraction] | None) -> None:
        """Raise ratios to the level of a round, as fast as the rates, and fix those that it holds down.

        Without rates, ratios that are not fixed rise alike from 0.
        """
        certificate, users = entry.fields("level fixed duals"), range(len(self.ratios))
        rising_by = rates or [ZERO if i in self.fixed else ONE for i in users]
        level, duals = certificate["level"], programs.read_duals(certificate["duals"])
        program = programs.rising(self.program, self.market, self.fair, self.ratios, rising_by)
        program.optimum(programs.point_of(self.shares, entry.of({"least_ratio": level.value}, "")), duals)
        # a dual that is not zero says that the user's row is tight at every optimum
        tight = {key[1] for key, dual in duals.items() if key[0] == "least_ratio" and dual}
        held_down = {i for i in tight if rising_by[i]} - self.fixed
        new = {name.position(self.market.users) for name in certificate["fixed"].items()}
        if not new or not new <= held_down or min(rising_by) < 0 or any(rising_by[i] for i in self.fixed):
            raise Rejected("a round fixes nobody, somebody twice, or whom no dual holds down")
        for i in users if rates else new:
            self.ratios[i] += rising_by[i] * level.number()
        self.fixed |= new


def levels(data: Entry) -> Decision:
    """Water filling: in each round the least ratio is the largest possible, and duals show who is held down.

    Ratios rise alike from 0; or at rates that are told, and are then to what a unit of weight is worth.
    """
    certificate = data.fields("market allocation rounds", "normaliser owed rates")
    market, rounds = read_market(certificate["market"], whole=True), certificate["rounds"].items()
    shares, users = read_table(certificate["allocation"], market), len(market.users)
    require_feasible(market, shares)  # as the rows of every round do
    rated = certificate["rates"].value is not None
    rates = [row.numbers(users) for row in certificate["rates"].items(len(rounds))] if rated else []
    program, notes = _fillable(certificate["owed"], market, shares)
    notes += [f"the rates are, in each round, {table_shown(rates)}"] if rates else []
    normaliser = "own-partition"
    if certificate["normaliser"].value is not None:
        normaliser = certificate["normaliser"].choice(NORMALISERS)
    fair = [NORMALISERS[normaliser](market, i) for i in range(users)]
    if rates:  # for each unit of weight: the rates have the weights
        fair = [worth * market.weights / users / own for worth, own in zip(fair, market.weight, strict=True)]
    filling = Filling(market, shares, program, fair, [ZERO] * users)
    for at, entry in enumerate(rounds):
        filling.fill(entry, rates[at] if rates else None)
    if len(filling.fixed) < users:
        raise Rejected("somebody is never fixed")
    reached = {i: ratio * own for i, (ratio, own) in enumerate(zip(filling.ratios, fair, strict=True))}
    program.rows |= programs.floors(market, "levels", reached)
    said, name = _filling_named(normaliser, rated=bool(rates), entitled=market.entitled is not None)
    stated = [certificate[key].value for key in ("rates", "owed")] if rates or market.entitled else ""
    note, stated = "; ".join(notes), repr(stated) if stated else ""
    return Decision(said, market, shares, note, policy=name, optima=program, stated=stated)


def _fillable(entry: Entry, market: Market, shares: Table) -> tuple[Program, list[str]]:
    """Return the program of what may be filled, within entitlements, and notes on how it is meant."""
    program, notes = programs.sharing(market), [AT_STATED] * bool(market.bounds)
    stated = (market.entitled is None) == (entry.value is None)
    require(stated, "owed", "it is what entitlements make of groups")
    if market.entitled:
        require_entitled(market, shares)
        notes.append(entitle(program, market, market.entitled, entry))
    return program, notes


def _filling_named(normaliser: str, *, rated: bool, entitled: bool) -> tuple[str, str]:
    """Return what is said of a water filling, and the policy's name."""
    own = normaliser == "own-partition"
    name = "hierarchical-water-filling at rates that are told" if rated else "water-filling"
    name += (" with entitlements" if entitled else "") + ("" if own else f", {normaliser}")
    said = f"ratios to {'own partitions' if own else f'{normaliser} throughputs'} "
    said += "rise as far as they can" if rated else "are lexicographically max-min"
    return f"{said}, as {name} makes them", name


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
    if before.stated:
        return "by what each of the two decisions tells, ", f"{AS_TOLD}; {both}"
    return "", AT_STATED if before.subject.bounds else ""


def embedded(data: Entry) -> Decision:
    """The program that a policy's author wrote has this optimum, and some of its variables are the shares.

    Whether the program is the policy's is not decided: the verifier cannot make it from the market.
    """
    certificate = data.fields("program point value bound gap duals market policy shares")
    market = read_market(certificate["market"], whole=True)
    program = programs.read_program(certificate["program"])
    x = programs.read_point(certificate["point"], program)
    best = program.sign * program.optimum(x, programs.read_duals(certificate["duals"]))
    require_bound(best, best, certificate)
    places = [row.items(len(market.types)) for row in certificate["shares"].items(len(market.users))]
    for key in (("x", each.integer()) for row in places for each in row):
        if key not in x:
            raise Rejected(f"the program has no variable {key[1]}")
    shares = [[x["x", each.value] for each in row] for row in places]
    require_feasible(market, shares)
    require_entitled(market, shares)
    policy = certificate["policy"].name()
    if policy in (*PROGRAMS, *TRADING, *OF_MARKETS):
        raise Rejected(f"decisions of {policy} are proved from the market, not by a program that is given")
    said = f"the embedded program, which the author of {policy!r} wrote, has this optimum"
    said += f": objective {shown(best)}"
    return Decision(said, market, shares, f"{NOT_DECIDED}; {program}", policy=policy, embedded=str(program))


# -- ranges over optima ------------------------------------------------------------------------------------
EXTREME = "of sense weights allocation value duals"


def extreme(data: Entry) -> Decision:
    """Over all optima of a decision, a sum of weights times shares goes to the value, and no further."""
    certificate = data.fields(EXTREME, "variables")
    if rule_of(certificate["of"])[0] is extreme:  # before any of them is decided
        raise Rejected("a range leaves no choice over which a range is certified")
    found, sense = decided(certificate["of"]), certificate["sense"].choice(SENSES)
    if found.optima is None:
        raise Rejected(f"{found.named} leaves no choice over which a range is certified")
    market, program = found.subject, found.optima
    sign, most = (1, "maximum") if sense == "maximize" else (-1, "minimum")
    weights, shares = (read_table(certificate[key], market) for key in ("weights", "allocation"))
    for i, row in enumerate(weights):
        program.cost |= {("share", i, j): sign * weight for j, weight in enumerate(row)}
    value = programs.certified(program, shares, certificate, sign)
    said = f"over all optima of {found.named}, the {most} of {programs.shares_shown(weights, market)}"
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
    market = read_market(body.by_name().get("market", body.of(None, "market")), whole=True)
    return market, sense, read_table(weights, market) if weights else []
