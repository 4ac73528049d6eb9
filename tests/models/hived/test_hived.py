"""HiveD: buddy allocation, its safety, virtual clusters, and the source's demonstrations."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from random import Random

import pytest
from drawn_seeds import counts

from fairopt.models.hived.cells import Chain, FreeCells, GpuCell, chains, virtual_clusters
from fairopt.models.hived.hived import HiveD
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.problem.files.cluster import cluster_from_dict, cluster_to_dict
from fairopt.proofs.verifier.runs import decide as judge
from fairopt.simulation import Mechanics, Round, run
from fairopt.testing.round_suite import round_suite

#: Two hosts of 4 GPUs: cells of 1, 2 and 4.
PAIRS = (1, 2, 4)


def feasible(cells: tuple[int, ...]) -> bool:
    """Whether cells of the given sizes fit into two cells of 4 together; by trying, the largest first."""
    free = FreeCells(PAIRS, [4, 4])
    return all(free.allocate(size) for size in sorted(cells, reverse=True))


def assignments() -> list[tuple[int, ...]]:
    every = (each for count in range(1, 9) for each in combinations_with_replacement(PAIRS, count))
    return [each for each in every if sum(each) <= 8 and feasible(each)]


@pytest.mark.parametrize("cells", assignments(), ids=str)
def test_theorem_1_any_legal_request_is_granted(cells: tuple[int, ...]) -> None:
    # a request is legal if the virtual clusters have a free cell of the size; all orders of requests and releases
    for seed in range(20):
        random, free = Random(seed), FreeCells(PAIRS, [4, 4])
        held: list[GpuCell | None] = [None] * len(cells)
        for _ in range(60):
            which = random.randrange(len(cells))
            mine = held[which]
            if mine is None:
                held[which] = free.allocate(cells[which])
                assert held[which] is not None, f"{cells}: {held} left no cell of {cells[which]}"
            else:
                free.release(mine)
                held[which] = None
            gpus = sorted((cell.root, at) for cell in held if cell for at in range(cell.first, cell.first + cell.size))
            assert len(set(gpus)) == len(gpus), f"a GPU is given out twice: {held}"
            assert sum(cell.size for cell in free.cells) == 8 - len(gpus)


def test_without_buddies_theorem_1_fails() -> None:
    # two virtual clusters of 4 single GPUs and one cell of 4; GPUs are spread over the hosts
    free = FreeCells(PAIRS, [4, 4])
    free.take(GpuCell(0, 0, 1))
    free.take(GpuCell(1, 0, 1))
    assert free.allocate(4) is None


def test_freed_cells_are_merged_to_the_top() -> None:
    free = FreeCells(PAIRS, [4, 4])
    cells = [free.allocate(1) for _ in range(8)]
    assert free.cells == set()
    for cell in Random(1).sample(cells, 8):
        assert cell is not None
        free.release(cell)
    assert free.cells == {GpuCell(0, 0, 4), GpuCell(1, 0, 4)}


@pytest.mark.parametrize("weights", [[1], [1, 1], [1, 2], [3, 1, 1], ["1/3", "2/7", 5], [1] * 11])
def test_virtual_clusters_fit_together(weights: list[object]) -> None:
    chain = Chain(0, 8, (1, 2, 4, 8, 16), ((0, 1), (2, 3)))
    given = virtual_clusters(chain, [Fraction(weight) for weight in weights])  # type: ignore[arg-type]
    free = FreeCells(chain.sizes, [16, 16])
    assert all(free.allocate(size) for size in sorted((size for own in given for size in own), reverse=True))
    assert sum(map(sum, given)) == 32
    total = sum(Fraction(weight) for weight in weights)  # type: ignore[arg-type,misc]
    for own, weight in zip(given, weights, strict=True):
        assert abs(sum(own) - 32 * Fraction(weight) / total) < 1  # type: ignore[arg-type]


def test_chains_of_racks_hosts_and_odd_hosts() -> None:
    cluster = Cluster.of(["A"] * 4 + ["B"], [8, 8, 8, 8, 6], rack=["r1", "r1", "r2", "r2", None])  # type: ignore[list-item]
    assert chains(cluster) == (
        Chain(0, 8, (1, 2, 4, 8, 16), ((0, 1), (2, 3))),
        Chain(1, 6, (1, 3, 6), ((4,),)),
    )
    assert cluster_from_dict(cluster_to_dict(cluster)).rack == cluster.rack == ("r1", "r1", "r2", "r2", "")
    assert Cluster.uniform({"A": (2, 8)}).rack == ()


def played(policy: HiveD, jobs: Jobs, cluster: Cluster, **more: object) -> list[Round]:
    return list(run(policy, Trace(jobs), cluster, length=10, **more))  # type: ignore[arg-type]


def hosts(record: Round) -> dict[str, list[str]]:
    return {ran.job: [host for host, _ in ran.spots] for ran in record.ran}


def test_vc_safety_demo_two_dgx2() -> None:
    # example/feature/README.md, VC Safety: two tenants own a DGX-2 each; 16 jobs of one GPU of the first all run within
    # one node, so that a job of 16 GPUs of the second has the other
    cluster = Cluster.uniform({"DGX2": (2, 16)})
    jobs = Jobs.of(
        gpus=[1] * 16 + [16], work=[100] * 17, types=["DGX2"], tenant=["vc1"] * 16 + ["vc2"], arrival=[0] * 16 + [20]
    )
    rounds = played(HiveD(), jobs, cluster)
    small = {host for name, [host] in hosts(rounds[0]).items()}
    assert len(hosts(rounds[0])) == 16
    assert len(small) == 1
    assert set(hosts(rounds[2])["j17"]).isdisjoint(small)


def test_gang_demo_a_job_larger_than_its_virtual_cluster_waits_and_blocks_nobody() -> None:
    # example/feature/README.md, Gang Scheduling: six GPUs wait in a virtual cluster of four, and four GPUs run
    cluster = Cluster.uniform({"K80": (2, 4)})
    jobs = Jobs.of(gpus=[6, 4, 4], work=[30] * 3, types=["K80"], tenant=["vc1", "vc1", "vc2"], arrival=[0, 1, 1])
    first = next(iter(run(HiveD(opportunistic=False), Trace(jobs), cluster, length=10, rounds=2)))
    assert first.notes == {"j1": "larger than the virtual cluster of 'vc1': K80: needs 6 GPUs of 4"}
    second = list(run(HiveD(opportunistic=False), Trace(jobs), cluster, length=10, rounds=2))[1]
    assert set(hosts(second)) == {"j2", "j3"}


def test_opportunistic_jobs_use_idle_gpus_until_their_owner_wants_them() -> None:
    # example/feature/README.md, Opportunistic Job and Inter-VC Preemption
    cluster = Cluster.uniform({"K80": (2, 4)})
    jobs = Jobs.of(gpus=[4, 4, 4], work=[40] * 3, types=["K80"], tenant=["vc1", "vc1", "vc2"], arrival=[0, 0, 10])
    rounds = played(HiveD(), jobs, cluster, mechanics=Mechanics(restart=0))
    assert [sorted(hosts(record)) for record in rounds[:5]] == [["j1", "j2"], *[["j1", "j3"]] * 3, ["j2", "j3"]]


@pytest.mark.parametrize("overtake", [False, True])
def test_first_in_first_out_within_a_virtual_cluster(overtake: bool) -> None:
    cluster = Cluster.uniform({"K80": (1, 4)})
    jobs = Jobs.of(gpus=[2, 4, 2], work=[20] * 3, types=["K80"], arrival=[0, 1, 2])
    policy = HiveD(overtake=overtake, opportunistic=False)
    ran = [sorted(hosts(record)) for record in played(policy, jobs, cluster)]
    assert ran == (
        [["j1"], ["j1", "j3"], ["j3"], ["j2"], ["j2"]] if overtake else [["j1"], ["j1"], ["j2"], ["j2"], ["j3"], ["j3"]]
    )


@pytest.mark.parametrize("settings", counts(1, 4))
@pytest.mark.parametrize("policy", [HiveD(overtake=True), HiveD(opportunistic=True)], ids=repr)
def test_options_conform(policy: HiveD, settings: int) -> None:
    round_suite(judge, settings=settings).run([policy]).require_complete()


def test_a_gang_of_three_lies_in_one_half() -> None:
    # a cell of 1 is free on the first host; three GPUs go together into a half of the other
    cluster = Cluster.uniform({"K80": (2, 8)})
    jobs = Jobs.of(gpus=[7, 3], work=[50, 50], types=["K80"])
    [first] = list(run(HiveD(), Trace(jobs), cluster, length=10, rounds=1))
    assert hosts(first) == {"j1": ["K80-1"], "j2": ["K80-2"]}
