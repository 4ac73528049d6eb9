"""A plan of schedules as its document holds it: a batch of jobs, who runs when and where, and why.

`fairopt.schedules.document` says what the keys of the document are. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from .reading import (
    MOST_DIGITS,
    Unreadable,
    amount,
    brief,
    choice,
    digest,
    fields,
    integer,
    items,
    names,
    number,
    numbers,
    position,
    require,
    schema,
    text,
    truth,
    within,
)

PARTS = ("workers", "ps")  #: a job's workers, and its parameter servers (PS)
TYPES = ("worker_types", "ps_types")
#: What a document may hold besides, and what is not judged.
BESIDE = "options backend revenue gains unscheduled proven seconds"
Spots = tuple[tuple[int, int], ...]  #: (server, how many there), servers rising
Utility = Callable[[Fraction], Fraction | float]


@dataclass(frozen=True)
class Holder:
    """A tenant with its quotas, or a server with what it holds: ``has[part][type]``, workers first."""

    name: str
    has: tuple[list[int], list[int]]


@dataclass(frozen=True)
class Job:
    """A job: ``work`` mini-batches, with a ``utility`` that falls with the time of completion."""

    name: str
    tenant: int
    arrival: int
    chunks: int
    work: int
    minibatch_time: list[Fraction]
    update_time: list[Fraction]
    gradient: Fraction
    utility: Utility


@dataclass(frozen=True)
class Schedule:
    """Where a job runs from slot ``first`` to ``last``: ``spots[part]``, on devices of ``types[part]``."""

    job: int
    first: int
    last: int
    spots: tuple[Spots, Spots]
    types: tuple[int, int]
    together: bool

    @property
    def slots(self) -> int:
        """How many slots it takes."""
        return self.last - self.first + 1

    def devices(self, part: int) -> int:
        """Return how many workers, or PS, it has."""
        return sum(count for _, count in self.spots[part])


@dataclass(frozen=True)
class Bases:
    """What prices rise with in an interval, ``theta[part][type]``; its rounds have ``slots`` slots each."""

    interval: int
    rounds: int
    slots: int
    theta: tuple[list[Fraction], list[Fraction]]


@dataclass(frozen=True)
class Offer:
    """A decision: the schedule (or None) that a job was offered in a round, its costs, and the answer."""

    job: int
    interval: int
    round: int
    own: bool
    schedule: Schedule | None
    costs: list[Fraction]
    utility: Fraction
    origin: int
    admitted: bool


@dataclass(frozen=True)
class Payment:
    """What a job pays for a slot, by part, and what each tenant earns by it."""

    job: int
    slot: int
    paid: list[Fraction]
    incomes: list[Fraction]


class Plan:
    """A document, read."""

    def __init__(self, data: Any) -> None:
        told = fields(data, "plan", "schema policy batch bases schedules admissions payments", BESIDE)
        schema(told["schema"], "")
        self.policy, self.batch = text(told["policy"], "policy"), digest(told["batch"])
        self._read_batch(fields(told["batch"], "batch", "tenants worker_types ps_types servers jobs"))
        self.bases = [
            self._bases(each, f"bases[{at}]") for at, each in enumerate(items(told["bases"], "bases"))
        ]
        self.schedules = [self._schedule(each, "schedule") for each in items(told["schedules"], "schedules")]
        self.offers = [self._offer(each) for each in items(told["admissions"], "admissions")]
        self.payments = [self._payment(each) for each in items(told["payments"], "payments")]

    def _read_batch(self, told: dict[str, Any]) -> None:
        devices = [
            [fields(each, key, "name bandwidth") for each in items(told[key], f"batch, {key}")]
            for key in TYPES
        ]
        self.types = [_positions(each, key) for each, key in zip(devices, TYPES, strict=True)]
        require(all(self.types), "batch", "there is a part without a type")
        self.bandwidth = [
            [amount(each["bandwidth"], f"{key}, bandwidth", positive=True, floats=True) for each in of_part]
            for of_part, key in zip(devices, TYPES, strict=True)
        ]
        self.tenants = [self._holder(each, "tenant") for each in items(told["tenants"], "batch, tenants")]
        self.servers = [self._holder(each, "server") for each in items(told["servers"], "batch, servers")]
        self.tenant = _positions([vars(each) for each in self.tenants], "tenants")
        self.server = _positions([vars(each) for each in self.servers], "servers")
        self.jobs = [self._job(each) for each in items(told["jobs"], "batch, jobs")]
        self.job = _positions([vars(each) for each in self.jobs], "jobs")

    def _holder(self, data: Any, place: str) -> Holder:
        told = fields(data, place, "name workers ps")
        workers, ps = (
            [
                integer(count, f"{place}, {part}")
                for count in items(told[part], f"{place}, {part}", len(types))
            ]
            for part, types in zip(PARTS, self.types, strict=True)
        )
        return Holder(told["name"], (workers, ps))

    def _job(self, data: Any) -> Job:
        keys = "name tenant arrival epochs chunks minibatches minibatch_time update_time gradient utility"
        told = fields(data, "job", keys)
        place = f"job {brief(told['name'])}"
        epochs, chunks, small = (
            integer(told[key], f"{place}, {key}", least=1) for key in ("epochs", "chunks", "minibatches")
        )
        minibatch, update = (
            numbers(told[key], f"{place}, {key}", len(types), floats=True)
            for key, types in zip(("minibatch_time", "update_time"), self.types, strict=True)
        )
        require(min(minibatch) > 0 <= min(update), place, "a time is negative, or that of a mini-batch is 0")
        return Job(
            name=told["name"],
            tenant=position(told["tenant"], self.tenant, f"{place}, tenant"),
            arrival=integer(told["arrival"], f"{place}, arrival"),
            chunks=chunks,
            work=epochs * chunks * small,
            minibatch_time=minibatch,
            update_time=update,
            gradient=amount(told["gradient"], f"{place}, gradient", floats=True),
            utility=utility(told["utility"], f"{place}, utility"),
        )

    def _bases(self, data: Any, place: str) -> Bases:
        told = fields(data, place, "interval rounds slots workers ps")
        interval, rounds, slots = (
            integer(told[key], f"{place}, {key}", least=1) for key in ("interval", "rounds", "slots")
        )
        workers, ps = (
            numbers(told[part], f"{place}, {part}", len(types), floats=True)
            for part, types in zip(PARTS, self.types, strict=True)
        )
        require(min(workers + ps) >= 1, place, "one is below 1")
        return Bases(interval, rounds, slots, (workers, ps))

    def _schedule(self, data: Any, place: str) -> Schedule:
        told = fields(data, place, "job first last workers ps worker_type ps_type together")
        first, last = (integer(told[key], f"{place}, {key}", least=1) for key in ("first", "last"))
        require(first <= last, place, f"slots {first} to {last}")
        workers, ps = (self._spots(told[part], f"{place}, {part}") for part in PARTS)
        worker_type, ps_type = (
            position(told[key], known, f"{place}, {key}")
            for key, known in zip(("worker_type", "ps_type"), self.types, strict=True)
        )
        job, together = position(told["job"], self.job, place), truth(told["together"], f"{place}, together")
        return Schedule(job, first, last, (workers, ps), (worker_type, ps_type), together)

    def _spots(self, data: Any, place: str) -> Spots:
        pairs = [items(each, place, 2) for each in items(data, place)]
        found = tuple(
            (position(name, self.server, place), integer(count, place, least=1)) for name, count in pairs
        )
        require(all(a < b for (a, _), (b, _) in pairwise(found)), place, "servers do not rise")
        return found

    def _offer(self, data: Any) -> Offer:
        keys = "job interval round own schedule worker_cost ps_cost utility origin admitted"
        told = fields(data, "admission", keys)
        place = f"admission of {brief(told['job'])}"
        schedule = None if told["schedule"] is None else self._schedule(told["schedule"], place)
        offer = Offer(
            job=position(told["job"], self.job, place),
            interval=integer(told["interval"], f"{place}, interval", least=1),
            round=integer(told["round"], f"{place}, round", least=1),
            own=truth(told["own"], f"{place}, own"),
            schedule=schedule,
            costs=[amount(told[key], f"{place}, {key}", floats=True) for key in ("worker_cost", "ps_cost")],
            utility=number(told["utility"], f"{place}, utility", floats=True),
            origin=integer(told["origin"], f"{place}, origin"),
            admitted=truth(told["admitted"], f"{place}, admitted"),
        )
        require(schedule or not offer.admitted, place, "admitted to nothing")
        require(schedule is None or schedule.job == offer.job, place, "another job's schedule")
        return offer

    def _payment(self, data: Any) -> Payment:
        told = fields(data, "payment", "job slot workers ps incomes")
        return Payment(
            job=position(told["job"], self.job, "payment"),
            slot=integer(told["slot"], "payment, slot", least=1),
            paid=[amount(told[part], f"payment, {part}", floats=True) for part in PARTS],
            incomes=[
                amount(each, "payment, incomes", floats=True)
                for each in items(told["incomes"], "payment, incomes", len(self.tenants))
            ],
        )


def _positions(entries: Sequence[dict[str, Any]], place: str) -> dict[str, int]:
    return {name: at for at, name in enumerate(names([each["name"] for each in entries], place))}


# -- utilities ---------------------------------------------------------------------------------------------
def utility(data: Any, place: str) -> Utility:
    """Return the function of the time of completion that an object describes; it must not rise with time."""
    require(type(data) is dict, place, "no utility")
    form = choice(data.get("form"), place, list(FORMS))
    return FORMS[form](data, place)


def linear(data: Any, place: str) -> Utility:
    """Return f(t) = slope * t + height."""
    told = fields(data, place, "form slope height")
    slope, height = (number(told[key], f"{place}, {key}", floats=True) for key in ("slope", "height"))
    require(slope <= 0, place, "it rises")
    return lambda time: slope * time + height


def power(data: Any, place: str) -> Utility:
    """Return f(t) = (scale / t) ** exponent; it is exact where the exponent is a whole number."""
    told = fields(data, place, "form scale exponent")
    scale, exponent = (
        amount(told[key], f"{place}, {key}", positive=True, floats=True) for key in ("scale", "exponent")
    )

    def value(time: Fraction) -> Fraction | float:
        require(time > 0, place, f"it is asked for time {time}")
        base = scale / time
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if exponent.denominator == 1:
            within(int(exponent) * bits, 4 * MOST_DIGITS, f"{place}, exponent", "bits of a power")
            return base ** int(exponent)
        try:
            found: float = float(base) ** float(exponent)
            return found
        except OverflowError as error:
            raise Unreadable(f"{place}: its power is too large") from error

    return value


def steps(data: Any, place: str) -> Utility:
    """Return f(t) = the value of the step that t, rounded up, stands on; the last value stays."""
    told = fields(data, place, "form values")
    values = numbers(told["values"], f"{place}, values", floats=True)
    require(values and values == sorted(values, reverse=True), place, "it rises, or there is none")
    return lambda time: values[min(max(-int(-time // 1), 0), len(values) - 1)]


FORMS: dict[str, Callable[[Any, str], Utility]] = {"linear": linear, "power": power, "steps": steps}
