"""Judge schedules of a batch: ``python proofs/verify_schedule.py FILE... [--tolerance 1e-9]``. Trusts nothing of fairopt.

A plan is one JSON document (`fairopt.schedules.document` says what its keys are): a batch, a schedule for each job that
runs, the decisions that led to them and what jobs pay. In fractions, this file decides of any plan that

* the schedules keep (3a)-(3o) of the revenue maximisation; every violation is named by its letter. That a job holds the
  same resources from its first slot to its last, (3f), (3h), (3m), (3n), is in the form of a schedule. (3i) is read
  for servers that hold PS: for all servers, as printed, it would forbid all that leaves a server empty.
  (3l) is as printed: the first slot is not before the arrival. Quotas add up to what the servers hold;
* where decisions are told: those admitted are the schedules, no job twice; what was admitted as its tenant's own fits
  into its tenant's quota, slot by slot; utilities are those of the completion, counted from the round's origin;
* where jobs pay: each slot costs the same part of the job's cost, and is divided among the tenants in proportion to
  what they leave unused, workers and PS apart, Eq. (2) and (11); incomes add up to what is paid, exactly;
* where bases of prices are told: intervals, rounds and passes are those of Algorithms 1 and 2, each offers every job
  that waits, own shares first; costs are those at the prices (8) of what was in use then; admitted is who gains.

It does not decide whether a schedule was the best for its job, nor where bases come from. Prices are irrational: costs
(and powers that are no whole number) may be off by ``--tolerance``, relative to the prices of the round so far.
Exit status: 0 all accepted, 1 something is rejected, 2 something cannot be read.

Source: Astraea (posted prices), Eq. (1)-(3), (8), (11), Algorithms 1-3.
"""

import argparse
import json
import re
import sys
from collections import Counter, namedtuple
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

NEAR, MOST_SHOWN, MOST_SLOTS = Fraction(1, 10**9), 20, 10**7
Spots = tuple[tuple[int, int], ...]  # (server, how many there), servers rising
Kind = namedtuple("Kind", "name bandwidth")
Tenant = namedtuple("Tenant", "name workers ps")  # quotas, one a type
Server = namedtuple("Server", "name workers ps")
Schedule = namedtuple("Schedule", "job first last workers ps worker_type ps_type together")
Bases = namedtuple("Bases", "interval rounds slots workers ps")
Job = namedtuple("Job", "name tenant arrival chunks work minibatch_time update_time gradient utility")  # work: E D M
OFFER = "job interval round own schedule worker_cost ps_cost utility origin admitted"
JOB = "name tenant arrival epochs chunks minibatches minibatch_time update_time gradient utility"
PARTS = ("workers", "ps")


class Unreadable(Exception):
    """The document is not of the form that can be decided; the message says where."""


def need(holds: bool, otherwise: str) -> bool:
    """Refuse to read on unless ``holds``."""
    if not holds:
        raise Unreadable(otherwise)
    return holds


def number(value: Any, place: str) -> Fraction:
    """Return an integer, a string "p/q", or a float, which stands for the fraction that it is."""
    written = str(value) if type(value) in (int, str) else ""
    told = re.fullmatch(r"-?[0-9]+(/0*[1-9][0-9]*)?", written) is not None or type(value) is float
    return Fraction(value) if need(told, f"{place}: {value!r:.60} is no number") else Fraction(0)


def amount(value: Any, place: str, above: bool = False) -> Fraction:
    """Return a number that is not negative, or ``above`` 0."""
    found = number(value, place)
    need(found > 0 or (found == 0 and not above), f"{place}: {found} is too little")
    return found


def of(kind: Any, value: Any, place: str, least: int = 0) -> Any:
    """Return a value that must be of a type and, where it is an integer, at least ``least``."""
    need(type(value) is kind and (kind is not int or value >= least), f"{place}: {value!r:.60} cannot stand there")
    return value


def items(value: Any, place: str, length: int | None = None) -> list[Any]:
    """Return a list, of ``length`` where it is given."""
    need(type(value) is list and length in (None, len(value)), f"{place}: no list of {length or 'any'}")
    return list(value)


def fields(data: Any, keys: str, place: str) -> dict[str, Any]:
    """Return an object that has ``keys``, none missing and no other."""
    need(type(data) is dict and set(data) == set(keys.split()), f"{place}: the keys are not {keys}")
    return dict(data)


def index(entries: list[Any], place: str) -> dict[str, int]:
    """Return where the entry of each name stands; no two may have the same."""
    names = [each.name for each in entries]
    need(all(type(name) is str for name in names) and len(set(names)) == len(names), f"{place}: odd, or there twice")
    return {name: at for at, name in enumerate(names)}


def row(known: dict[str, int], name: Any, place: str) -> int:
    """Return where a name stands."""
    need(type(name) is str and name in known, f"{place}: {name!r:.60} is not in the batch")
    return known[name]


#: For each form of a utility f: what its numbers are called, whether it falls, and f(t).
FORMS: dict[str, tuple[str, Callable[..., bool], Callable[..., Any]]] = {
    "linear": ("slope height", lambda k, g: k[0] <= 0, lambda t, k, g: k[0] * t + g[0]),
    "power": (
        "scale exponent",
        lambda e, kappa: e[0] > 0 and kappa[0] > 0,
        lambda t, e, k: (e[0] / t) ** int(k[0]) if k[0].denominator == 1 else float(e[0] / t) ** float(k[0]),
    ),
    "steps": (
        "values",
        lambda values: all(a >= b for a, b in pairwise(values)),
        lambda t, values: values[min(max(-int(-t // 1), 0), len(values) - 1)],
    ),
}


def utility(data: Any, place: str) -> Callable[[Fraction], Fraction]:
    """Return the function that an object describes."""
    form = data.get("form") if type(data) is dict else None
    keys, falls, value = FORMS[form] if need(type(form) is str and form in FORMS, f"{place}: {form!r:.60}") else ...
    told = fields(data, f"form {keys}", place)
    given = [[number(v, place) for v in (told[k] if type(told[k]) is list else [told[k]])] for k in keys.split()]
    need(all(given) and falls(*given), f"{place}: it rises, or there is none")
    return lambda time: Fraction(value(time, *given))


class Plan:
    """A document, read; ``violations`` says what is wrong in it."""

    def __init__(self, data: Any, tolerance: Fraction = NEAR) -> None:
        told = fields(data, "schema policy batch bases schedules admissions payments", "document")
        need(of(int, told["schema"], "schema") == 1, "schema: it is not 1")
        self.policy, self.tolerance = of(str, told["policy"], "policy"), tolerance
        self._read_batch(fields(told["batch"], "tenants worker_types ps_types servers jobs", "batch"))
        self.bases = [self._bases(each) for each in items(told["bases"], "bases")]
        self.schedules = [self._schedule(each, "schedule") for each in items(told["schedules"], "schedules")]
        self.offers = [self._offer(each) for each in items(told["admissions"], "admissions")]
        self.payments = [self._payment(each) for each in items(told["payments"], "payments")]

    def _read_batch(self, told: dict[str, Any]) -> None:
        self.kinds = [
            [
                Kind(each["name"], amount(each["bandwidth"], "bandwidth", above=True))
                for each in (fields(entry, "name bandwidth", key) for entry in items(told[key], key))
            ]
            for key in ("worker_types", "ps_types")
        ]
        self.kind = [index(kinds, "types") for kinds in self.kinds]
        need(all(self.kind), "types: there is none")
        self.tenants = [self._holding(each, Tenant) for each in items(told["tenants"], "tenants")]
        self.servers = [self._holding(each, Server) for each in items(told["servers"], "servers")]
        self.tenant, self.server = index(self.tenants, "tenants"), index(self.servers, "servers")
        self.jobs = [self._job(each) for each in items(told["jobs"], "jobs")]
        self.job = index(self.jobs, "jobs")

    def _holding(self, data: Any, kind: Any) -> Any:
        told = fields(data, "name workers ps", "tenant or server")
        held = (items(told[part], part, len(self.kinds[at])) for at, part in enumerate(PARTS))
        return kind(told["name"], *([of(int, count, "workers or ps") for count in counts] for counts in held))

    def _job(self, data: Any) -> Job:
        told = fields(data, JOB, "job")
        place = f"job {told['name']!r:.60}"
        epochs, chunks, small = (
            of(int, told[key], f"{place}, {key}", 1) for key in ("epochs", "chunks", "minibatches")
        )
        times = [
            [amount(each, f"{place}, {key}", above=not at) for each in items(told[key], place, len(self.kinds[at]))]
            for at, key in enumerate(("minibatch_time", "update_time"))
        ]
        tenant, arrival = row(self.tenant, told["tenant"], place), of(int, told["arrival"], f"{place}, arrival")
        gradient, worth = amount(told["gradient"], place), utility(told["utility"], f"{place}, utility")
        return Job(told["name"], tenant, arrival, chunks, epochs * chunks * small, *times, gradient, worth)

    def _bases(self, data: Any) -> Bases:
        told = fields(data, " ".join(Bases._fields), "bases")
        theta = [
            [number(each, "bases") for each in items(told[part], f"bases, {part}", len(self.kinds[at]))]
            for at, part in enumerate(PARTS)
        ]
        need(min(min(each) for each in theta) >= 1, "bases: one is below 1")
        whole = (of(int, told[key], f"bases, {key}", 1) for key in ("interval", "rounds", "slots"))
        return Bases(*whole, *theta)

    def _schedule(self, data: Any, place: str) -> Schedule:
        told = fields(data, " ".join(Schedule._fields), place)
        first, last = (of(int, told[key], f"{place}, {key}", 1) for key in ("first", "last"))  # (3o): t-, t+ in [T]
        need(first <= last <= MOST_SLOTS, f"{place}: slots {first} to {last}")
        spots = [self._spots(told[part], f"{place}, {part}") for part in PARTS]
        types = [row(self.kind[at], told[key], place) for at, key in enumerate(("worker_type", "ps_type"))]
        together = of(bool, told["together"], f"{place}, together")
        return Schedule(row(self.job, told["job"], place), first, last, *spots, *types, together)

    def _spots(self, data: Any, place: str) -> Spots:
        pairs = [items(each, place, 2) for each in items(data, place)]
        found = tuple((row(self.server, name, place), of(int, count, place, 1)) for name, count in pairs)  # (3o)
        need(all(a < b for (a, _), (b, _) in pairwise(found)), f"{place}: servers do not rise")
        return found

    def _offer(self, data: Any) -> dict[str, Any]:
        told = fields(data, OFFER, "admission")
        place = f"admission of {told['job']!r:.60}"
        told["job"] = row(self.job, told["job"], place)
        if told["schedule"] is not None:
            told["schedule"] = self._schedule(told["schedule"], place)
            need(told["schedule"].job == told["job"], f"{place}: the schedule is another job's")
        for key, least in (("interval", 1), ("round", 1), ("origin", 0)):
            of(int, told[key], f"{place}, {key}", least)
        for key in ("own", "admitted"):
            of(bool, told[key], f"{place}, {key}")
        for key in ("worker_cost", "ps_cost"):
            told[key] = amount(told[key], f"{place}, {key}")
        told["utility"] = number(told["utility"], f"{place}, utility")
        need(told["schedule"] is not None or not told["admitted"], f"{place}: admitted to nothing")
        return told

    def _payment(self, data: Any) -> dict[str, Any]:
        told = fields(data, "job slot workers ps incomes", "payment")
        told["job"] = row(self.job, told["job"], "payment")
        of(int, told["slot"], "payment, slot", 1)
        for part in PARTS:
            told[part] = amount(told[part], f"payment, {part}")
        told["incomes"] = [amount(each, "income") for each in items(told["incomes"], "incomes", len(self.tenants))]
        return told

    def violations(self) -> Iterator[str]:
        """Yield what is wrong."""
        yield from self._quotas()
        once = Counter(each.job for each in self.schedules)
        yield from (f"job {self.jobs[job].name!r} has {n} schedules" for job, n in once.items() if n > 1)
        for each in self.schedules:
            yield from (f"job {self.jobs[each.job].name!r}: {what}" for what in self._alone(each))
        yield from self._capacities()
        yield from self._decisions()
        yield from self._division()
        if self.bases:
            yield from self._trace()

    def _quotas(self) -> Iterator[str]:
        for at, part in enumerate(PARTS):
            for kind, (name, _) in enumerate(self.kinds[at]):
                owned, held = (
                    sum(getattr(each, part)[kind] for each in several) for several in (self.tenants, self.servers)
                )
                if owned != held:
                    yield f"quotas: tenants own {owned} {part} of type {name!r}, servers hold {held}"

    def _alone(self, it: Schedule) -> Iterator[str]:
        """Yield what a schedule breaks by itself."""
        job, workers, ps = self.jobs[it.job], count(it.workers), count(it.ps)
        if workers > job.chunks:
            yield f"(3e) {workers} workers for {job.chunks} chunks"
        if workers < 1 or ps < 1:
            yield f"(3g) {workers} workers and {ps} PS"
        b_w, b_p = self.kinds[0][it.worker_type].bandwidth, self.kinds[1][it.ps_type].bandwidth
        for server, here in it.ps:
            away = workers - dict(it.workers).get(server, 0)
            if away * b_w > here * b_p:
                yield f"(3i) {here} PS on {self.servers[server].name!r} cover {here * b_p} of {away * b_w} from elsewhere"
        together = len({server for server, _ in (*it.workers, *it.ps)}) == 1
        if it.together is not together:
            yield f"(3j) zeta is {int(it.together)}"
        time = job.minibatch_time[it.worker_type] + job.update_time[it.ps_type]  # 1 / n_j, Eq. (1)
        time += 0 if together else 2 * job.gradient / b_w
        done = (it.last - it.first + 1) * workers / time
        if done < job.work:
            yield f"(3k) {done} mini-batches of {job.work}"
        if it.first < job.arrival:
            yield f"(3l) it begins in slot {it.first} and arrives at {job.arrival}"

    def _capacities(self) -> Iterator[str]:
        """Yield where servers, or all quotas together, give out more than there is."""
        for at, (part, letters) in enumerate(zip(PARTS, ("(3a) (3c)", "(3b) (3d)"), strict=True)):
            whole, server_letter = letters.split()
            use = Counter[Any]()
            for it in self.schedules:
                for slot in range(it.first, it.last + 1):
                    for server, here in it[3 + at]:
                        use[server, it[5 + at], slot] += here
                        use[None, it[5 + at], slot] += here
            for (server, kind, slot), used in use.items():
                holders = self.tenants if server is None else [self.servers[server]]
                there = sum(getattr(each, part)[kind] for each in holders)
                if used > there:
                    place = whole if server is None else f"{server_letter} server {self.servers[server].name!r},"
                    yield f"{place} slot {slot}: {used} {part} of {there}, type {self.kinds[at][kind].name!r}"

    def _decisions(self) -> Iterator[str]:
        """Yield where decisions, schedules and own shares do not go together."""
        taken = [each for each in self.offers if each["admitted"]]
        if self.offers and Counter(each["schedule"] for each in taken) != Counter(self.schedules):
            yield "the schedules are not those admitted"
        for each in self.offers:
            found, name = each["schedule"], self.jobs[each["job"]].name
            told = (each["worker_cost"], each["ps_cost"], each["utility"])
            if found is None and any(told):
                yield f"admission of {name!r}: costs or utility of nothing"
            if found is not None:
                right = self.jobs[each["job"]].utility(Fraction(found.last - each["origin"]))
                if not self.near(each["utility"], right, abs(right)):
                    yield f"admission of {name!r}: utility {each['utility']} and should be {right}"
        for (slot, tenant, at, kind), used in self._own_use().items():
            there = self.tenants[tenant]
            if used > there[1 + at][kind]:
                yield f"slot {slot}: {there.name!r} has {used} {PARTS[at]} within a share of {there[1 + at][kind]}"

    def _own_use(self) -> Counter[Any]:
        """Return by (slot, tenant, workers or PS, type) what jobs admitted as their tenant's own use."""
        use = Counter[Any]()
        for it in (each["schedule"] for each in self.offers if each["admitted"] and each["own"]):
            for slot in range(it.first, it.last + 1):
                for at in (0, 1):
                    use[slot, self.jobs[it.job].tenant, at, it[5 + at]] += count(it[3 + at])
        return use

    def _division(self) -> Iterator[str]:
        """Yield where payments are not what Eq. (2) and (11) make of the costs."""
        used, told = self._own_use(), {(each["job"], each["slot"]): each for each in self.payments}
        if len(told) < len(self.payments):
            yield "a job pays twice for a slot"
        for each in self.offers:
            it, costs = each["schedule"], (each["worker_cost"], each["ps_cost"])
            if not each["admitted"] or each["own"]:
                continue
            free = not any(costs) and not any(job == it.job for job, _ in told)  # nothing to pay, and nobody does
            for slot in range(it.first, it.last + 1) if not free else ():
                place = f"payment of {self.jobs[it.job].name!r}, slot {slot}"
                paid, right = told.pop((it.job, slot), None), [Fraction(0)] * len(self.tenants)
                for at, cost in enumerate(costs):
                    kind, part = it[5 + at], cost / (it.last - it.first + 1)
                    left = [own[1 + at][kind] - used[slot, u, at, kind] for u, own in enumerate(self.tenants)]
                    right = [a + part * b / max(sum(left), 1) for a, b in zip(right, left, strict=True)]
                    if paid is not None and paid[PARTS[at]] != part:
                        yield f"{place}: {PARTS[at]} cost {paid[PARTS[at]]} and should cost {part}"
                if paid is None:
                    yield f"{place}: missing"
                elif paid["incomes"] != right or sum(right) != paid["workers"] + paid["ps"]:
                    yield f"{place}: incomes {paid['incomes']!s:.200} and should be {right!s:.200}"
        yield from (f"payment of {self.jobs[job].name!r}, slot {slot}: for nothing" for job, slot in told)

    def _trace(self) -> Iterator[str]:
        """Yield where intervals, rounds, passes, prices or gains are not those of Algorithms 1 to 3."""
        offers, waiting, use = iter(self.offers), list[int](), Counter[Any]()
        arrived = {job: max(each.arrival, 1).bit_length() for job, each in enumerate(self.jobs)}
        for number, base in enumerate(self.bases, start=1):
            if (base.interval, base.rounds, base.slots) != (number, self.bases[0].rounds, 2**number):
                yield f"interval {number}: bases of interval {base.interval}, {base.rounds} rounds of {base.slots} slots"
                return
            waiting += [job for job, interval in arrived.items() if interval == number]
            for turn in range(1, base.rounds + 1):
                for own in (True, False):
                    left, place = set(waiting), f"interval {number}, round {turn}, {'own' if own else 'all'}"
                    for _ in waiting[:]:
                        each = next(offers, None)
                        where = None if each is None else (each["interval"], each["round"], each["own"])
                        if each is None or where != (number, turn, own) or each["job"] not in left:
                            yield f"{place}: not every job that waits is offered a place, once, in this pass"
                            return
                        left.remove(each["job"])
                        yield from (f"{place}: {what}" for what in self._priced(each, base, use))
                        if each["admitted"]:
                            waiting.remove(each["job"])
        if next(offers, None) is not None:
            yield "jobs are offered a place after the last interval"

    def _priced(self, each: dict[str, Any], base: Bases, use: Counter[Any]) -> Iterator[str]:
        """Yield what is wrong in one decision, and count what it takes."""
        it, origin, job = each["schedule"], (base.rounds + each["round"] - 1) * base.slots, self.jobs[each["job"]]
        if each["origin"] != origin:
            yield f"{job.name!r}: the round begins at {origin}, not {each['origin']}"
        if it is None:
            return
        if not origin < it.first <= it.last <= origin + base.slots:
            yield f"{job.name!r}: slots {it.first} to {it.last} leave the round"
        gain = each["utility"] - each["worker_cost"] - each["ps_cost"]
        for at, key in enumerate(("worker_cost", "ps_cost")):
            kind, taken = it[5 + at], count(it[3 + at])
            total, theta = sum(server[1 + at][kind] for server in self.servers), float(base[3 + at][kind])
            # Eq. (8): theta to the part in use, less 1
            price = {t: theta ** (use[at, kind, t] / max(total, 1)) - 1 for t in range(origin + 1, it.last + 1)}
            right = Fraction(taken * sum(price.get(slot, 0.0) for slot in range(it.first, it.last + 1)))
            if not self.near(each[key], right, Fraction(taken * sum(price.values()))):
                yield f"{job.name!r}: {key} {float(each[key])} and should be {float(right)}"
            for slot in range(it.first, it.last + 1) if each["admitted"] else ():
                use[at, kind, slot] += taken
        if each["admitted"] is not (gain > 0) and not self.near(gain, Fraction(0), abs(each["utility"])):
            yield f"{job.name!r}: gains {float(gain)} and is {'admitted' if each['admitted'] else 'refused'}"

    def near(self, found: Fraction, right: Fraction, size: Fraction) -> bool:
        """Whether two numbers are the same but for what floats of a size cannot tell."""
        return abs(found - right) <= self.tolerance * max(size, Fraction(1))

    def statement(self) -> str:
        """Return what has been checked, for a document without violations."""
        paid = sum((each["workers"] + each["ps"] for each in self.payments), start=Fraction(0))
        feasible = f"{len(self.schedules)} of {len(self.jobs)} jobs of {self.policy!r} run within (3a)-(3o)"
        told = f"{len(self.offers)} decisions {'at posted prices' if self.bases else 'without bases of prices'}"
        return f"{feasible}; {told}; {len(self.payments)} payments, {float(paid):.6g} in all, reach the owners exactly"


def count(spots: Spots) -> int:
    """Return how many there are on all servers."""
    return sum(here for _, here in spots)


def decide(text: str, tolerance: Fraction = NEAR) -> tuple[list[str], str]:
    """Return the violations in a document, none where it is right, and then the statement that has been checked."""

    def of_object(pairs: list[tuple[str, Any]]) -> Any:
        return need(len(dict(pairs)) == len(pairs), "a key stands twice in an object") and dict(pairs)

    try:
        plan = Plan(json.loads(text, object_pairs_hook=of_object), tolerance)
        found = list(plan.violations())
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise Unreadable(f"not the JSON of a plan: {error!r:.200}") from error
    return found, "" if found else plan.statement()


def main(arguments: list[str] | None = None) -> int:
    """Decide the files that are named, print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(description="Judge schedules of a batch and say where a plan is wrong.")
    parser.add_argument("file", nargs="+", type=Path, help="JSON document of a plan")
    parser.add_argument("--tolerance", type=Fraction, default=NEAR, help="what prices may be off by; 1e-9")
    asked, worst = parser.parse_args(arguments), 0
    for file in asked.file:
        try:
            found, statement = decide(file.read_text(encoding="utf-8"), asked.tolerance)
        except (OSError, UnicodeDecodeError, Unreadable) as error:
            print(f"{file}: cannot be read: {error}")
            worst = 2
            continue
        for what in found[:MOST_SHOWN]:
            print(f"{file}: REJECTED: {what}")
        print(f"{file}: {len(found)} violations" if found else f"{file}: accepted: {statement}")
        worst = max(worst, min(len(found), 1))
    return worst


if __name__ == "__main__":
    sys.exit(main())
