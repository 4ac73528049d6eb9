"""Karma: the library's example and answers, what the policy does with whole gangs, and who pays for what."""

from __future__ import annotations

from fractions import Fraction as F
from pathlib import Path

import pytest

from fairopt.errors import BadInput
from fairopt.models.karma.karma import Karma, Quantum, cut, cut_as_published, played, quantum
from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.problem.trace import Trace
from fairopt.simulation import run

#: Demands, given slices and credits after, for each quantum.
Steps = list[tuple[list[int], list[int], list[int]]]


def answers() -> list[tuple[int, F, int, Steps]]:
    """Return what the compiled library answered: slices, its alpha, credits at the start, and the quanta."""
    rows = []
    for line in (Path(__file__).parent / "library.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        head, *quanta = line.split(" | ")
        total, alpha, credits = head.split()
        steps: Steps = []
        for each in quanta:
            demand, given, after = (list(map(int, part.split())) for part in each.split(" > "))
            steps.append((demand, given, after))
        rows.append((int(total), F(alpha), int(credits), steps))
    return rows


def test_the_published_example() -> None:
    demands = [[4, 1, 1], [0, 3, 0], [2, 2, 5]]
    quanta = played(demands, cut_as_published(6, 3, F(1, 2)), 999_999_999_999)
    assert [each.given for each in quanta] == [(4, 1, 1), (0, 3, 0), (1, 1, 4)]


def test_sixty_sequences_that_the_compiled_library_answered() -> None:
    same = 0
    for total, alpha, credits, steps in answers():
        slices, before = cut_as_published(total, len(steps[0][0]), alpha), [credits] * len(steps[0][0])
        for demand, given, after in steps:
            found = quantum(demand, before, slices)
            if found == Quantum(tuple(given), tuple(after)):
                same += 1
            else:  # only who wins a tie differs
                assert (sum(found.given), sorted(found.credits)) == (sum(given), sorted(after))
            before = after
    assert len(answers()) == 60
    assert same / sum(len(steps) for *_, steps in answers()) > F(8, 10)


def test_the_library_loses_what_does_not_divide_and_the_policys_cut_does_not() -> None:
    assert played([[7, 7, 7]], cut_as_published(7, 3, F(1, 2)), 9)[0].given == (2, 2, 2)
    assert sum(played([[7, 7, 7]], cut([3, 2, 2], F(1, 2)), 9)[0].given) == 7


def test_credits_are_what_was_lent_less_what_was_borrowed() -> None:
    lender, borrower = played([[0, 4], [0, 4]], cut([2, 2], F(1)), 10)[-1].credits
    assert (lender, borrower) == (14, 6)
    assert played([[0, 4]], cut([2, 2], F(1)), 1)[0] == Quantum((0, 3), (2, 0))


def jobs_of(demands: list[dict[str, int]], **gang: int) -> Trace:
    """Return jobs of one GPU and one round that make these demands, and one gang of a tenant that is there before."""
    rows = [(0, tenant, gpus) for tenant, gpus in gang.items()]
    rows += [(at, name, 1) for at, each in enumerate(demands) for name, many in each.items() for _ in range(many)]
    arrival, tenant, gpus = zip(*rows, strict=True)
    return Trace(
        Jobs.of(
            types=["GPU"], arrival=arrival, gpus=gpus, work=gpus, tenant=tenant, tenant_weight=dict.fromkeys("ABC", 1)
        )
    )


def held(trace: Trace, rounds: int) -> list[tuple[int, ...]]:
    """Return the GPUs of A, B and C in each round on a host of six."""
    cluster, jobs = Cluster.uniform({"GPU": (1, 6)}), trace.jobs
    size = {name: (jobs.tenant_of(row), int(jobs.gpus[row])) for row, name in enumerate(jobs.names)}
    records = run(Karma(), trace, cluster, length=1, rounds=rounds)
    ran = [[size[one.job] for one in record.ran] for record in records]
    return [tuple(sum(gpus for tenant, gpus in each if tenant == name) for name in "ABC") for each in ran]


def test_the_example_as_a_run_of_jobs() -> None:
    # nobody waits in the first two rounds, so that the third one's demands are the example's
    trace = jobs_of([{"A": 4, "B": 1, "C": 1}, {"B": 3}, {"A": 2, "B": 2, "C": 5}])
    assert held(trace, 3) == [(4, 1, 1), (0, 3, 0), (1, 1, 4)]


def test_a_gang_that_is_larger_than_its_tenants_gpus_waits_with_its_credits() -> None:
    # A is given 2 GPUs, which do not hold its gang; B and C pay for what they run, and A is first for all shared GPUs
    trace = jobs_of([{"B": 3, "C": 3}] * 2, A=4)
    assert held(trace, 2) == [(0, 3, 3), (4, 1, 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 2}, "karma, alpha: got 2"),
        ({"credits": -1}, "karma, credits: got -1"),
        ({"alpha": "much"}, "karma, alpha: got 'much'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Karma(**options)  # type: ignore[arg-type]
