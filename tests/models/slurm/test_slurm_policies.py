"""Slurm's policies on markets: who starts, who waits and why, and what options change."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.errors import BadInput, NotCapable
from fairopt.importing import slurm as importer
from fairopt.models import Kueue
from fairopt.models.slurm.slurm import SlurmFairTree, SlurmMultifactor
from fairopt.models.slurm.tree import Ties
from fairopt.policy.decide import decide
from fairopt.problem import Gangs, Market
from fairopt.problem.entitlements import Entitlements
from fairopt.program import INFINITY
from fairopt.testing.counted_steps import CountedSteps

#: The most steps: what takes time that grows with the square takes more.
STEPS = 50_000_000

SAMPLES = Path(importer.__file__).parent.parent / "datasets" / "clusters" / "slurm"
FILES = [SAMPLES / name for name in ("sshare.txt", "assoc.txt", "nodes.txt", "qos.txt", "jobs.txt")]


def market(jobs: list[tuple[str, int]], *, gpus: int = 8, **more: object) -> Market:
    """Return users a/u (usage 1) and b/v (usage 3) of equal shares with pending jobs, on one type."""
    users = ["a/u", "b/v"]
    gangs = Gangs.of([user for user, _ in jobs], [count for _, count in jobs], users=users, types=["H100"])
    owed = Entitlements.of(
        users,
        ["H100"],
        group={"a/u": "a", "b/v": "b"},
        usage={"a/u": 1, "a": 1, "b/v": 3, "b": 3},
        gangs=gangs,
        **more,  # type: ignore[arg-type]
    )
    return Market.of([[1], [1]], [gpus], users=users, types=["H100"], entitlements=owed)


def test_what_sshare_printed_is_computed_again() -> None:
    found = importer.read(*FILES)
    evidence = decide(SlurmFairTree(), found.problem).evidence
    factors = SlurmFairTree().factors(found.problem)
    compared = 0
    for name, declared in found.declared.items():
        if "LevelFS" in declared:
            own = evidence.share[name]
            assert own == declared["LevelFS"] or abs(own - declared["LevelFS"]) < Fraction(1, 10**6), name
            compared += 1
        if "FairShare" in declared:
            assert abs(factors[name] - declared["FairShare"]) < Fraction(1, 10**6), name
            compared += 1
    assert compared == 22


def test_why_jobs_of_the_sample_wait() -> None:
    evidence = decide(SlurmFairTree(), importer.read(*FILES).problem).evidence
    assert evidence.waits == {
        "105": "the limit of vision/eve: 8 h100, of which it holds 4",
        "107": "the limit of astro: 4 a100, of which it holds 4",
        "109": "the limit of ml: 12 h100, of which it holds 10",
    }


@pytest.mark.parametrize("policy", [SlurmFairTree(), SlurmMultifactor()])
def test_who_used_less_goes_first(policy: SlurmFairTree | SlurmMultifactor) -> None:
    decision = decide(policy, market([("b/v", 8), ("a/u", 8)]))
    assert decision.shares.tolist() == [[8], [0]]
    assert decision.evidence.order == ("a/u", "b/v")
    assert decision.evidence.waits == {"g1": "it needs 8 H100, and 0 are free"}
    assert decision.evidence.owed[:2].tolist() == [[4], [4]]


def test_a_job_that_lacks_gpus_keeps_its_type_but_for_backfill() -> None:
    asked = market([("a/u", 6), ("a/u", 4), ("b/v", 2)])
    strict = decide(SlurmFairTree(), asked)
    assert strict.shares.tolist() == [[6], [0]]
    assert strict.evidence.waits["g3"] == "H100 is kept for g2, which goes first"
    assert decide(SlurmFairTree(backfill=True), asked).shares.tolist() == [[6], [2]]


def test_a_job_that_breaks_a_limit_is_passed_over() -> None:
    asked = market([("a/u", 6), ("b/v", 8)], cap={"a": [4]})
    assert decide(SlurmFairTree(), asked).shares.tolist() == [[0], [8]]


def test_a_job_larger_than_the_cluster_keeps_nothing() -> None:
    decision = decide(SlurmFairTree(), market([("a/u", 9), ("b/v", 8)]))
    assert decision.shares.tolist() == [[0], [8]]
    assert "more than there are" in decision.evidence.waits["g1"]


def test_weights_make_a_sum_of_whole_numbers() -> None:
    users = ["a/u", "b/v"]
    gangs = Gangs.of(["a/u", "b/v"], [8, 8], users=users, types=["H100"], tier=[0, 5])
    base = market([])
    owed = base.entitlements
    assert owed is not None
    asked = Market.of([[1], [1]], [8], users=users, types=["H100"], entitlements=owed.running(gangs))
    assert decide(SlurmFairTree(), asked).shares.tolist() == [[8], [0]]  # the fair-share factor first
    assert decide(SlurmFairTree(weight_fairshare=10, weight_qos=10), asked).shares.tolist() == [[0], [8]]
    assert decide(SlurmFairTree(weight_fairshare=100, weight_qos=10), asked).shares.tolist() == [[8], [0]]
    # weight 1: FairShare 1 and 1/2 give priorities 1 and, being at least 1, 1
    assert decide(SlurmFairTree(weight_fairshare=1, weight_qos=0), asked).evidence.waits == {
        "g2": "it needs 8 H100, and 0 are free"
    }


def test_fairshare_parent_goes_before_its_siblings() -> None:
    asked = market([], borrow_weight={"b/v": 0}, tier={"b/v": 1})
    assert decide(SlurmFairTree(), asked).evidence.share["b/v"] == INFINITY
    assert decide(SlurmFairTree(), asked).shares.tolist() == [[0], [0]]


def test_options_are_checked() -> None:
    with pytest.raises(BadInput, match=r"ties.*Ties\.CODE, Ties\.DOCUMENTED"):
        SlurmFairTree(ties="code")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="age: got -1"):
        SlurmFairTree(weight_age=-1)
    with pytest.raises(BadInput, match="dampening"):
        SlurmMultifactor(dampening=0)
    guaranteed = market([], guarantee={"a/u": [1]})
    with pytest.raises(NotCapable, match="guarantees"):
        decide(SlurmFairTree(), guaranteed)


@given(data=st.data())
def test_decisions_keep_limits_and_are_the_same_in_floats(data: st.DataObject) -> None:
    users, types = ["a/u", "b/v", "b/w"], ["K", "V"]
    whole = st.integers(0, 6)
    count = data.draw(st.integers(0, 8))
    gangs = Gangs.of(
        [data.draw(st.sampled_from(users)) for _ in range(count)],
        [data.draw(st.integers(1, 4)) for _ in range(count)],
        users=users,
        types=types,
        allowed=[data.draw(st.sampled_from([["K"], ["V"], ["K", "V"]])) for _ in range(count)],
    )
    names = [*users, "a", "b"]
    used = {user: data.draw(whole) for user in users}
    owed = Entitlements.of(
        users,
        types,
        group={"a/u": "a", "b/v": "b", "b/w": "b"},
        usage=used | {"a": used["a/u"], "b": used["b/v"] + used["b/w"]},
        borrow_weight={name: data.draw(whole) for name in names},
        cap={name: [data.draw(whole), None] for name in names},
        gangs=gangs,
    )
    asked = Market.of([[1, 1]] * 3, [4, 4], users=users, types=types, entitlements=owed)
    for policy in (
        SlurmFairTree(ties=data.draw(st.sampled_from(Ties))),
        SlurmMultifactor(backfill=data.draw(st.booleans())),
    ):
        decision = decide(policy, asked)
        assert (owed.total(decision.shares) <= owed.cap).all()
        assert (decision.shares.sum(axis=0) <= asked.capacity).all()
        waiting = {name for name, on in zip(gangs.names, decision.evidence.gangs.on, strict=True) if on < 0}
        assert waiting == decision.evidence.waits.keys()
        assert decide(policy, asked.as_(float)).shares.tolist() == decision.shares.tolist()


@pytest.mark.slow
def test_2000_associations_10_types_and_50000_jobs_take_few_steps() -> None:
    types = [f"t{j}" for j in range(10)]
    groups = {f"g{i}": f"g{(i - 1) // 5}" for i in range(1, 300)}
    users = [f"u{i}" for i in range(1700)]
    gangs = Gangs.of(
        [users[i * 7919 % 1700] for i in range(50_000)],
        [1 + i % 8 for i in range(50_000)],
        users=users,
        types=types,
    )
    owed = Entitlements.of(
        users,
        types,
        group=groups | {user: f"g{i % 300}" for i, user in enumerate(users)},
        usage={user: i * i % 9973 for i, user in enumerate(users)},
        cap={user: [i % 50] * 10 for i, user in enumerate(users)},
        gangs=gangs,
    )
    asked = Market.of([[1] * 10] * 1700, [2000] * 10, users=users, types=types, entitlements=owed)
    for policy in (SlurmFairTree(), SlurmMultifactor(backfill=True, weight_fairshare=1000, weight_age=10)):
        with CountedSteps(STEPS):
            decide(policy, asked)


def test_other_rules_leave_what_slurm_sets_alone(tmp_path: Path) -> None:
    """Kueue's rule took ClusterName for an option of its own."""
    path = tmp_path / "assoc.txt"
    path.write_text("Cluster|Account|User|Share|MaxJobs\nalpha|root||1|\nalpha| ml||1|\nalpha|  ml|ann|1|2\n")
    found = importer.read(path, SAMPLES / "config.txt").problem
    owed = found.entitlements
    assert owed is not None
    assert (owed.settings[""]["ClusterName"], owed.settings["ml/ann"]) == ("alpha", {"MaxJobs": "2"})
    assert decide(Kueue(), found).shares.sum() == 0
