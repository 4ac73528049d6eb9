"""A run as a document with the whole record of every round: each is worked out again and compared."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from .judge import Judge, object_
from .reading import (
    brief,
    fields,
    integer,
    items,
    or_infinity,
    position,
    require,
    schema,
    text,
    truth,
)
from .rounds import Came, JobRun, Told

ROUND = "index begin end arrived ran waiting misfits down usable costs notes backend seconds"
RAN = "job spots types before change begin end setup speed progress remaining lease completed lost"


class Document(Judge):
    """A document with the whole record of every round."""

    def __init__(self, data: Any, tolerance: Fraction) -> None:
        super().__init__(tolerance)
        keys = "schema policy length mechanics cluster trace rounds standing"
        self.told = fields(data, "document", keys, "outcome measures")
        schema(self.told["schema"], "")
        trace = fields(self.told["trace"], "trace", "types tenants jobs outages")
        self.begin(self.told, trace)
        self.coming = [self.job(each) for each in items(trace["jobs"], "trace, jobs")]
        self.coming.reverse()
        self.jobs = len(self.coming)

    def violations(self) -> Iterator[str]:
        """Yield what is wrong, round by round."""
        for row, data in enumerate(items(self.told["rounds"], "rounds"), 1):
            record = fields(data, f"record {row}", ROUND)
            index = integer(record["index"], f"record {row}, index")
            require(index >= self.simulation.index, f"record {row}", f"round {index} comes too late")
            yield from (f"round {index}: {what}" for what in self._round(record, index))
            self.rounds += 1
        yield from self.standings(items(self.told["standing"], "standing"), self.simulation.index - 1)
        yield from self.outcome(self.told["outcome"])

    def _round(self, record: dict[str, Any], index: int) -> Iterator[str]:
        simulation, length = self.simulation, self.setting.length
        place = f"round {index}"
        yield from self.off("begin", record["begin"], index * length, length)
        yield from self.off("end", record["end"], (index + 1) * length, length)
        if index > simulation.index and not simulation.idle:
            yield f"rounds {simulation.index} to {index - 1} have no record, and somebody was there"
        arrived = set(map(brief, items(record["arrived"], f"{place}, arrived")))
        while self.coming and simulation.at_most(
            self.coming[-1].arrival, index * length, brief(self.coming[-1].name) in arrived
        ):
            simulation.coming.append(self.coming.pop())
        if simulation.idle and not simulation.coming:
            yield "it has a record, and nobody was there who could run or had just arrived"
        ran = {each["job"]: each for each in self._entries(record["ran"], place)}
        came = simulation.play(index, self._decisions(record, ran, place))
        yield from came.wrong
        yield from self._compared(record, came)
        for name, told in ran.items():
            if name in came.ran:
                yield from (f"job {name!r}: {what}" for what in self._ran(told, came.ran[name], came))

    def _entries(self, data: Any, place: str) -> list[dict[str, Any]]:
        entries = [fields(each, f"{place}, ran", RAN) for each in items(data, f"{place}, ran")]
        names = [text(each["job"], f"{place}, ran") for each in entries]
        require(len(set(names)) == len(names), f"{place}, ran", "a job ran twice")
        return entries

    def _decisions(self, record: dict[str, Any], ran: dict[str, dict[str, Any]], place: str) -> Told:
        simulation, hosts = self.simulation, self.setting.host
        spots = {name: self.setting.spots(each["spots"], f"{place}, {name!r}") for name, each in ran.items()}
        goes_on = {
            name for name in spots.keys() & simulation.running if simulation.present[name].last == spots[name]
        }
        down = {position(name, hosts, f"{place}, down") for name in items(record["down"], f"{place}, down")}
        goes_on = {name for name in goes_on if not any(host in down for host, _ in spots[name])}
        return Told(
            {name: where for name, where in spots.items() if name not in goes_on},
            [name for name in simulation.running if name not in spots],
            {
                name: or_infinity(each["lease"], f"{place}, lease", floats=self.floats)
                for name, each in ran.items()
            },
            {name for name, each in ran.items() if truth(each["completed"], f"{place}, completed")},
            {name for name, each in ran.items() if truth(each["lost"], f"{place}, lost")},
            whole=True,
            down=down,
        )

    def _compared(self, record: dict[str, Any], came: Came) -> Iterator[str]:
        """Yield where the lists of a record are not those that should be there."""
        simulation, setting = self.simulation, self.setting
        before = [*simulation.present, *came.complete]
        misfits = [name for name, one in simulation.present.items() if not one.fits]
        usable = sum(host.gpus for at, host in enumerate(setting.hosts) if at not in simulation.down)
        right: dict[str, Any] = {
            "arrived": came.arrived,
            "down": [setting.hosts[host].name for host in sorted(simulation.down)],
            "usable": usable,
            "waiting": [name for name in before if name not in came.ran],
            "misfits": misfits,
        }
        for key, value in right.items():
            found = record[key]
            if key == "misfits":
                found = list(object_(found, key))
            if type(found) is not type(value) or found != value:
                yield f"{key} is {brief(found)} and should be {brief(value)}"

    def _ran(self, told: dict[str, Any], ran: JobRun, came: Came) -> Iterator[str]:
        """Yield where what is told of a job is not what it did."""
        setting, length = self.setting, self.setting.length
        for key, value in {
            "types": [setting.types[kind] for kind in setting.kinds(ran.spots)],
            "before": [setting.types[kind] for kind in setting.kinds(ran.before)],
            "change": ran.change,
            "completed": ran.completed,
            "lost": ran.lost,
        }.items():
            if told[key] != value:
                yield f"{key} is {brief(told[key])} and should be {value!r}"
        for key, right, scale in (
            ("begin", came.begin, length),
            ("end", ran.until, length),
            ("setup", ran.setup, length),
            ("speed", ran.speed, ran.speed),
            ("progress", ran.progress, ran.speed * length),
            ("remaining", ran.remaining, ran.speed * length),
        ):
            yield from self.off(key, told[key], right, scale)
