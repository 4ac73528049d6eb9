"""Armada's round on one node, job by job and pass by pass as its code has it, in sets and sums: slow, and independent.

Source: armadaproject/armada, 207cc9e0: internal/scheduler/scheduling, preempting_queue_scheduler.go, Schedule;
queue_scheduler.go, Less (without larger jobs first); eviction.go; nodedb.go, selectNodeForJobWithTxnAtPriority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from fairopt.models.armada.fair_shares import fair_shares


class Job(NamedTuple):
    """A job of a queue: what it needs (m,), the priority of its class, whether it is preemptible, and runs."""

    queue: int
    needs: tuple[int, ...]
    tier: int
    preemptible: bool
    runs: bool


def runs_after(
    jobs: Sequence[Job], total: tuple[int, ...], weight: Sequence[int], protected: Fraction
) -> frozenset[int]:
    """Return the numbers of the jobs that run after a round; they are given in the order of submission."""
    queues = sorted({job.queue for job in jobs})

    def of(queue: int, numbers: Iterable[int]) -> tuple[int, ...]:
        own = [jobs[each].needs for each in numbers if jobs[each].queue == queue]
        return tuple(map(sum, zip(*own, strict=True))) if own else (0,) * len(total)

    def cost(amounts: Sequence[int]) -> Fraction:
        return max(Fraction(need, there) for need, there in zip(amounts, total, strict=True))

    everybody = range(len(jobs))
    running = [each for each in everybody if jobs[each].runs]
    by_weight, capped, _ = fair_shares(
        [weight[each] for each in queues], [cost(of(each, everybody)) for each in queues]
    )
    fair = {queue: max(by_weight[at], capped[at]) for at, queue in enumerate(queues)}
    above = {queue for queue in queues if cost(of(queue, running)) > protected * fair[queue]}
    evicted = [each for each in running if jobs[each].preemptible and jobs[each].queue in above]
    bound = [each for each in running if each not in evicted]
    there = set(evicted)  # the evicted jobs that still have their places

    def free(tier: int | None) -> list[int]:
        """What is there for a job of a class; None: for one that takes nobody's place."""
        left = list(total)
        for each in [*bound, *there] if tier is None else bound:
            if tier is None or not jobs[each].preemptible or jobs[each].tier >= tier:
                left = [has - need for has, need in zip(left, jobs[each].needs, strict=True)]
        return left

    def fits(number: int, left: Sequence[int]) -> bool:
        return all(need <= has for need, has in zip(jobs[number].needs, left, strict=True))

    def in_turn(numbers: Iterable[int], start: Callable[[int], bool]) -> None:
        """Go through jobs by what their queues cost with them; ``start`` says whether one counts for its queue."""
        given = list(numbers)
        lines = {queue: [each for each in given if jobs[each].queue == queue] for queue in queues}
        held = {queue: of(queue, bound) for queue in queues}
        for own in lines.values():
            own.sort(key=lambda each: (not jobs[each].runs, -jobs[each].tier, each))

        def key(queue: int) -> tuple[int, Fraction, int]:
            first = jobs[lines[queue][0]]
            with_it = [has + need for has, need in zip(held[queue], first.needs, strict=True)]
            return -first.tier, cost(with_it) / weight[queue], queue

        while any(lines.values()):
            queue = min((each for each in queues if lines[each]), key=key)
            number = lines[queue].pop(0)
            if start(number):
                held[queue] = tuple(has + need for has, need in zip(held[queue], jobs[number].needs, strict=True))

    table: list[int] = []
    in_turn(evicted, lambda number: not table.append(number))  # type: ignore[func-returns-value]
    preempted: set[int] = set()

    def start(number: int) -> bool:
        job = jobs[number]
        if number in evicted:
            if number in preempted or not fits(number, free(job.tier)):
                return False
            there.discard(number)
            table.remove(number)
        elif not fits(number, free(None)):
            if not fits(number, free(job.tier)):
                return False
            left, taken = free(None), list[int]()
            for other in [each for each in reversed(table) if jobs[each].tier <= job.tier]:
                if fits(number, left):
                    break
                left = [has + need for has, need in zip(left, jobs[other].needs, strict=True)]
                taken.append(other)
            for other in taken if fits(number, left) else ():
                table.remove(other)
                there.discard(other)
                preempted.add(other)
        bound.append(number)
        return True

    in_turn([*evicted, *(each for each in everybody if not jobs[each].runs)], start)
    over = {job.tier for job in jobs if min(free(job.tier)) < 0}
    again = [each for each in bound if jobs[each].preemptible and jobs[each].tier in over]
    bound[:] = [each for each in bound if each not in again]

    def back(number: int) -> bool:
        if not fits(number, free(jobs[number].tier)):
            return False
        bound.append(number)
        return True

    in_turn(again, back)
    return frozenset(bound)
