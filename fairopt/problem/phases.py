"""Phases of jobs that adapt: how much of its own progress a unit of a job's work is, and what that changes.

A job's GPUs do ``work`` at its ``throughput``, whatever phase it is in. What the job itself counts, its progress, such
as epochs, is work times a factor that changes while it runs: 1 at first, and from each phase on the phase's own. A job
whose batches grow from 32 to 256, and that then does three times as many epochs in a second, has the factor 3.

So the time that a job takes does not depend on phases, and they are no matter of a simulation. They are what a policy
is told: how much progress is left, and how fast it is now. Only a policy that predicts phases knows better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from fairopt.errors import BadInput
from fairopt.problem.checks import one_each, sized
from fairopt.problem.numbers import amount, shown
from fairopt.program import Array, Number

#: Pairs, rising, of the work after which a phase begins, and its factor: progress for a unit of work.
Phases: TypeAlias = tuple[tuple[Number, Number], ...]


def checked_phases(
    given: Sequence[Mapping[object, object] | Sequence[Sequence[object]] | None] | None,
    work: Array,
    places: Sequence[str],
) -> tuple[Phases, ...]:
    """Return the phases of each job out of pairs of work and factor, or a mapping; () where no job has any."""
    out = []
    for table, whole, place in zip(
        sized(one_each(given, len(work)), places, "phases", "job"), work.tolist(), places, strict=True
    ):
        phases = {}
        pairs: Any = table.items() if isinstance(table, Mapping) else table or ()
        for pair in pairs:
            if len(pair) != 2:
                raise BadInput(f"got {shown(pair)}", place=f"{place}, phases", remedy="Give pairs of work and factor")
            after, factor = pair
            at = f"{place}, phases, after {shown(after)}"
            mark = amount(after, at, above=True)
            if mark >= whole:
                raise BadInput(f"all of the work is {whole}", place=at, remedy="Let a phase begin before the job ends")
            if mark in phases:
                raise BadInput("two phases begin there", place=at, remedy="Give one factor for each beginning")
            phases[mark] = amount(factor, at, above=True)
        out.append(tuple(sorted(phases.items())))
    return tuple(out) if any(out) else ()


def progress(done: Number, phases: Phases) -> Number:
    """Return the progress that so much work ``done`` is.

    >>> progress(30, ((10, 2), (20, 3))), progress(15, ((10, 2), (20, 3)))
    (60, 20)
    """
    reached, begin, factor = done * 0, done * 0, done * 0 + 1
    for mark, following in phases:
        if done < mark:
            break
        reached, begin, factor = reached + (mark - begin) * factor, mark, following
    return reached + (done - begin) * factor


def factor_at(done: Number, phases: Phases) -> Number:
    """Return the factor that holds after so much work or progress, whichever the ``phases`` count."""
    factor = done * 0 + 1
    for mark, following in phases:
        if done < mark:
            break
        factor = following
    return factor


def by_factor(done: Number, phases: Phases) -> dict[Number, Number]:
    """Return the progress that a job made under each of the factors that it knows, by factor.

    ``done`` is its progress so far, and the phases are told by progress, as `Jobs.in_progress` does. A factor that
    holds only later is there, too, with 0.

    >>> by_factor(25, ((20, 2), (40, 3)))
    {1: 20, 2: 5, 3: 0}
    """
    zero = done * 0
    found: dict[Number, Number] = {}
    begin, factor = zero, zero + 1
    for mark, following in phases:
        found[factor] = found.get(factor, zero) + max(min(done, mark) - begin, zero)
        begin, factor = mark, following
    found[factor] = found.get(factor, zero) + max(done - begin, zero)
    return found
