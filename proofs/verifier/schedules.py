"""Judge schedules: ``python proofs/verify_schedule.py FILE... [--tolerance 1e-9]``. Trusts nothing of fairopt.

A plan is one JSON document (`fairopt.schedules.document` says what its keys are): a batch, a schedule for each job that
runs, the decisions that led to them and what jobs pay. In fractions, this file decides of any plan that

* the schedules keep (3a)-(3o) of the revenue maximisation; a violation is named by its letter. (3f), (3h), (3m), (3n)
  are in the form of a schedule: the same resources from its first slot to its last. (3i) is read for servers that hold
  PS: for all servers, as printed, it would forbid any that stays empty. Quotas add up to what servers hold;
* where decisions are told: those admitted are the schedules; what was admitted as its tenant's own fits into its quota
  in every slot; utilities are those of the completion, counted from the round's origin;
* where jobs pay: each slot costs the same part of a job's cost, divided among the tenants in proportion to what they
  leave unused, workers and PS apart, Eq. (2) and (11); incomes add up to what is paid, exactly;
* where bases of prices are told: intervals, rounds and passes are those of Algorithms 1 and 2, each offers every job
  that waits, own shares first; costs are those at the prices (8) of what was in use then; admitted is who gains.

It does not decide whether a schedule was the best for its job, nor where bases come from. Prices are irrational: costs
(and powers that are no whole number) may be off by ``--tolerance``, relative to the prices of the round so far.
Exit status: 0 all accepted, 1 something is rejected, 2 something cannot be read.
Source: Astraea (posted prices), Eq. (1)-(3), (8), (11), Algorithms 1-3.
"""

import json
import re
from collections import Counter, namedtuple
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from .reading import Unreadable, opened

NEAR, MOST, MOST_SLOTS, BESIDE = (
    Fraction("1e-9"),
    20,
    10**7,
    "options backend revenue gains unscheduled proven seconds",
)
Spots = tuple[tuple[int, int], ...]  # (server, how many there), servers rising
Kind = namedtuple("Kind", "name bandwidth")
Holding = namedtuple("Holding", "name workers ps")  # a tenant's quotas, or what a server holds, one a type
Schedule = namedtuple("Schedule", "job first last workers ps worker_type ps_type together")
Bases = namedtuple("Bases", "interval rounds slots workers ps")
Job = namedtuple(
    "Job", "name tenant arrival chunks work minibatch_time update_time gradient utility"
)  # work: E D M
OFFER = "job interval round own schedule worker_cost ps_cost utility origin admitted"
JOB = "name tenant arrival epochs chunks minibatches minibatch_time update_time gradient utility"
PARTS, TIMES, TYPES = ("workers", "ps"), ("minibatch", "update"), ("worker_type", "ps_type")


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
    need(
        type(value) is kind and (kind is not int or value >= least),
        f"{place}: {value!r:.60} cannot stand there",
    )
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
    need(
        all(type(name) is str for name in names) and len(set(names)) == len(names),
        f"{place}: odd, or there twice",
    )
    return {name: at for at, name in enumerate(names)}


def row(known: dict[str, int], name: Any, place: str) -> int:
    """Return where a name stands."""
    return (
        known[name] if need(type(name) is str and name in known, f"{place}: {name!r:.60} is unknown") else -1
    )


#: Utilities f by form: what their numbers are called, whether they fall, and f(t).
KEYS = {"linear": "slope height", "power": "scale exponent", "steps": "values"}
FALLS: dict[str, Callable[..., bool]] = {
    "linear": lambda k, g: k <= 0,
    "power": lambda e, kappa: e > 0 and kappa > 0,
    "steps": lambda values: len(values) > 0 and values == sorted(values, reverse=True),
}
VALUE: dict[str, Callable[..., Any]] = {
    "linear": lambda t, k, g: k * t + g,
    "power": lambda t, e, kappa: (e / t) ** (kappa if kappa % 1 else int(kappa)),
    "steps": lambda t, values: values[min(max(-int(-t // 1), 0), len(values) - 1)],
}


def utility(data: Any, place: str) -> Callable[[Fraction], Any]:
    """Return the function that an object describes."""
    form = str(data.get("form")) if type(data) is dict else ""
    need(form in KEYS, f"{place}: no form {form!r:.60}")
    told = [fields(data, f"form {KEYS[form]}", place)[key] for key in KEYS[form].split()]
    given = [
        [number(v, place) for v in items(x, place)] if form == "steps" else number(x, place) for x in told
    ]
    need(FALLS[form](*given), f"{place}: it rises, or there is none")
    return lambda time: VALUE[form](time, *given)


class Plan:
    """A document, read; ``violations`` says what is wrong in it. What `BESIDE` names is told too, and not judged."""

    def __init__(self, data: Any, tolerance: Fraction = NEAR) -> None:
        judged = {k: v for k, v in of(dict, data, "document").items() if k not in BESIDE.split()}
        told = fields(judged, "schema policy batch bases schedules admissions payments", "document")
        need(of(int, told["schema"], "schema") == 1, "schema: it is not 1")
        self.policy, self.tolerance = of(str, told["policy"], "policy"), tolerance
        self._read_batch(fields(told["batch"], "tenants worker_types ps_types servers jobs", "batch"))
        self.bases = [self._bases(each) for each in items(told["bases"], "bases")]
        self.schedules = [self._schedule(each, "schedule") for each in items(told["schedules"], "schedules")]
        self.offers = [self._offer(each) for each in items(told["admissions"], "admissions")]
        self.payments = [self._payment(each) for each in items(told["payments"], "payments")]

    def _read_batch(self, told: dict[str, Any]) -> None:
        told_types = (items(told[f"{key}s"], key) for key in TYPES)
        self.kinds = [
            [Kind(**fields(each, "name bandwidth", "types")) for each in types] for types in told_types
        ]
        self.links = [
            [amount(each.bandwidth, "bandwidth", above=True) for each in kinds] for kinds in self.kinds
        ]
        self.kind = [index(kinds, "types") for kinds in self.kinds]
        need(all(self.kind), "types: there is none")
        self.tenants = [self._holding(each) for each in items(told["tenants"], "tenants")]
        self.servers = [self._holding(each) for each in items(told["servers"], "servers")]
        self.tenant, self.server = index(self.tenants, "tenants"), index(self.servers, "servers")
        self.jobs = [self._job(each) for each in items(told["jobs"], "jobs")]
        self.job = index(self.jobs, "jobs")

    def _holding(self, data: Any) -> Holding:
        told = fields(data, "name workers ps", "tenant or server")
        held = (items(told[part], part, len(self.kinds[at])) for at, part in enumerate(PARTS))
        return Holding(
            told["name"], *([of(int, count, "workers or ps") for count in counts] for counts in held)
        )

    def _job(self, data: Any) -> Job:
        told = fields(data, JOB, "job")
        place = f"job {told['name']!r:.60}"
        epochs, chunks, small = (of(int, told[key], place, 1) for key in ("epochs", "chunks", "minibatches"))
        told_times = (items(told[f"{key}_time"], place, len(self.kinds[at])) for at, key in enumerate(TIMES))
        small_time, update = (
            [amount(v, place, above=not at) for v in each] for at, each in enumerate(told_times)
        )
        tenant, arrival = (
            row(self.tenant, told["tenant"], place),
            of(int, told["arrival"], f"{place}, arrival"),
        )
        gradient, worth = amount(told["gradient"], place), utility(told["utility"], f"{place}, utility")
        return Job(
            told["name"],
            tenant,
            arrival,
            chunks,
            epochs * chunks * small,
            small_time,
            update,
            gradient,
            worth,
        )

    def _bases(self, data: Any) -> Bases:
        told = fields(data, " ".join(Bases._fields), "bases")
        told_theta = (items(told[part], "bases", len(self.kinds[at])) for at, part in enumerate(PARTS))
        theta = [[number(each, "bases") for each in each_part] for each_part in told_theta]
        need(min(map(min, theta)) >= 1, "bases: one is below 1")
        whole = (of(int, told[key], f"bases, {key}", 1) for key in ("interval", "rounds", "slots"))
        return Bases(*whole, *theta)

    def _schedule(self, data: Any, place: str) -> Schedule:
        told = fields(data, " ".join(Schedule._fields), place)
        first, last = (
            of(int, told[key], f"{place}, {key}", 1) for key in ("first", "last")
        )  # (3o): t-, t+ in [T]
        need(first <= last <= MOST_SLOTS, f"{place}: slots {first} to {last}")
        job, together = row(self.job, told["job"], place), of(bool, told["together"], f"{place}, together")
        workers, ps = (self._spots(told[part], f"{place}, {part}") for part in PARTS)
        worker, server = (row(kind, told[key], place) for kind, key in zip(self.kind, TYPES, strict=True))
        return Schedule(job, first, last, workers, ps, worker, server, together)

    def _spots(self, data: Any, place: str) -> Spots:
        pairs = [items(each, place, 2) for each in items(data, place)]
        found = tuple(
            (row(self.server, name, place), of(int, count, place, 1)) for name, count in pairs
        )  # (3o)
        need(all(a < b for (a, _), (b, _) in pairwise(found)), f"{place}: servers do not rise")
        return found

    def _offer(self, data: Any) -> dict[str, Any]:
        told = fields(data, OFFER, "admission")
        place = f"admission of {told['job']!r:.60}"
        told["job"] = row(self.job, told["job"], place)
        for key, kind, least in (
            ("interval", int, 1),
            ("round", int, 1),
            ("own", bool, 0),
            ("admitted", bool, 0),
        ):
            of(kind, told[key], f"{place}, {key}", least)
        told["costs"] = [amount(told[key], place) for key in ("worker_cost", "ps_cost")]
        told["utility"], _ = number(told["utility"], place), of(int, told["origin"], f"{place}, origin")
        need(told["schedule"] is not None or not told["admitted"], f"{place}: admitted to nothing")
        told["schedule"] = None if told["schedule"] is None else self._schedule(told["schedule"], place)
        need(
            told["schedule"] is None or told["schedule"].job == told["job"],
            f"{place}: another job's schedule",
        )
        return told

    def _payment(self, data: Any) -> dict[str, Any]:
        told = fields(data, "job slot workers ps incomes", "payment")
        told["job"] = row(self.job, told["job"], "payment")
        told["slot"], told["paid"] = (
            of(int, told["slot"], "slot", 1),
            [amount(told[part], "pay") for part in PARTS],
        )
        told["incomes"] = [
            amount(each, "income") for each in items(told["incomes"], "incomes", len(self.tenants))
        ]
        return told

    def violations(self) -> Iterator[str]:
        """Yield what is wrong."""
        yield from self._quotas()
        if len({each.job for each in self.schedules}) < len(self.schedules):
            yield "a job has two schedules"
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
                    sum(each[1 + at][kind] for each in those) for those in (self.tenants, self.servers)
                )
                if owned != held:
                    yield f"quotas: tenants own {owned} {part} of type {name!r}, servers hold {held}"

    def _alone(self, it: Schedule) -> Iterator[str]:
        job, workers, ps = self.jobs[it.job], *(sum(dict(each).values()) for each in (it.workers, it.ps))
        if workers > job.chunks:
            yield f"(3e) {workers} workers for {job.chunks} chunks"
        if not (workers and ps):
            yield f"(3g) {workers} workers and {ps} PS"
        b_w, b_p = self.links[0][it.worker_type], self.links[1][it.ps_type]
        for server, here in it.ps:
            away = workers - dict(it.workers).get(server, 0)
            if away * b_w > here * b_p:
                yield f"(3i) {here} PS on {self.servers[server].name!r} carry {here * b_p} of {away * b_w}"
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
        for at, (whole, alone) in enumerate((("(3a)", "(3c)"), ("(3b)", "(3d)"))):
            use = Counter[Any]()
            for it in self.schedules:
                for server, here in (*it[3 + at], (None, sum(dict(it[3 + at]).values()))):
                    use.update({(server, it[5 + at], slot): here for slot in range(it.first, it.last + 1)})
            for (server, kind, slot), used in use.items():
                there = sum(
                    each[1 + at][kind]
                    for each in (self.tenants if server is None else [self.servers[server]])
                )
                if used > there:
                    place = whole if server is None else f"{alone} server {self.servers[server].name!r},"
                    yield f"{place} slot {slot}: {used} {PARTS[at]} of {there}, type {self.kinds[at][kind].name!r}"

    def _decisions(self) -> Iterator[str]:
        taken = [each for each in self.offers if each["admitted"]]
        if self.offers and Counter(each["schedule"] for each in taken) != Counter(self.schedules):
            yield "the schedules are not those admitted"
        for each in self.offers:
            found, name = each["schedule"], self.jobs[each["job"]].name
            right = (
                self.jobs[each["job"]].utility(Fraction(found.last - each["origin"]))
                if found
                else Fraction(0)
            )
            if each["utility"] != right and (
                type(right) is Fraction or not self._near(each["utility"], right, right)
            ):
                yield f"admission of {name!r}: utility {each['utility']} and should be {right}"
            if found is None and any(each["costs"]):
                yield f"admission of {name!r}: nothing costs something"
        for (slot, tenant, at, kind), used in self._own_use().items():
            there = self.tenants[tenant]
            if used > there[1 + at][kind]:
                yield f"slot {slot}: {there.name!r} has {used} {PARTS[at]} within a share of {there[1 + at][kind]}"

    def _own_use(self) -> Counter[Any]:  # by slot, tenant, workers or PS, type: what jobs admitted as own use
        use = Counter[Any]()
        for it in (each["schedule"] for each in self.offers if each["admitted"] and each["own"]):
            for slot, at in product(range(it.first, it.last + 1), (0, 1)):
                use[slot, self.jobs[it.job].tenant, at, it[5 + at]] += sum(dict(it[3 + at]).values())
        return use

    def _division(self) -> Iterator[str]:
        used, told = self._own_use(), {(each["job"], each["slot"]): each for each in self.payments}
        if len(told) < len(self.payments):
            yield "a job pays twice for a slot"
        for each in self.offers:
            it, costs = each["schedule"], each["costs"]
            if not each["admitted"] or each["own"]:
                continue
            free = not any(costs) and not any(
                job == it.job for job, _ in told
            )  # nothing to pay, and nobody does
            for slot in range(it.first, it.last + 1) if not free else ():
                place = f"payment of {self.jobs[it.job].name!r}, slot {slot}"
                paid, right = told.pop((it.job, slot), None), [Fraction(0)] * len(self.tenants)
                for at, cost in enumerate(costs):
                    kind, part = it[5 + at], cost / (it.last - it.first + 1)
                    left = [own[1 + at][kind] - used[slot, u, at, kind] for u, own in enumerate(self.tenants)]
                    right = [a + part * b / max(sum(left), 1) for a, b in zip(right, left, strict=True)]
                    if paid is not None and paid["paid"][at] != part:
                        yield f"{place}: {PARTS[at]} cost {paid['paid'][at]} and should cost {part}"
                if paid is None:
                    yield f"{place}: missing"
                elif paid["incomes"] != right or sum(right) != sum(paid["paid"]):
                    yield f"{place}: incomes {paid['incomes']!s:.200} and should be {right!s:.200}"
        yield from (f"payment of {self.jobs[job].name!r}, slot {slot}: for nothing" for job, slot in told)

    def _trace(self) -> Iterator[str]:
        offers, waiting, use = iter(self.offers), list[int](), Counter[Any]()
        arrived = {job: max(each.arrival, 1).bit_length() for job, each in enumerate(self.jobs)}
        for number, base in enumerate(self.bases, start=1):
            if (base.interval, base.rounds, base.slots) != (number, self.bases[0].rounds, 2**number):
                yield f"interval {number}: its bases are those of {base.interval}, {base.rounds}, {base.slots} slots"
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
        it, origin, job = (
            each["schedule"],
            (base.rounds + each["round"] - 1) * base.slots,
            self.jobs[each["job"]],
        )
        if each["origin"] != origin:
            yield f"{job.name!r}: the round begins at {origin}, not {each['origin']}"
        if it is None:
            return
        if not origin < it.first <= it.last <= origin + base.slots:
            yield f"{job.name!r}: slots {it.first} to {it.last} leave the round"
        gain = each["utility"] - sum(each["costs"])
        for at, cost in enumerate(each["costs"]):
            kind, taken = it[5 + at], sum(dict(it[3 + at]).values())
            total, theta = sum(server[1 + at][kind] for server in self.servers), float(base[3 + at][kind])
            # Eq. (8): theta to the part in use, less 1
            price = {
                t: theta ** (use[at, kind, t] / max(total, 1)) - 1 for t in range(origin + 1, it.last + 1)
            }
            right = Fraction(taken * sum(price.get(slot, 0.0) for slot in range(it.first, it.last + 1)))
            if not self._near(cost, right, Fraction(taken * sum(price.values()))):
                yield f"{job.name!r}: {PARTS[at]} cost {float(cost)} and should cost {float(right)}"
            use.update({(at, kind, slot): taken * each["admitted"] for slot in range(it.first, it.last + 1)})
        if each["admitted"] is not (gain > 0) and not self._near(gain, Fraction(0), abs(each["utility"])):
            yield f"{job.name!r}: gains {float(gain)} and is {'admitted' if each['admitted'] else 'refused'}"

    def _near(self, found: Fraction, right: Any, size: Any) -> bool:
        return abs(found - Fraction(right)) <= self.tolerance * max(Fraction(size), Fraction(1))

    def statement(self) -> str:
        """Return what has been checked, for a document without violations."""
        paid = sum(sum(each["paid"]) for each in self.payments)
        told = (
            f"{len(self.offers)} decisions {'at posted prices' if self.bases else 'without bases of prices'}"
        )
        told = (
            f"{len(self.schedules)} of {len(self.jobs)} jobs of {self.policy!r} run within (3a)-(3o); {told}"
        )
        return f"{told}; {len(self.payments)} payments, {float(paid):.6g} in all, reach the owners exactly"


def decide(text: str, tolerance: Fraction = NEAR) -> tuple[list[str], str]:
    """Return the violations in a document, none where it is right, and then the statement that has been checked."""

    def of_object(pairs: list[tuple[str, Any]]) -> Any:
        return need(len(dict(pairs)) == len(pairs), "a key stands twice in an object") and dict(pairs)

    try:
        plan = Plan(json.loads(text, object_pairs_hook=of_object), tolerance)
        found = list(plan.violations())
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise Unreadable(f"not the JSON of a plan: {error!r:.200}") from error
    return found, "" if found else plan.statement()


def recognises(first: Any) -> bool:
    """Return whether a JSON value is meant as a plan."""
    return type(first) is dict and "schedules" in first


def decide_file(path: Path, tolerance: Fraction | None = None) -> tuple[list[str], str]:
    """Return the violations in a file, none where it is right, and then the statement that has been checked."""
    with opened(path) as stream:
        return decide(stream.read().decode("utf-8"), NEAR if tolerance is None else tolerance)
