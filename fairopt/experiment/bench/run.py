"""A run of a specification: what is measured in which order, and what is not tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import is_dataclass, replace
from typing import Any

from fairopt.codec import encode
from fairopt.errors import NotInstalled
from fairopt.experiment.bench import kinds, records
from fairopt.experiment.bench.kinds import Instance
from fairopt.experiment.bench.measure import measure, reference
from fairopt.experiment.bench.records import PASSING, STAGES, Measurement, Record
from fairopt.experiment.bench.spec import Spec
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Environment
from fairopt.experiment.runner import result_of, side_by_side
from fairopt.experiment.spec import Entrant

#: Statuses after which trying again on this or a larger instance is no use.
_SPENT = {TrialStatus.TIMEOUT: "timed out", TrialStatus.MEMORY: "ran out of memory"}


def run_spec(
    spec: Spec,
    executor: Executor | None = None,
    *,
    concurrent: int = 1,
    before: Iterable[Record] = (),
    environment: Environment | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Record]:
    """Measure what a specification asks for; yield each measurement when it is made, after its environment's record.

    For each instance, contenders take turns in each repeat, in an order that rotates. ``executor`` does the work, this
    process if None; at most ``concurrent`` measurements run at once, which disturb each other on one machine.
    ``before`` are records of an earlier run, whose measurements are not repeated, except those that were skipped or
    lacked a library. ``environment`` is that of this process by default. ``say`` is called with messages on progress.

    Errors: `BadInput` for parameters that a family refuses; `NotSolved` where an executor failed.
    """
    before = list(before)
    keys = list(instances(spec))  # first of all, so that no bad parameter ends the run half way
    settings, libraries = _settings(spec)
    where = environment or Environment.starting(spec.source, libraries)
    known, measured = records.environments(before), records.measurements(before)
    done = {each.identity: each for each in measured}
    spent = [each for each in measured if each.status in _SPENT]
    references: dict[str, Any] = {}
    _say_what_is_old(spec, done.values(), known, where, say)

    def jobs() -> Iterator[tuple[Measurement | Instance, Callable[..., Any], tuple[Any, ...]] | None]:
        for key in keys:
            for repeat, entrant in _turns(spec, key):
                trial = _planned(spec, entrant, key, repeat, settings[entrant.label], concurrent)
                earlier = done.get(trial.identity)
                # a library that was missing may be installed by now
                if earlier is not None and (earlier.status not in PASSING or _why_not(spec, entrant, trial, spent)):
                    continue
                skipped = _why_not(spec, entrant, trial, spent)
                if not skipped and key.digest not in references:
                    say(f"{key.name}: what answers are compared with")
                    references.clear()
                    yield key, reference, (spec.task, key)
                    while key.digest not in references:
                        yield None
                    skipped = _why_not(spec, entrant, trial, spent)  # also for how others have ended meanwhile
                say(f"{key.name}, repeat {repeat + 1} of {spec.repeats}: {entrant.label}")
                yield trial, measure, (trial, where, None if skipped else references[key.digest], skipped)

    for what, future in side_by_side(jobs(), executor, concurrent):
        if isinstance(what, Instance):
            references[what.digest] = result_of(future, f"the reference of {what.name}")
            continue
        measurement, machine = result_of(future, f"{what.instance.name}, {what.label}")
        if measurement.status in _SPENT:
            spent.append(measurement)
        earlier = done.get(measurement.identity)
        if earlier is not None and earlier.status is measurement.status is TrialStatus.MISSING:
            continue  # it stands in the file
        if machine.digest not in known:
            known[machine.digest] = machine
            yield machine
        yield measurement


def instances(spec: Spec) -> Iterator[Instance]:
    """Yield which instances a specification asks for. Errors: `BadInput` for parameters that a family refuses."""
    for block in spec.instances:
        family = kinds.family(block.family)
        for parameters, seed in block.combinations():
            drawn = family.draw(seed, parameters)
            # the family by its registered name, so that a worker can draw the instance again, which is not sent
            yield replace(drawn, family=block.family, seed=seed, parameters=parameters, problem=None)


def _settings(spec: Spec) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Return the settings of each contender by label, defaults included, and the libraries of all."""
    settings, libraries = {}, set[str]()
    for each in spec.contenders:
        settings[each.label] = dict(each.settings)
        with suppress(NotInstalled):  # each of its measurements says so
            made = kinds.contender(each.name, each.settings)
            settings[each.label] = encode(made, finite=True) if is_dataclass(made) else {}
            libraries |= {*made.libraries}
    return settings, libraries


def _say_what_is_old(
    spec: Spec,
    done: Iterable[Measurement],
    known: Mapping[str, Environment],
    here: Environment,
    say: Callable[[str], None],
) -> None:
    """Say how many of the kept measurements of the specification were made by another state of the code."""
    ours = [known[each.environment] for each in done if each.spec == spec.name and each.environment in known]
    if other := sum((each.commit, each.dirty) != (here.commit, here.dirty) for each in ours):
        say(f"{other} of {len(ours)} measurements that are kept were made at another commit")


def _turns(spec: Spec, key: Instance) -> Iterator[tuple[int, Entrant]]:
    for repeat in range(spec.repeats):
        first = (key.seed + repeat) % len(spec.contenders)
        yield from ((repeat, each) for each in (*spec.contenders[first:], *spec.contenders[:first]))


def _planned(
    spec: Spec, entrant: Entrant, key: Instance, repeat: int, settings: Mapping[str, Any], concurrent: int
) -> Measurement:
    return Measurement(
        spec=spec.name,
        spec_digest=spec.digest,
        task=spec.task,
        contender=entrant.name,
        label=entrant.label,
        settings=settings,
        instance=key,
        repeat=repeat,
        time_limit=spec.time_limit,
        memory_limit=spec.memory_limit,
        threads=spec.threads,
        concurrent=concurrent,
        libraries={},
        status=TrialStatus.SKIPPED,
        message="",
        seconds=dict.fromkeys(STAGES),
        peak_bytes=None,
        base_bytes=None,
        judgement=None,
        reference_job=None,
        started="",
        environment="",
    )


def _why_not(spec: Spec, entrant: Entrant, trial: Measurement, spent: Iterable[Measurement]) -> str:
    """Return why a contender is not tried, "" where it is; ``spent`` ran out of time or memory."""
    key = trial.instance
    if entrant.largest is not None and key.size > entrant.largest:
        return f"size {key.size:,} is above {entrant.largest:,}, the largest that the specification tries it on"
    for each in spent if spec.give_up else ():
        if each.condition != trial.condition:
            continue
        if each.instance.digest == key.digest:
            return f"{_SPENT[each.status]} on this instance in repeat {each.repeat + 1}"
        if _no_easier(key, each.instance):
            return f"{_SPENT[each.status]} at size {each.instance.size:,} ({each.instance.name})"
    return ""


def _no_easier(new: Instance, old: Instance) -> bool:
    """Whether an instance is larger than another of the family, no number of its parameters less, the others equal."""
    if new.family != old.family or new.size <= old.size or new.parameters.keys() != old.parameters.keys():
        return False
    pairs = [(new.parameters[name], old.parameters[name]) for name in new.parameters]
    return all(a >= b if _number(a) and _number(b) else a == b for a, b in pairs)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
