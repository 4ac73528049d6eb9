"""A run of a specification: what is measured in which order, by which executor, and what is left after an end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypeVar

from fairopt.bench import configuring, records
from fairopt.bench.executors import Here, result_of, submitted
from fairopt.bench.machine import Provenance
from fairopt.bench.measure import Job, measure, reference
from fairopt.bench.records import PASSING, Environment, InstanceKey, Measurement, MeasurementStatus, Record, Trial
from fairopt.bench.spec import Entrant, Spec
from fairopt.codec import encode
from fairopt.errors import NotInstalled

T = TypeVar("T")
#: Statuses after which trying again on this or a larger instance is no use.
_SPENT = {MeasurementStatus.TIMEOUT: "timed out", MeasurementStatus.MEMORY: "ran out of memory"}


def run_spec(
    spec: Spec,
    executor: Executor | None = None,
    *,
    concurrent: int = 1,
    before: Iterable[Record] = (),
    provenance: Provenance | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Record]:
    """Measure what a specification asks for; yield each measurement when it is made, after its environment's record.

    For each instance, contenders take turns in each repeat, in an order that rotates. ``executor`` does the work, this
    process if None; at most ``concurrent`` measurements run at once, which disturb each other on one machine.
    ``before`` are records of an earlier run, whose measurements are not repeated, except those that were skipped or
    lacked a library. ``say`` is called with messages on progress.

    Errors: `BadInput` for parameters that a family refuses; `NotSolved` where an executor failed.
    """
    settings, libraries = {}, set()
    for each in spec.contenders:
        settings[each.label] = dict(each.settings)
        with suppress(NotInstalled):  # each of its measurements says so
            made = configuring.contender(each.contender, each.settings)
            settings[each.label] = encode(made, finite=True) if is_dataclass(made) else {}
            libraries |= {*made.libraries}
    known = provenance or Provenance.of(spec.source, libraries)
    yield from _Run(spec, executor or Here(), concurrent, known, say, settings).go(tuple(before))


def instances(spec: Spec) -> Iterator[InstanceKey]:
    """Yield which instances a specification asks for. Errors: `BadInput` for parameters that a family refuses."""
    for block in spec.instances:
        family = configuring.family(block.family)
        for parameters, seed in block.combinations():
            drawn = family.draw(seed, parameters)
            # the family by its registered name, so that a worker can draw the instance again
            yield InstanceKey(block.family, drawn.name, drawn.size, seed, parameters, drawn.digest)


@dataclass
class _Run:
    spec: Spec
    executor: Executor
    concurrent: int
    provenance: Provenance
    say: Callable[[str], None]
    settings: Mapping[str, dict[str, Any]]
    pending: dict[Future[tuple[Measurement, Environment]], Trial] = field(default_factory=dict)
    environments: set[str] = field(default_factory=set)
    spent: list[Measurement] = field(default_factory=list)
    #: Identities of trials that lacked a library before; that is not written again.
    missing: set[str] = field(default_factory=set)

    def go(self, before: Sequence[Record]) -> Iterator[Record]:
        known, measured = records.environments(before), records.measurements(before)
        self.environments = set(known)
        self.spent = [each for each in measured if each.status in _SPENT]
        done = {each.identity: each for each in measured}
        self.missing = {identity for identity, record in done.items() if record.status is MeasurementStatus.MISSING}
        self._say_what_is_old(done.values(), known)
        try:
            for key in list(instances(self.spec)):  # first of all, so that no bad parameter ends the run half way
                compared: list[Any] = []  # the reference, once it is needed
                for repeat, entrant in self._turns(key):
                    trial = self._trial(entrant, key, repeat)
                    earlier = done.get(trial.identity)
                    # a library that was missing may be installed by now
                    if earlier is not None and (earlier.status not in PASSING or self._why_not(entrant, trial)):
                        continue
                    while len(self.pending) >= self.concurrent:
                        yield from self._collect()
                    skipped = self._why_not(entrant, trial)  # also for how the ones just collected have ended
                    if not skipped and not compared:
                        compared.append((yield from self._reference(key)))
                        skipped = self._why_not(entrant, trial)
                    self.say(f"{key.name}, repeat {repeat + 1} of {self.spec.repeats}: {entrant.label}")
                    job = Job(trial, self.provenance, None if skipped else compared[0], skipped)
                    self.pending[submitted(self.executor, measure, job)] = trial
            while self.pending:
                yield from self._collect()
        finally:
            for future in self.pending:
                future.cancel()

    def _say_what_is_old(self, done: Iterable[Measurement], known: Mapping[str, Environment]) -> None:
        """Say how many of the kept measurements of the specification were made by another state of the code."""
        ours = [known[each.environment] for each in done if each.spec == self.spec.name and each.environment in known]
        state = self.provenance.commit, self.provenance.dirty
        if other := sum((each.commit, each.dirty) != state for each in ours):
            self.say(f"{other} of {len(ours)} measurements that are kept were made at another commit")

    def _turns(self, key: InstanceKey) -> Iterator[tuple[int, Entrant]]:
        entrants = self.spec.contenders
        for repeat in range(self.spec.repeats):
            first = (key.seed + repeat) % len(entrants)
            yield from ((repeat, each) for each in (*entrants[first:], *entrants[:first]))

    def _trial(self, entrant: Entrant, key: InstanceKey, repeat: int) -> Trial:
        spec = self.spec
        return Trial(
            spec=spec.name,
            spec_digest=spec.digest,
            task=spec.task,
            contender=entrant.contender,
            label=entrant.label,
            settings=self.settings[entrant.label],
            instance=key,
            repeat=repeat,
            time_limit=spec.time_limit,
            memory_limit=spec.memory_limit,
            threads=spec.threads,
            concurrent=self.concurrent,
        )

    def _why_not(self, entrant: Entrant, trial: Trial) -> str:
        """Return why a contender is not tried, "" where it is."""
        key = trial.instance
        if entrant.largest is not None and key.size > entrant.largest:
            return f"size {key.size:,} is above {entrant.largest:,}, the largest that the specification tries it on"
        for each in self.spent if self.spec.give_up else ():
            if each.condition != trial.condition:
                continue
            if each.instance.digest == key.digest:
                return f"{_SPENT[each.status]} on this instance in repeat {each.repeat + 1}"
            if _no_easier(key, each.instance):
                return f"{_SPENT[each.status]} at size {each.instance.size:,} ({each.instance.name})"
        return ""

    def _collect(self) -> Iterator[Record]:
        """Wait until a measurement is done, and yield the records of all that are."""
        ended, _ = wait(self.pending, return_when=FIRST_COMPLETED)
        for future in ended:
            trial = self.pending.pop(future)
            measurement, environment = result_of(future, f"{trial.instance.name}, {trial.label}")
            if measurement.status in _SPENT:
                self.spent.append(measurement)
            if measurement.status is MeasurementStatus.MISSING and measurement.identity in self.missing:
                continue
            if environment.digest not in self.environments:
                self.environments.add(environment.digest)
                yield environment
            yield measurement

    def _reference(self, key: InstanceKey) -> Any:
        """Return the reference, computed by the executor; records that arrive meanwhile are yielded."""
        self.say(f"{key.name}: what answers are compared with")
        future = submitted(self.executor, reference, self.spec.task, key)
        while not future.done():
            wait([future, *self.pending], return_when=FIRST_COMPLETED)
            if any(each.done() for each in self.pending):
                yield from self._collect()
        return result_of(future, f"the reference of {key.name}")


def _no_easier(new: InstanceKey, old: InstanceKey) -> bool:
    """Whether an instance is larger than another of the family, no number of its parameters less, the others equal."""
    if new.family != old.family or new.size <= old.size or new.parameters.keys() != old.parameters.keys():
        return False
    pairs = [(new.parameters[name], old.parameters[name]) for name in new.parameters]
    return all(a >= b if _number(a) and _number(b) else a == b for a, b in pairs)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
