"""A plan of schedules as its document holds it: a batch of jobs, who runs when and where, and why.

`fairopt.schedules.document` says what the keys of the document are. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from .reading import MOST_DIGITS, Entry, Unreadable, brief, digest, distinct, require, within

PARTS = ("workers", "ps")  #: a job's workers, and its parameter servers (PS)
#: What a document may hold besides, and what is not judged.
BESIDE = "options backend revenue gains unscheduled proven seconds"
Spots = tuple[tuple[int, int], ...]  #: (server, how many there), servers rising
Utility = Callable[[Fraction], Fraction | float]


@dataclass(frozen=True)
class Holder:
    """A tenant with its quotas, or a server with what it holds: ``has[part][type]``, workers first."""

    name: str
    has: list[list[int]]


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
    spots: tuple[Spots, ...]
    types: tuple[int, ...]
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
    theta: list[list[Fraction]]


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
        told = Entry(data, floats=True).fields(
            "schema policy batch bases schedules admissions payments", BESIDE
        )
        told["schema"].version()
        self.policy, self.batch = told["policy"].text(), digest(told["batch"].value)
        self._read_batch(told["batch"].fields("tenants worker_types ps_types servers jobs"))
        self.bases = [self._bases(each) for each in told["bases"].items()]
        self.schedules = [self._schedule(each.at("schedule")) for each in told["schedules"].items()]
        self.offers = [self._offer(each) for each in told["admissions"].items()]
        self.payments = [self._payment(each) for each in told["payments"].items()]

    def _read_batch(self, told: Entry) -> None:
        devices = [
            [each.fields("name bandwidth") for each in told[key].items()]
            for key in ("worker_types", "ps_types")
        ]
        self.types = [_positions([each["name"].name() for each in of_part], "types") for of_part in devices]
        require(all(self.types), "batch", "there is a part without a type")
        self.bandwidth = [
            [each["bandwidth"].amount(positive=True) for each in of_part] for of_part in devices
        ]
        self.tenants = [self._holder(each) for each in told["tenants"].items()]
        self.servers = [self._holder(each) for each in told["servers"].items()]
        self.tenant = _positions([each.name for each in self.tenants], "tenants")
        self.server = _positions([each.name for each in self.servers], "servers")
        self.jobs = [self._job(each) for each in told["jobs"].items()]
        self.job = _positions([each.name for each in self.jobs], "jobs")

    def _holder(self, entry: Entry) -> Holder:
        told = entry.fields("name workers ps")
        has = [
            [count.integer() for count in told[part].items(len(types))]
            for part, types in zip(PARTS, self.types, strict=True)
        ]
        return Holder(told["name"].name(), has)

    def _by_type(self, told: Entry, keys: Sequence[str]) -> list[list[Fraction]]:
        """Return numbers by part and type; ``keys`` are those of the parts."""
        return [told[key].numbers(len(types)) for key, types in zip(keys, self.types, strict=True)]

    def _job(self, entry: Entry) -> Job:
        keys = "name tenant arrival epochs chunks minibatches minibatch_time update_time gradient utility"
        told = entry.fields(keys)
        told = told.at(f"job {brief(told['name'].value)}")
        epochs, chunks, small = (told[key].integer(1) for key in ("epochs", "chunks", "minibatches"))
        minibatch, update = self._by_type(told, ("minibatch_time", "update_time"))
        no_times = "a time is negative, or that of a mini-batch is 0"
        require(min(minibatch) > 0 <= min(update), told.place, no_times)
        return Job(
            name=told["name"].name(),
            tenant=told["tenant"].position(self.tenant),
            arrival=told["arrival"].integer(),
            chunks=chunks,
            work=epochs * chunks * small,
            minibatch_time=minibatch,
            update_time=update,
            gradient=told["gradient"].amount(),
            utility=utility(told["utility"]),
        )

    def _bases(self, entry: Entry) -> Bases:
        told = entry.fields("interval rounds slots workers ps")
        theta = self._by_type(told, PARTS)
        require(min(map(min, theta)) >= 1, entry.place, "one is below 1")
        interval, rounds, slots = (told[key].integer(1) for key in ("interval", "rounds", "slots"))
        return Bases(interval, rounds, slots, theta)

    def _schedule(self, entry: Entry) -> Schedule:
        told = entry.fields("job first last workers ps worker_type ps_type together")
        first, last = (told[key].integer(1) for key in ("first", "last"))
        require(first <= last, entry.place, f"slots {first} to {last}")
        return Schedule(
            job=told["job"].position(self.job),
            first=first,
            last=last,
            spots=tuple(self._spots(told[part]) for part in PARTS),
            types=tuple(
                told[key].position(types)
                for key, types in zip(("worker_type", "ps_type"), self.types, strict=True)
            ),
            together=told["together"].truth(),
        )

    def _spots(self, entry: Entry) -> Spots:
        pairs = [each.items(2) for each in entry.items()]
        found = tuple((server.position(self.server), count.integer(1)) for server, count in pairs)
        require(all(a < b for (a, _), (b, _) in pairwise(found)), entry.place, "servers do not rise")
        return found

    def _offer(self, entry: Entry) -> Offer:
        told = entry.fields("job interval round own schedule worker_cost ps_cost utility origin admitted")
        told = told.at(f"admission of {brief(told['job'].value)}")
        offer = Offer(
            job=told["job"].position(self.job),
            interval=told["interval"].integer(1),
            round=told["round"].integer(1),
            own=told["own"].truth(),
            schedule=None if told["schedule"].value is None else self._schedule(told["schedule"]),
            costs=[told[key].amount() for key in ("worker_cost", "ps_cost")],
            utility=told["utility"].number(),
            origin=told["origin"].integer(),
            admitted=told["admitted"].truth(),
        )
        require(offer.schedule or not offer.admitted, told.place, "admitted to nothing")
        no_other = offer.schedule is None or offer.schedule.job == offer.job
        require(no_other, told.place, "another job's schedule")
        return offer

    def _payment(self, entry: Entry) -> Payment:
        told = entry.fields("job slot workers ps incomes")
        return Payment(
            job=told["job"].position(self.job),
            slot=told["slot"].integer(1),
            paid=[told[part].amount() for part in PARTS],
            incomes=[each.amount() for each in told["incomes"].items(len(self.tenants))],
        )


def _positions(names: list[str], place: str) -> dict[str, int]:
    return {name: at for at, name in enumerate(distinct(names, place))}


# -- utilities ---------------------------------------------------------------------------------------------
def utility(entry: Entry) -> Utility:
    """Return the function of the time of completion that an object describes; it must not rise with time."""
    told = entry.by_name()
    if "form" not in told:
        raise entry.odd("is no utility")
    return FORMS[told["form"].choice(FORMS)](entry)


def linear(entry: Entry) -> Utility:
    """Return f(t) = slope * t + height."""
    told = entry.fields("form slope height")
    slope, height = told["slope"].number(), told["height"].number()
    require(slope <= 0, entry.place, "it rises")
    return lambda time: slope * time + height


def power(entry: Entry) -> Utility:
    """Return f(t) = (scale / t) ** exponent; it is exact where the exponent is a whole number."""
    told, place = entry.fields("form scale exponent"), entry.place
    scale, exponent = (told[key].amount(positive=True) for key in ("scale", "exponent"))

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


def steps(entry: Entry) -> Utility:
    """Return f(t) = the value of the step that t, rounded up, stands on; the last value stays."""
    values = entry.fields("form values")["values"].numbers()
    require(values and values == sorted(values, reverse=True), entry.place, "it rises, or there is none")
    return lambda time: values[min(max(-int(-time // 1), 0), len(values) - 1)]


FORMS: dict[str, Callable[[Entry], Utility]] = {"linear": linear, "power": power, "steps": steps}
