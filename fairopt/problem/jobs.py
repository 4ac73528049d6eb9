"""`Jobs`: what users ask of a cluster, in columns."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import Arithmetic, arithmetic, counted
from fairopt.problem.checks import (
    Frozen,
    amounts,
    check_name,
    checked_counts,
    checked_names,
    column,
    listed,
    listed_rows,
    one_each,
    sized,
    speedup_table,
)
from fairopt.problem.numbers import exact, shown
from fairopt.problem.profile import Profile
from fairopt.program import INFINITY, Array, Number, cast

#: More jobs than this are taken for a mistake; the largest public traces have a million.
MOST_JOBS = 5_000_000


class Pattern(enum.Enum):
    """How the workers of a job talk to each other, which is what placement on few hosts is worth.

    >>> [each.value for each in Pattern]
    ['alone', 'intra', 'inter']
    """

    ALONE = "alone"  # one worker, or workers that do not talk
    INTRA = "intra"  # within operators: data or tensor parallel, collective communication in every step
    INTER = "inter"  # between operators: a pipeline, from stage to stage only


#: The columns that hold numbers of the trace's own kind (Fractions, or floats for speed).
NUMBERS = ("arrival", "work", "throughput", "memory", "state_size", "dataset_size", "weight", "tenant_weight")


@dataclass(frozen=True, eq=False, repr=False)
class Jobs(Frozen):
    """Jobs in columns; validated and frozen. Make them with `Jobs.of` or by reading a trace.

    Shapes, for n jobs of T tenants on k types:

    * ``names`` (n,). ``tenants`` (T,): names; ``tenant_weight`` (T,): tickets, quota; ``tenant`` (n,): index into them.
    * ``arrival`` (n,): a_j, in the trace's unit of time (seconds in files), rising.
    * ``gpus`` (n,) int: d_j, all or nothing. ``work`` (n,): W_j, in the job's own unit (epochs, steps).
    * ``throughput`` (n, k): theta_j^i, work per unit of time of the whole gang on type i; 0 where it cannot run.
    * ``memory`` (n,): gigabytes needed on each GPU. ``state_size`` (n,): gigabytes that migrate with it.
    * ``pattern`` (n,): a `Pattern`. ``dataset`` (n,): a name, "" for none; ``dataset_size`` (n,): gigabytes.
    * ``weight`` (n,): W^job_ij. ``priority`` (n,) int: larger is more urgent.
    * ``profiles``: for each job what it can do with other numbers of GPUs and with its batches, and how that changes
      while it runs (`Profile`), None for a job that is always as ``gpus`` and ``throughput`` say; () where all are.
      Of a job with a profile ``throughput`` is that with ``gpus`` on as few hosts as were measured, at first.
    * ``estimate`` (n,): what policies are told of a job's work, which a run does not know better; None: the truth.

    Source: FFT Sec. 4.1; Gandiva_fair Sec. 3.2; ASTRAEA Sec. 4.2.

    >>> jobs = Jobs.of(names=["a", "b"], types=["K80", "V100"], arrival=[0, 60], gpus=[1, 4], work=[100, 300])
    >>> jobs, jobs.throughput.tolist()
    (<Jobs: 2 of 1 tenant, types K80, V100>, [[Fraction(1, 1), Fraction(1, 1)], [Fraction(1, 1), Fraction(1, 1)]])
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    tenants: tuple[str, ...]
    tenant_weight: Array
    tenant: Array
    arrival: Array
    gpus: Array
    work: Array
    throughput: Array
    memory: Array
    state_size: Array
    pattern: tuple[Pattern, ...]
    dataset: tuple[str, ...]
    dataset_size: Array
    weight: Array
    priority: Array
    estimate: Array | None = None
    profiles: tuple[Profile | None, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        gpus: Sequence[object],
        work: Sequence[object],
        types: Sequence[str],
        throughput: Sequence[Sequence[object]] | Array | None = None,
        arrival: Sequence[object] | None = None,
        tenant: Sequence[str] | None = None,
        tenant_weight: Mapping[str, object] | None = None,
        memory: Sequence[object] | None = None,
        state_size: Sequence[object] | None = None,
        pattern: Sequence[Pattern | str | None] | None = None,
        dataset: Sequence[str] | None = None,
        dataset_size: Sequence[object] | None = None,
        weight: Sequence[object] | None = None,
        priority: Sequence[object] | None = None,
        estimate: Sequence[object] | None = None,
        names: Sequence[str] | None = None,
        places: Sequence[str] | None = None,
        profiles: Sequence[Profile | None] | None = None,
    ) -> Jobs:
        """Validate and return jobs, sorted by arrival (jobs that arrive together keep their order).

        Without ``throughput`` a job does 1 unit of work per unit of time on every type: ``work`` is then its duration.
        Without ``tenant`` there is one tenant. A ``pattern`` of None is INTRA for gangs and ALONE for single GPUs. An
        ``estimate`` of None is the job's work. The throughput of a job with a profile is left out, or None, or what
        its profile says. ``places`` is what messages call each job.
        Errors: `BadInput` naming the job, the column, the value, the remedy.
        """
        wanted = listed(gpus, "gpus")
        count = len(wanted)
        if count > MOST_JOBS:
            raise BadInput(counted(count, "job"), place="jobs", remedy=f"Give at most {MOST_JOBS}")
        job_names = checked_names(names, count, "job", "j")
        called = list(places) if places is not None else [f"job {n} ({name!r})" for n, name in enumerate(job_names, 1)]
        type_names = checked_names(types, len(list(types)), "type", "T")
        owners = column(tenant, called, "tenant", "job", check_name, blank="tenant").tolist()
        tenants = tuple(dict.fromkeys(owners))
        index = {name: at for at, name in enumerate(tenants)}
        sizes = checked_counts(wanted, called, "gpus", "job")
        own = _profiles(profiles, sizes, type_names, called)
        rows = [[1] * len(type_names)] * count if throughput is None and own else throughput
        table = (
            np.full((count, len(type_names)), Fraction(1), dtype=object)
            if rows is None
            else speedup_table(
                _rows(_measured(rows, own, sizes, called, throughput is None), count), called, type_names
            )
        )
        whole = amounts(work, called, "work", above=True)
        jobs = cls(
            names=job_names,
            types=type_names,
            tenants=tenants,
            tenant_weight=_tenant_weights(tenant_weight, tenants),
            tenant=np.array([index[name] for name in owners], dtype=np.int64),
            arrival=amounts(arrival, called, "arrival", blank=0),
            gpus=sizes,
            work=whole,
            throughput=table,
            memory=amounts(memory, called, "memory", blank=0),
            state_size=amounts(state_size, called, "state_size", blank=0),
            pattern=_patterns(pattern, sizes, called),
            dataset=tuple(str(name or "") for name in one_each(dataset, count, "")),
            dataset_size=amounts(dataset_size, called, "dataset_size", blank=0),
            weight=amounts(weight, called, "weight", above=True, blank=1),
            priority=checked_counts(priority, called, "priority", "job", least=0, blank=0),
            profiles=own,
            estimate=_estimates(estimate, work, called),
        )
        order = sorted(range(count), key=lambda row: jobs.arrival[row])
        return jobs if order == list(range(count)) else replace(jobs.take(order))  # keeps nothing of the other order

    def __len__(self) -> int:
        return len(self.gpus)

    def __repr__(self) -> str:
        tenants = counted(len(self.tenants), "tenant")
        return f"<{type(self).__name__}: {len(self)} of {tenants}, types {', '.join(self.types)}>"

    @property
    def arithmetic(self) -> Arithmetic:
        """That of its numbers: floats or rationals."""
        return arithmetic(self.work)

    @property
    def exact(self) -> bool:
        """Whether the numbers are Fractions."""
        return self.arithmetic.exact

    def profile(self, row: int) -> Profile | None:
        """Return what is known of a job beside its throughput with its own number of GPUs."""
        return self.profiles[row] if self.profiles else None

    def distinct(self) -> list[Profile]:
        """Return the profiles that there are, each once, by the first job that has it."""
        return list({id(each): each for each in self.profiles if each is not None}.values())

    def sizes(self, row: int) -> tuple[int, ...]:
        """Return the numbers of GPUs that a job may run with, rising."""
        profile = self.profile(row)
        return (int(self.gpus[row]),) if profile is None else profile.sizes

    def speeds(self, row: int, done: Number) -> Mapping[int, Sequence[Number]]:
        """Return the speed (k,) of a job after so much work by its `sizes`, on as few hosts as were measured."""
        profile = self.profile(row)
        found: Mapping[int, Sequence[Number]] = (
            {int(self.gpus[row]): self.throughput[row]} if profile is None else profile.speeds(profile.phase(done))
        )
        return found

    def mean_speed(self, row: int) -> Sequence[Number]:
        """Return the work (k,) over the time that it takes a job alone on its own number of GPUs of each type."""
        profile = self.profile(row) if self.profiles else None
        if profile is None or len(profile.marks) == 1:
            plain: list[Number] = self.throughput[row].tolist()
            return plain
        work, own = self.work[row], int(self.gpus[row])
        times = [profile.time(own, gpu_type, work) for gpu_type in range(len(self.types))]
        return [work / time if time < INFINITY else work * 0 for time in times]

    @property
    def varying(self) -> bool:
        """Whether the speed of some job changes while it runs."""
        return any(len(each.marks) > 1 for each in self.distinct())

    def tenant_of(self, row: int) -> str:
        """Return the name of a job's tenant."""
        return self.tenants[int(self.tenant[row])]

    def take(self, rows: Sequence[int] | Array) -> Jobs:
        """Return the jobs of the given rows, in that order; tenants stay. A column is made when it is first read."""
        taken, at = object.__new__(type(self)), np.asarray(rows, dtype=np.int64)
        whole = {name: getattr(self, name) for name in ("types", "tenants", "tenant_weight")}
        # their defaults are found before `__getattr__` is asked
        whole["estimate"] = None if self.estimate is None else self.estimate[at]
        whole["profiles"] = tuple(self.profiles[row] for row in at) if self.profiles else ()
        vars(taken).update(whole, _taken=(self, at))
        return taken

    if not TYPE_CHECKING:  # a type checker would take any name for a column

        def __getattr__(self, name: str) -> Any:
            whole, at = vars(self).get("_taken", (None, None))
            if whole is None or name not in type(self).__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            column = getattr(whole, name)
            if isinstance(column, np.ndarray):
                column = column[at]
                column.setflags(write=False)
            elif column is not None:
                column = itemgetter(*at.tolist())(column) if len(at) > 1 else tuple(column[row] for row in at)
            vars(self)[name] = column
            return column

    def after(self, remaining: Array) -> Jobs:
        """Return the jobs with the throughputs that they have now, where so much (n,) of their work remains."""
        if not self.varying:
            return self
        table, sizes = self.throughput.copy(), self.gpus.tolist()
        done = self.work - remaining
        for row, profile in enumerate(self.profiles):
            if profile is not None and len(profile.marks) > 1:
                table[row] = profile.speed(profile.phase(done[row]), sizes[row], 1)
        return replace(self, throughput=table)

    def weighted_by_request(self) -> Jobs:
        """Return the same jobs with tenants that weigh the GPUs which all their jobs request.

        Source: ASTRAEA Sec. 6.1 ("the size of a VC is proportional to the total number of GPUs requested by all the
        jobs in this VC").

        >>> Jobs.of(gpus=[1, 8, 2], work=[1] * 3, types=["T"], tenant=list("ABA")).weighted_by_request().tenant_weight
        array([Fraction(3, 1), Fraction(8, 1)], dtype=object)
        """
        asked = np.bincount(self.tenant, weights=self.gpus, minlength=len(self.tenants)).astype(np.int64)
        return replace(self, tenant_weight=self.arithmetic.cast(np.maximum(asked, 1)))

    def as_(self, number: type | Arithmetic) -> Jobs:
        """Return the same jobs in ``float`` or in ``Fraction``."""
        if self.arithmetic is arithmetic(number):
            return self
        columns: dict[str, Any] = {name: cast(getattr(self, name), number) for name in NUMBERS}
        if self.estimate is not None:
            columns["estimate"] = cast(self.estimate, number)
        made = {id(each): each.as_(number) for each in self.profiles if each is not None}
        profiles = tuple(None if each is None else made[id(each)] for each in self.profiles)
        return replace(self, profiles=profiles, **columns)


def _estimates(given: Sequence[object] | None, work: Sequence[object], places: Sequence[str]) -> Array | None:
    """Return what policies are told of the work; None where that is the truth for every job."""
    if given is None or all(each is None for each in given):
        return None
    told = [
        true if each is None else each for each, true in zip(sized(given, places, "estimate", "job"), work, strict=True)
    ]
    return amounts(told, places, "estimate", above=True)


def _profiles(
    given: Sequence[Profile | None] | None, gpus: Array, types: tuple[str, ...], places: Sequence[str]
) -> tuple[Profile | None, ...]:
    """Return the profile of each job; () where no job has one."""
    out: list[Profile | None] = []
    for each, own, place in zip(
        sized(one_each(given, len(gpus)), places, "profiles", "job"), gpus.tolist(), places, strict=True
    ):
        if each is not None and not isinstance(each, Profile):
            raise BadInput(f"got {shown(each)}", place=f"{place}, profile", remedy="Make it with `Profile.of`")
        if each is not None and each.types != len(types):
            remedy = f"Give one for each of {', '.join(types[:20])}; 0 where the job cannot run"
            problem = f"{counted(each.types, 'throughput')} for {counted(len(types), 'type')}"
            raise BadInput(problem, place=f"{place}, profile", remedy=remedy)
        if each is not None and own not in each.sizes:
            remedy = f"The profile has {', '.join(map(str, each.sizes))}"
            raise BadInput(f"{own} GPUs are not in its profile", place=f"{place}, gpus", remedy=remedy)
        out.append(each)
    return tuple(out) if any(each is not None for each in out) else ()


def _measured(
    throughput: Any, profiles: tuple[Profile | None, ...], gpus: Array, places: Sequence[str], unsaid: bool
) -> Any:
    """Return the rows of throughputs, of jobs with a profile what that says; `BadInput` where both say something."""
    if not profiles:
        return throughput
    rows = list(throughput)
    for row, profile in enumerate(profiles[: len(rows)]):
        if profile is None:
            continue
        found = profile.speed(0, int(gpus[row]), 1)
        given = None if unsaid or rows[row] is None else list(rows[row])
        if given is not None and [exact(each, f"{places[row]}, throughput") for each in given] != list(found):
            remedy = f"Leave it out, or give {', '.join(map(str, found))}, as its profile"
            raise BadInput(f"got {shown(given)}", place=f"{places[row]}, throughput", remedy=remedy)
        rows[row] = list(found)
    return rows


def _rows(throughput: object, count: int) -> list[list[object]]:
    rows = listed_rows(throughput)
    if len(rows) != count:
        raise BadInput(
            f"{counted(len(rows), 'row')} for {counted(count, 'job')}",
            place="throughput",
            remedy="Give one row for each job",
        )
    return rows


def _tenant_weights(given: Mapping[str, object] | None, tenants: tuple[str, ...]) -> Array:
    weights = dict(given or {})
    strange = weights.keys() - set(tenants)
    if strange:
        remedy = f"The tenants are {', '.join(tenants[:20])}"
        raise BadInput(f"got {min(strange)!r}, which has no jobs", place="tenant_weight", remedy=remedy)
    places = [f"tenant {name!r}" for name in tenants]
    return amounts([weights.get(name, 1) for name in tenants], places, "weight", "tenant", above=True)


def usual_pattern(gpus: int) -> Pattern:
    """Return the pattern of a job of which nothing is said."""
    return Pattern.ALONE if gpus == 1 else Pattern.INTRA


def _patterns(values: object, gpus: Array, places: Sequence[str]) -> tuple[Pattern, ...]:
    def read(value: Any, place: str) -> Pattern | None:
        try:
            return None if value is None else Pattern(value)
        except ValueError as error:
            remedy = f"Give one of {', '.join(each.value for each in Pattern)}"
            raise BadInput(f"got {shown(value)}", place=place, remedy=remedy) from error

    said = column(values, places, "pattern", "job", read, blank=None)
    return tuple(each or usual_pattern(size) for each, size in zip(said, gpus, strict=True))
