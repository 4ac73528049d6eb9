"""What both forms of a recorded run have in common: how it begins, how numbers compare, how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import inf
from typing import Any

from .reading import (
    Number,
    brief,
    fields,
    items,
    or_infinity,
    require,
    shown,
    text,
    truth,
)
from .simulate import Simulation
from .trace import Job, Setting

STANDING = "job remaining attained setup last running lease started"
#: Beyond this a tolerance would not tell one round from the next.
MOST_TOLERANCE = Fraction(1, 100)


class Judge:
    """What both forms of a run have in common: how they begin, how numbers are compared, how they end."""

    policy: str
    setting: Setting
    simulation: Simulation
    jobs = 0
    digest = ""

    def __init__(self, tolerance: Fraction) -> None:
        require(0 <= tolerance <= MOST_TOLERANCE, "tolerance", f"it is not from 0 to {MOST_TOLERANCE}")
        self.tolerance, self.floats = tolerance, tolerance > 0

    def violations(self) -> Iterator[str]:
        """Yield what is wrong; `Unreadable` where the form is."""
        raise NotImplementedError

    def begin(self, told: dict[str, Any], trace: dict[str, Any]) -> None:
        """Read what the run began with."""
        self.policy = text(told["policy"], "policy")
        self.setting = Setting(told["length"], told["mechanics"], told["cluster"], trace, self.floats)
        self.simulation = Simulation(self.setting, self.tolerance)
        self.rounds, self.arrival, self.known = 0, Fraction(0), set[str]()

    def job(self, data: Any) -> Job:
        """Read a job; they come by rising arrival, no two with one name."""
        job = self.setting.job(data)
        require(job.arrival >= self.arrival, f"job {job.name!r}", "the jobs' arrivals are not rising")
        require(job.name not in self.known, f"job {job.name!r}", "the name stands twice")
        self.arrival = job.arrival
        self.known.add(job.name)
        return job

    # -- numbers ---------------------------------------------------------------------------------------------
    def off(self, key: str, told: Any, right: Number, scale: Fraction) -> Iterator[str]:
        """Yield that a number is not the right one, up to the tolerance times its scale."""
        found = or_infinity(told, key, floats=self.floats)
        alike = found == right
        if not alike and inf not in (found, right):
            alike = abs(Fraction(found) - Fraction(right)) <= self.tolerance * scale
        if not alike:
            yield f"{key} is {shown(found)} and should be {shown(right)}"

    def standings(self, told: list[Any], index: int) -> Iterator[str]:
        """Yield where jobs do not stand as they should when round ``index`` is over."""
        simulation, length = self.simulation, self.setting.length
        entries = [fields(each, "standing", STANDING) for each in told]
        if [each["job"] for each in entries] != list(simulation.present):
            names = brief([each["job"] for each in entries])
            yield f"standing: the jobs under way are {brief(list(simulation.present))}, not {names}"
            return
        for each, one in zip(entries, simulation.present.values(), strict=True):
            place, work = f"standing: job {one.job.name!r}: ", self.setting.pace(one.job) * length
            remaining, setup, attained = simulation.at(one, index + 1)
            if (
                self.setting.spots(each["last"], f"{place}last") != one.last
                or each["running"] is not one.running
            ):
                yield f"{place}where it ran last, or whether it runs, is wrong"
            for key, right, scale in (
                ("remaining", remaining, work),
                ("attained", attained, length * one.job.gpus),
                ("setup", setup, length),
                ("lease", simulation.lease(one, index), length),
                ("started", one.started, length),
            ):
                yield from (place + what for what in self.off(key, each[key], right, scale))

    def outcome(self, told: Any) -> Iterator[str]:
        """Yield that a run is said to be complete and is not, or the other way round."""
        if told is None:
            return
        data = fields(told, "outcome", "complete", "stopped options")
        complete = self.simulation.idle and self.simulation.arrived == self.jobs
        if truth(data["complete"], "outcome, complete") is not complete:
            yield f"outcome: complete is {not complete} and should be {complete}"

    def statement(self) -> str:
        """Return what has been checked, for a run without violations."""
        one, setting = self.simulation, self.setting
        gpus = ", ".join(f"{there} {name}" for name, there in zip(setting.types, setting.whole, strict=True))
        jobs = f"of {self.jobs} jobs {one.arrived} arrived, {one.completed} were completed"
        left = f"{len(one.present) - one.able} fit no type, {one.able} are under way"
        within = f", within {float(self.tolerance):g} of a round" if self.floats else ""
        trace = f"; the trace has sha256 {self.digest}" if self.digest else ""
        return (
            f"{self.rounds} rounds on {len(setting.hosts)} hosts ({gpus}) are what trace, placements, leases "
            f"and mechanics give{within}: {jobs}, {left}{trace}. Not judged: whether the policy that is said "
            f"to be {self.policy!r} decides so; costs, notes, back end, seconds, measures, reasons of misfits"
        )


def object_(value: Any, place: str) -> dict[str, Any]:
    """Return an object; an empty one for null."""
    require(value is None or type(value) is dict, place, f"{brief(value)} is no object")
    return value or {}


def list_(value: Any, place: str) -> list[Any]:
    """Return a list; an empty one for null."""
    return [] if value is None else items(value, place)
