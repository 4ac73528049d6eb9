"""A plan of schedules as its document holds it: a batch of jobs, who runs when and where, and why.

`fairopt.schedules.document` says what the keys of the document are. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from .reading import MOST_DIGITS, Entry, Unreadable, brief, digest, distinct, exactly, require, within

PARTS = ("workers", "ps")  #: a job's workers, and its parameter servers (PS)
DOCUMENT = "schema policy batch bases schedules admissions payments"
#: What a document may hold besides, and what is not judged.
BESIDE = "options backend revenue gains unscheduled proven seconds"
Spots = tuple[tuple[int, int], ...]  #: (server, how many there), servers rising
Utility = Callable[[Fraction], Fraction | float]


class Holder:
    """A tenant with its quotas, or a server with what it holds: ``has[part][type]``, workers first."""

    def __init__(self, entry: Entry, plan: Plan) -> None:
        fields = entry.fields("name workers ps")
        self.name = fields["name"].name()
        sizes = zip(PARTS, plan.types, strict=True)
        self.has = [[count.integer() for count in fields[part].items(len(types))] for part, types in sizes]
        self.digested = [self.name, *self.has]


class Job:
    """A job: ``work`` mini-batches, with a ``utility`` that falls with the time of completion."""

    def __init__(self, entry: Entry, plan: Plan) -> None:
        keys = "name tenant arrival epochs chunks minibatches minibatch_time update_time gradient utility"
        fields = entry.fields(keys).at(f"job {brief(entry.value.get('name'))}")
        self.name = fields["name"].name()
        self.tenant = fields["tenant"].position(plan.tenant)
        self.arrival = fields["arrival"].integer()
        self.chunks = fields["chunks"].integer(1)
        self.work = fields["epochs"].integer(1) * self.chunks * fields["minibatches"].integer(1)
        self.minibatch_time, self.update_time = plan.by_type(fields, ("minibatch_time", "update_time"))
        fine = min(self.minibatch_time) > 0 <= min(self.update_time)
        require(fine, fields.place, "a time is negative, or that of a mini-batch is 0")
        self.gradient = fields["gradient"].amount()
        self.utility = utility(fields["utility"])
        times = (list(map(exactly, each)) for each in (self.minibatch_time, self.update_time))
        self.digested = [self.name, self.tenant, self.arrival, self.chunks, exactly(self.work), *times]
        self.digested += [exactly(self.gradient), utility_exactly(fields["utility"])]


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


class Bases:
    """What prices rise with in an interval, ``theta[part][type]``; its rounds have ``slots`` slots each."""

    def __init__(self, entry: Entry, plan: Plan) -> None:
        fields = entry.fields("interval rounds slots workers ps")
        self.interval, self.rounds = fields["interval"].integer(1), fields["rounds"].integer(1)
        self.slots, self.theta = fields["slots"].integer(1), plan.by_type(fields, PARTS)
        require(min(map(min, self.theta)) >= 1, entry.place, "one is below 1")


class Offer:
    """A decision: the schedule (or None) that a job was offered in a round, its costs, and the answer."""

    def __init__(self, entry: Entry, plan: Plan) -> None:
        fields = entry.fields("job interval round own schedule worker_cost ps_cost utility origin admitted")
        fields = fields.at(f"admission of {brief(fields['job'].value)}")
        self.job = fields["job"].position(plan.job)
        self.interval, self.round = fields["interval"].integer(1), fields["round"].integer(1)
        self.own, self.admitted = fields["own"].truth(), fields["admitted"].truth()
        self.schedule = None if fields["schedule"].value is None else plan.schedule(fields["schedule"])
        self.costs = [fields[key].amount() for key in ("worker_cost", "ps_cost")]
        self.utility, self.origin = fields["utility"].number(), fields["origin"].integer()
        require(self.schedule or not self.admitted, fields.place, "admitted to nothing")
        own = self.schedule is None or self.schedule.job == self.job
        require(own, fields.place, "another job's schedule")


class Payment:
    """What a job pays for a slot, by part, and what each tenant earns by it."""

    def __init__(self, entry: Entry, plan: Plan) -> None:
        fields = entry.fields("job slot workers ps incomes")
        self.job, self.slot = fields["job"].position(plan.job), fields["slot"].integer(1)
        self.paid = [fields[part].amount() for part in PARTS]
        self.incomes = [each.amount() for each in fields["incomes"].items(len(plan.tenants))]


class Plan:
    """A document, read."""

    def __init__(self, data: Any) -> None:
        fields = Entry(data, floats=True).fields(DOCUMENT, BESIDE)
        fields["schema"].version()
        self._read_batch(fields["batch"].fields("tenants worker_types ps_types servers jobs"))
        self.policy, self.batch = fields["policy"].text(), self._digest()
        self.bases = [Bases(each, self) for each in fields["bases"].items()]
        self.schedules = [self.schedule(each.at("schedule")) for each in fields["schedules"].items()]
        self.offers = [Offer(each, self) for each in fields["admissions"].items()]
        self.payments = [Payment(each, self) for each in fields["payments"].items()]

    def _read_batch(self, fields: Entry) -> None:
        parts = (fields[key].items() for key in ("worker_types", "ps_types"))
        devices = [[each.fields("name bandwidth") for each in part] for part in parts]
        self.types = [_positions([each["name"].name() for each in of_part], "types") for of_part in devices]
        require(all(self.types), "batch", "there is a part without a type")
        self.bandwidth = [[each["bandwidth"].amount(positive=True) for each in part] for part in devices]
        self.tenants = [Holder(each, self) for each in fields["tenants"].items()]
        self.servers = [Holder(each, self) for each in fields["servers"].items()]
        self.tenant = _positions([each.name for each in self.tenants], "tenants")
        self.server = _positions([each.name for each in self.servers], "servers")
        self.jobs = [Job(each, self) for each in fields["jobs"].items()]
        self.job = _positions([each.name for each in self.jobs], "jobs")

    def _digest(self) -> str:
        """Return a name for the batch, however its numbers are written."""
        bandwidths = (map(exactly, of_part) for of_part in self.bandwidth)
        types = map(list, map(zip, self.types, bandwidths))
        holders = [[each.digested for each in those] for those in (self.tenants, self.servers)]
        return digest(["batch", *types, *holders, [each.digested for each in self.jobs]])

    def by_type(self, fields: Entry, keys: Sequence[str]) -> list[list[Fraction]]:
        """Return numbers by part and type; ``keys`` are those of the parts."""
        return [fields[key].numbers(len(types)) for key, types in zip(keys, self.types, strict=True)]

    def schedule(self, entry: Entry) -> Schedule:
        """Return a schedule of the batch."""
        fields = entry.fields("job first last workers ps worker_type ps_type together")
        first, last = fields["first"].integer(1), fields["last"].integer(1)
        require(first <= last, entry.place, f"slots {first} to {last}")
        spots = tuple(self._spots(fields[part]) for part in PARTS)
        keys = zip(("worker_type", "ps_type"), self.types, strict=True)
        types = tuple(fields[key].position(known) for key, known in keys)
        job, together = fields["job"].position(self.job), fields["together"].truth()
        return Schedule(job, first, last, spots, types, together)

    def _spots(self, entry: Entry) -> Spots:
        pairs = [each.items(2) for each in entry.items()]
        found = tuple((server.position(self.server), count.integer(1)) for server, count in pairs)
        require(all(a < b for (a, _), (b, _) in pairwise(found)), entry.place, "servers do not rise")
        return found


def _positions(names: list[str], place: str) -> dict[str, int]:
    return {name: at for at, name in enumerate(distinct(names, place))}


# -- utilities ---------------------------------------------------------------------------------------------
def utility(entry: Entry) -> Utility:
    """Return the function of the time of completion that an object describes; it must not rise with time."""
    fields = entry.by_name()
    if "form" not in fields:
        raise entry.odd("is no utility")
    return FORMS[fields["form"].choice(FORMS)](entry)


def utility_exactly(entry: Entry) -> list[Any]:
    """Return the form of a utility and its numbers, for a digest."""
    form, fields = entry["form"].value, entry.fields(f"form {FIGURES[entry['form'].value]}")
    if form == "steps":
        return [form, *map(exactly, fields["values"].numbers())]
    return [form, *(exactly(fields[key].number()) for key in FIGURES[form].split())]


def linear(entry: Entry) -> Utility:
    """Return f(t) = slope * t + height."""
    fields = entry.fields("form slope height")
    slope, height = fields["slope"].number(), fields["height"].number()
    require(slope <= 0, entry.place, "it rises")
    return lambda time: slope * time + height


def power(entry: Entry) -> Utility:
    """Return f(t) = (scale / t) ** exponent; it is exact where the exponent is a whole number."""
    fields, place = entry.fields("form scale exponent"), entry.place
    scale, exponent = (fields[key].amount(positive=True) for key in ("scale", "exponent"))

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


FIGURES = {"linear": "slope height", "power": "scale exponent", "steps": "values"}
FORMS: dict[str, Callable[[Entry], Utility]] = {"linear": linear, "power": power, "steps": steps}
