"""Fair Tree over time: it conforms, and past use decides and fades."""

from __future__ import annotations

from fractions import Fraction

import pytest
from drawn_seeds import counts

from fairopt.errors import BadInput
from fairopt.models.common.schedulers import Tally
from fairopt.models.slurm.rounds import SlurmFairTreeRounds
from fairopt.policy.decide import decide
from fairopt.problem import Cluster, Jobs
from fairopt.problem.queue import Queue
from fairopt.proofs.verifier import runs
from fairopt.testing.round_suite import round_suite


@pytest.mark.parametrize("settings", counts(2, 5))
@pytest.mark.parametrize("policy", [SlurmFairTreeRounds(), SlurmFairTreeRounds(backfill=True, half_life=None)])
def test_it_conforms(policy: SlurmFairTreeRounds, settings: int) -> None:
    round_suite(runs.decide, settings=settings).run([policy]).require_complete()


def queue(tenants: list[str], *, now: int = 0, gpus: list[int] | None = None) -> Queue:
    jobs = Jobs.of(gpus=gpus or [4] * len(tenants), work=[10_000] * len(tenants), types=["T"], tenant=tenants)
    return Queue.fresh(jobs, Cluster.uniform({"T": (1, 4)}), length=100, now=now)


def test_the_account_that_used_less_goes_first_whatever_its_user_used() -> None:
    # hep used more than astro, but ada less than cem
    state = Tally({"hep/ada": Fraction(1), "hep/bo": Fraction(9), "astro/cem": Fraction(4)})
    decision = decide(SlurmFairTreeRounds(), queue(["hep/ada", "astro/cem", "hep/bo"]), state=state)
    assert list(decision.placements) == [1]
    assert decision.state.of["astro/cem"] == 404  # 4 GPUs for 100 s are charged


def test_use_fades_by_half_in_a_half_life() -> None:
    state = Tally({"a": Fraction(1000), "b": Fraction(1000)})
    decision = decide(SlurmFairTreeRounds(half_life=200), queue(["a", "b"], now=200), state=state)
    assert decision.state.of == {"a": 900, "b": 500}
    kept = decide(SlurmFairTreeRounds(half_life=None), queue(["a", "b"], now=200), state=state)
    assert kept.state.of == {"a": 1400, "b": 1000}


def test_who_finds_no_room_blocks_but_for_backfill() -> None:
    asked = queue(["a", "b", "c"], gpus=[3, 2, 1])
    assert list(decide(SlurmFairTreeRounds(), asked).placements) == [0]
    assert sorted(decide(SlurmFairTreeRounds(backfill=True), asked).placements) == [0, 2]


def test_options_are_checked() -> None:
    with pytest.raises(BadInput, match="half_life"):
        SlurmFairTreeRounds(half_life=0)
    with pytest.raises(BadInput, match="backfill"):
        SlurmFairTreeRounds(backfill=1)  # type: ignore[arg-type]
