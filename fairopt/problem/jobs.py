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
from fairopt.problem.numbers import amount, shown
from fairopt.problem.phases import Phases, checked_phases, factor_at, progress
from fairopt.program import Array, Number, cast, objects

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
    * ``elastic``: for each job, pairs of another number of GPUs and the factor on its throughput with them, rising; ()
      for a job that runs with ``gpus`` only, and for all jobs where none is elastic. Few policies use it.
    * ``phases``: for each job whose progress changes while it runs, pairs of the work after which a phase begins and
      the progress that a unit of work is in it; see `fairopt.problem.phases`. () for all jobs where none changes.
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
    elastic: tuple[tuple[tuple[int, Number], ...], ...] = ()
    phases: tuple[Phases, ...] = ()

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
        elastic: Sequence[Mapping[int, object] | None] | None = None,
        phases: Sequence[Mapping[object, object] | Sequence[Sequence[object]] | None] | None = None,
    ) -> Jobs:
        """Validate and return jobs, sorted by arrival (jobs that arrive together keep their order).

        Without ``throughput`` a job does 1 unit of work per unit of time on every type: ``work`` is then its duration.
        Without ``tenant`` there is one tenant. A ``pattern`` of None is INTRA for gangs and ALONE for single GPUs. An
        ``estimate`` of None is the job's work. ``elastic`` maps other numbers of GPUs to factors on the throughput,
        ``phases`` work done to progress per unit of work (or pairs). ``places`` is what messages call each job.
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
        table = (
            np.full((count, len(type_names)), Fraction(1), dtype=object)
            if throughput is None
            else speedup_table(_rows(throughput, count), called, type_names)
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
            elastic=_elastic(elastic, sizes, called),
            phases=checked_phases(phases, whole, called),
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

    def sizes(self, row: int) -> Mapping[int, Number]:
        """Return the numbers of GPUs that a job may run with, and the factor on its throughput with each."""
        return {int(self.gpus[row]): 1} | dict(self.elastic[row] if self.elastic else ())

    def tenant_of(self, row: int) -> str:
        """Return the name of a job's tenant."""
        return self.tenants[int(self.tenant[row])]

    def take(self, rows: Sequence[int] | Array) -> Jobs:
        """Return the jobs of the given rows, in that order; tenants stay. A column is made when it is first read."""
        taken, at = object.__new__(type(self)), np.asarray(rows, dtype=np.int64)
        whole = {name: getattr(self, name) for name in ("types", "tenants", "tenant_weight")}
        # their defaults are found before `__getattr__` is asked
        whole["estimate"] = None if self.estimate is None else self.estimate[at]
        for name in ("elastic", "phases"):
            whole[name] = tuple(getattr(self, name)[row] for row in at) if getattr(self, name) else ()
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

    def in_progress(self, remaining: Array) -> tuple[Jobs, Array]:
        """Return the jobs, and what remains of each (n,), as policies are told them: in progress instead of work.

        Throughput is progress per unit of time in the phase that a job is in. Phases are told by the progress after
        which they begin; who is not to look ahead leaves them alone.
        """
        work, left, speed, phases = (list(each) for each in (self.work, remaining, self.throughput, self.phases))
        for row, own in enumerate(self.phases):
            if own:
                done = work[row] - left[row]
                speed[row] = speed[row] * factor_at(done, own)
                phases[row] = tuple((progress(mark, own), factor) for mark, factor in own)
                whole = progress(work[row], own)
                work[row], left[row] = whole, whole - progress(done, own)
        cast = self.arithmetic.cast
        table = np.array(speed, dtype=self.throughput.dtype).reshape(self.throughput.shape)
        made = replace(self, work=cast(objects(work)), throughput=table, phases=tuple(phases))
        return made, cast(objects(left))

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
        elastic = tuple(tuple((gpus, number(factor)) for gpus, factor in sizes) for sizes in self.elastic)
        phases = tuple(tuple((number(mark), number(factor)) for mark, factor in own) for own in self.phases)
        return replace(self, elastic=elastic, phases=phases, **columns)


def _estimates(given: Sequence[object] | None, work: Sequence[object], places: Sequence[str]) -> Array | None:
    """Return what policies are told of the work; None where that is the truth for every job."""
    if given is None or all(each is None for each in given):
        return None
    told = [
        true if each is None else each for each, true in zip(sized(given, places, "estimate", "job"), work, strict=True)
    ]
    return amounts(told, places, "estimate", above=True)


def _elastic(
    given: Sequence[Mapping[int, object] | None] | None, gpus: Array, places: Sequence[str]
) -> tuple[tuple[tuple[int, Number], ...], ...]:
    out = []
    for table, own, place in zip(
        sized(one_each(given, len(gpus)), places, "elastic", "job"), gpus.tolist(), places, strict=True
    ):
        sizes = {}
        for size, factor in dict(table or {}).items():  # type: ignore[call-overload]
            at = f"{place}, elastic, {shown(size)} GPUs"
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise BadInput(f"got {shown(size)}", place=at, remedy="Give whole numbers of GPUs, from 1")
            sizes[size] = amount(factor, at, above=True)
        if sizes.pop(own, 1) != 1:
            remedy = "Give factors on the throughput with the job's own number of GPUs"
            raise BadInput("its factor is not 1", place=f"{place}, elastic, {own} GPUs", remedy=remedy)
        out.append(tuple(sorted(sizes.items())))
    return tuple(out) if any(out) else ()


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
