"""KAI Scheduler's cycle against the clusters of its own tests, and the policy on small ones."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairopt import allocate
from fairopt.errors import BadInput, NotCapable
from fairopt.importing.kai import read
from fairopt.models.kai.cycle import Cycle
from fairopt.models.kai.kai import Kai
from fairopt.models.kai.pool import NodePool
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good
from fairopt.program import INFINITY
from fairopt.testing.counted_steps import CountedSteps

#: The most steps: what takes time that grows with the square takes more.
STEPS = 150_000_000

HERE = Path(__file__).parent
SAMPLES = HERE.parents[2] / "fairopt" / "datasets" / "clusters" / "kai"
#: A job's state after the source's test, and whether it runs in the end.
RUNS = {"Running": True, "Binding": True, "Pipelined": True, "Releasing": False, "Pending": False}
#: In these the free GPUs are on different nodes, which a node pool without nodes cannot know.
FRAGMENTED = {
    ("reclaim/reclaim_test", 205),
    ("reclaim/reclaim_test", 419),
    ("reclaim/reclaim_test", 2655),
    ("integration_tests/reclaim/reclaim_test", 3602),
    ("integration_tests/preempt/preempt_test", 265),
}


@dataclass(frozen=True)
class Cluster:
    """A cluster of the source's tests: GPUs by node, queues and jobs as they stand in kai_clusters.json.

    A queue: the one above it (-1 for none), quota, limit (-1 for unlimited), weight, priority. A job: its queue, GPUs,
    priority, whether it runs, pods, when it was made, and its state after ``action``.
    """

    file: str
    line: int
    action: str
    nodes: list[int]
    queues: list[list[Any]]
    jobs: list[list[Any]]

    def market(self) -> Market:
        """Return the cluster as one node pool; a pod takes a core, which no queue counts."""
        above = {row[0] for row in self.queues}
        names = [f"q{at}" for at in range(len(self.queues))]
        users = [name for at, name in enumerate(names) if at not in above]
        gangs = Gangs.of(
            [names[job[0]] for job in self.jobs],
            [job[1] for job in self.jobs],
            users=users,
            types=["gpu"],
            on=["gpu" if job[3] else None for job in self.jobs],
            tier=[job[2] for job in self.jobs],
            preemptible=[job[2] < 100 for job in self.jobs],
            since=[job[5] for job in self.jobs],
            other={"cpu": [job[4] for job in self.jobs]},
        )
        rows = dict(zip(names, self.queues, strict=True))
        owed = Entitlements.of(
            users,
            ["gpu"],
            group={name: names[row[0]] for name, row in rows.items() if row[0] >= 0},
            groups=[name for at, name in enumerate(names) if at in above],
            goods={Good("cpu", "gpu"): 20 * len(self.nodes)},
            guarantee={name: [unbounded(row[1]), INFINITY] for name, row in rows.items()},
            cap={name: [unbounded(row[2]), INFINITY] for name, row in rows.items()},
            borrow_weight={name: row[3] for name, row in rows.items()},
            tier={name: row[4] for name, row in rows.items()},
            gangs=gangs,
        )
        return Market.of([[1]] * len(users), [sum(self.nodes)], users=users, types=["gpu"], entitlements=owed)

    def runs(self) -> list[bool]:
        """Return which jobs run after the action, or after seven cycles, as in the source's integration tests."""
        market = self.market()
        if self.action == "all":
            return [bool(on == 0) for on in allocate(Kai(cycles=7), market).evidence.gangs.on]
        owed = market.entitlements
        assert owed is not None
        play = Cycle(NodePool(market, owed, owed.gangs, 0, 1), 1)
        {"allocate": play.allocate, "reclaim": play.reclaim, "preempt": play.preempt}[self.action]()
        return [(job[3] and at not in play.stopped) or at in play.started for at, job in enumerate(self.jobs)]


def unbounded(value: Any) -> Any:
    """Return infinity for -1."""
    return INFINITY if value == -1 else Fraction(str(value))


CLUSTERS = [Cluster(*row) for row in json.loads((HERE / "kai_clusters.json").read_text(encoding="utf-8"))]


def test_how_many_clusters_of_the_source_are_here() -> None:
    """130 of the 178 of eleven files; the others have parts of GPUs, CPU, or states that gangs do not have."""
    assert Counter(cluster.action for cluster in CLUSTERS) == {"reclaim": 45, "all": 48, "allocate": 21, "preempt": 16}
    assert {(cluster.file, cluster.line) for cluster in CLUSTERS if len(cluster.nodes) > 1} >= FRAGMENTED


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda each: f"{each.file} {each.line}")
def test_who_runs_in_the_end_is_what_the_source_expects(cluster: Cluster) -> None:
    """Each job in 125 clusters; in the other five nodes decide."""
    wanted = [job[6] for job in cluster.jobs]
    agree = [RUNS[state] == runs for state, runs in zip(wanted, cluster.runs(), strict=True) if state]
    assert all(agree) != ((cluster.file, cluster.line) in FRAGMENTED)


# -- the policy ----------------------------------------------------------------------------------------------------
def small(*jobs: tuple[str, int, bool, bool], **more: Any) -> Market:
    """Return a market of eight GPUs and queues A and B; a job: queue, GPUs, whether it runs, whether preemptible."""
    gangs = Gangs.of(
        [job[0] for job in jobs],
        [job[1] for job in jobs],
        users=["A", "B"],
        types=["H100"],
        on=["H100" if job[2] else None for job in jobs],
        preemptible=[job[3] for job in jobs],
    )
    owed = Entitlements.of(["A", "B"], ["H100"], **({"guarantee": {"A": [4], "B": [4]}} | more), gangs=gangs)
    return Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)


def test_the_sample_cluster_reclaims_for_the_starved_queue() -> None:
    """Fair shares of 10 and 5: vision gives back 4 of its 14, and llm's next gang is beyond its share."""
    found = allocate(Kai(), read(SAMPLES / "cluster.yaml").problem)
    names, why = found.market.users, found.evidence
    assert dict(zip(names, found.shares[:, 0].tolist(), strict=True)) == {
        "notebooks": 0,
        "ops": 1,
        "vision": 10,
        "llm": 4,
    }
    assert why.stopped.keys() == {"vision/sweep+1", "vision/sweep+2"}
    assert "its queue would hold 8 GPUs, and its fair share is 5 GPUs" in why.waits["llm/eval"]
    assert why.owed[found.market.entitlements.node("vision"), 0] == 10


def test_floats_and_fractions_decide_alike() -> None:
    """The same gangs run."""
    market = read(SAMPLES / "cluster.yaml").problem
    one, other = allocate(Kai(), market, exact=True), allocate(Kai(), market, exact=False)
    assert one.evidence.gangs.on.tolist() == other.evidence.gangs.on.tolist()


def test_what_is_not_preemptible_stays_within_its_quota_and_where_it_is() -> None:
    """Six GPUs for good are beyond a quota of 4, with GPUs free; and those that run are not reclaimed."""
    found = allocate(Kai(), small(("A", 6, False, False)))
    assert "the quota of 'A' is 4 GPUs" in found.evidence.waits["g1"]
    found = allocate(Kai(), small(("A", 8, True, False), ("B", 4, False, True)))
    assert found.shares.tolist() == [[8], [0]]


def test_a_limit_binds_even_where_gpus_are_free() -> None:
    """The reason names the queue, its limit, and what it holds."""
    found = allocate(Kai(), small(("A", 2, True, True), ("A", 2, False, True), cap={"A": [3]}))
    assert "the limit of 'A' is 3 GPUs, of which it holds 2 GPUs" in found.evidence.waits["g2"]


def test_higher_priority_preempts_within_a_queue_only() -> None:
    """A's urgent gang takes the place of A's other one, and B's stays."""
    gangs = Gangs.of(
        ["A", "B", "A"], [4, 4, 4], users=["A", "B"], types=["H100"], on=["H100", "H100", None], tier=[50, 10, 75]
    )
    owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]}, gangs=gangs)
    market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    assert allocate(Kai(), market).evidence.stopped == {"g1": "it made room for 'g3' of 'A'"}


def test_options_out_of_range_and_markets_without_entitlements_are_refused() -> None:
    """By name."""
    for options in ({"k": -1}, {"saturation": Fraction(1, 2)}, {"cycles": 0}):
        with pytest.raises(BadInput):
            Kai(**options)
    with pytest.raises(NotCapable, match="decides by entitlements"):
        allocate(Kai(), Market.of([[1]], [1]))


def test_holdings_without_a_gang_stay_when_gangs_change() -> None:
    """Half a GPU for good that no gang stands for is still held, and still not preemptible, after a cycle."""
    owed = small(("A", 2, True, False)).entitlements
    more = Entitlements.of(
        ["A", "B"], ["H100"], held={"A": [Fraction(5, 2)]}, fixed={"A": [Fraction(5, 2)]}, gangs=owed.gangs
    )
    after = more.running(owed.gangs.placed([-1]))
    assert (after.held[0, 0], after.fixed[0, 0]) == (Fraction(1, 2), Fraction(1, 2))


def test_a_gang_that_may_run_in_two_pools_runs_in_one() -> None:
    """The first has no room; in the second it starts, and nothing says that it waits."""
    gangs = Gangs.of(["A", "A"], [2, 2], users=["A"], types=["old", "new"], on=["old", None])
    owed = Entitlements.of(["A"], ["old", "new"], guarantee={"A": [2, 2]}, gangs=gangs)
    found = allocate(Kai(), Market.of([[1, 1]], [2, 2], users=["A"], types=["old", "new"], entitlements=owed))
    assert found.shares.tolist() == [[2, 2]]
    assert found.evidence.waits == {}


@pytest.mark.slow
@pytest.mark.parametrize("everywhere", [False, True])
def test_two_thousand_queues_and_fifty_thousand_gangs_take_few_steps(everywhere: bool) -> None:
    """Of processor time: a tree of three levels, ten types; each queue in one pool, or gangs that may run in all."""
    draw, types = Random(0), [f"T{j}" for j in range(10)]
    users = [f"u{i}" for i in range(1790)]
    group = {name: f"g{i % 200}" for i, name in enumerate(users)} | {f"g{i}": f"d{i % 10}" for i in range(200)}
    own = {name: types[i % 10] for i, name in enumerate(users)}
    free = dict.fromkeys(types, 2000)
    rows = []
    for _ in range(60_000):
        name, gpus = draw.choice(users), draw.choice([1, 1, 2, 4, 8])
        on = own[name] if len(rows) < 10_000 and free[own[name]] >= gpus else None
        free[own[name]] -= gpus if on else 0
        rows.append((name, gpus, on, draw.choice([50, 75, 125])))
    gangs = Gangs.of(
        [row[0] for row in rows],
        [row[1] for row in rows],
        users=users,
        types=types,
        on=[row[2] for row in rows],
        tier=[row[3] for row in rows],
        preemptible=[row[3] < 100 for row in rows],
        allowed=None if everywhere else [[own[row[0]]] for row in rows],
    )
    owed = Entitlements.of(
        users,
        types,
        group=group,
        guarantee={
            name: [draw.choice([0, 1, 2, 4]) if everywhere or each == own[name] else 0 for each in types]
            for name in users
        },
        borrow_weight={name: draw.choice([1, 2, 3]) for name in users},
        tier={name: draw.choice([100, 200]) for name in users},
        gangs=gangs,
    )
    market = Market.of([[1] * 10] * len(users), [2000] * 10, users=users, types=types, entitlements=owed)
    with CountedSteps(STEPS):
        found = allocate(Kai(), market, exact=True)
    assert found.evidence.stopped
    assert len(found.evidence.waits) > 20_000
