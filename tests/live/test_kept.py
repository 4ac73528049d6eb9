"""What a live Slurm 22.05.8 stated and did, kept as it was exported: guarded where no Slurm is."""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import compare
from cluster import Settings
from trees import Case, drawn

from fairopt import audit
from fairopt.importing.live import SLURM
from fairopt.models import SlurmFairTree

KEPT = Path(__file__).with_name("kept")
WEIGHTS = {"Fairshare": 100_000}


@pytest.mark.parametrize("seed", [14, 41, 79])
def test_reasons_are_those_of_the_last_round(seed: int) -> None:
    """14: a limit that others reached; 41: it stays the reason of who is passed over; 79: an order that is a circle."""
    found = compare(drawn(seed), KEPT / f"tree-{seed}")
    assert not found.wrong
    assert found.values["reasons"] >= 3


def test_a_job_that_was_stopped_is_in_no_later_order() -> None:
    """Who goes first where the order is a circle depends on who is in it: three jobs were stopped, and are gone."""
    found = compare(drawn(79), KEPT / "tree-79-stopped")
    assert not found.wrong
    assert len(found.stopped) == 3


@pytest.mark.parametrize("seed", [72, 103, 109, 112, 132, 201, 228, 231, 301, 311, 313])
def test_trees_of_seeds_that_were_drawn_when_the_rule_was_done(seed: int) -> None:
    """103: a partition all of whose nodes are kept is kept, too; 109: a job stops others once; 112: windows of ends.

    72: backfill counts jobs that their partition refuses, too; 132, 201 and 231: reasons of one partition, where there
    are others; 228: backfill looks at limits on amounts last. 301: who is passed over keeps a reason that was stated
    before; 311: its table of times is full; 313: a job without a limit has just begun.
    """
    found = compare(drawn(seed), KEPT / f"tree-{seed}")
    assert not found.wrong
    assert found.values["reasons"] >= 3


@pytest.mark.parametrize("seed", [46, 52, 68])
def test_partitions_limits_backfill_and_preemption_are_those_of_a_live_slurm(seed: int) -> None:
    """46: partitions with nodes in common, an order of jobs that is a circle; 52 and 68: jobs are stopped."""
    found = compare(drawn(seed), KEPT / f"tree-{seed}")
    assert not found.wrong
    assert len(found.started) >= 5
    assert bool(found.stopped) == (seed > 46)


@pytest.mark.parametrize("seed", [1, 2, 36])
def test_what_a_live_slurm_stated_and_started(seed: int) -> None:
    """Fairshare=parent at every level, accounts added later, a cap on CPUs, equal priorities, classic and Fair Tree."""
    classic, backfill = seed == 1, seed > 10
    settings = Settings(fair_tree=not classic, weights=WEIGHTS, preempt=classic, backfill=backfill)
    found = compare(Case(seed, settings), KEPT / f"tree-{seed}")
    assert not found.wrong
    assert found.values["sshare"] > 30
    assert found.values["sprio"] >= 18
    assert found.values["reasons"] >= 3


@pytest.mark.parametrize(("kept", "first", "job"), [("newest", "b, a", "2"), ("name", "a, b", "1")])
def test_the_order_of_tied_accounts_is_that_of_fair_share(kept: str, first: str, job: str) -> None:
    """One tree: after slurmctld's start the newest account goes first, and by name once an account was added."""
    found = audit(KEPT / kept, policies=[SlurmFairTree()], properties=[])
    assert [str(each) for each in found.declared if each.differs] == []
    assert found.alternatives[0].after is not None
    gangs = found.alternatives[0].grounds.gangs
    assert [name for name, on in zip(gangs.names, gangs.on.tolist(), strict=True) if on >= 0] == [job]
    [told] = [each for each in found.unplaced if "level fair-shares tie" in each.why]
    assert first in str(told.value)


def test_what_is_in_an_account_of_parent_does_not_tie_with_who_came_before() -> None:
    """Accounts d2 and g2 tie; g1 in g2 has Fairshare=parent, so that g2 went first although both have FairShare 2/7."""
    found = audit(KEPT / "tree-12", importer="slurm", policies=[SlurmFairTree()], properties=[])
    assert len([each for each in found.declared if each.computed is not None]) > 50
    assert [str(each) for each in found.declared if each.differs] == []


def test_where_no_fair_share_is_stated_accounts_are_taken_as_listed(tmp_path: Path) -> None:
    text = (KEPT / "newest" / "sshare.txt").read_text().splitlines()
    path = tmp_path / "sshare.txt"
    path.write_text("".join("|".join(line.split("|")[:5]) + "\n" for line in text))
    found = audit(path, importer="slurm", policies=[SlurmFairTree()], properties=[])
    assert found.alternatives[0].grounds.order[1:4] == ("a/u5", "a1/u1", "a1/u2")
    assert not [each for each in found.unplaced if "level fair-shares tie" in each.why]


def test_small_numbers_that_sshare_rounds_to_six_decimals_do_not_differ(tmp_path: Path) -> None:
    path = tmp_path / "sshare.txt"
    head = "Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS"
    rows = ["root|||0.000000|12610||1.000000||", " a||1|1.000000|12610|1.000000|1.000000||1.000000"]
    users = [
        "  a|u1|1|0.500000|12609|0.999921|0.999921|0.500000|0.500040",
        "  a|u2|1|0.500000|1|0.000079|0.000079|1.000000|6305.000000",
    ]
    path.write_text("\n".join([head, *rows, *users]) + "\n")
    found = audit(path, importer="slurm", policies=[SlurmFairTree()], properties=[])
    assert len([each for each in found.declared if each.computed is not None]) >= 10
    assert [str(each) for each in found.declared if each.differs] == []


def test_a_reason_of_one_partition_leaves_a_job_aside_where_no_file_has_partitions(tmp_path: Path) -> None:
    for name in SLURM.keys() - {"partitions.txt"}:
        if (path := KEPT / "tree-132" / name).exists():
            (tmp_path / name).write_text(path.read_text())
    found = audit(tmp_path, importer="slurm", policies=[], properties=[])
    assert found.market.entitlements is not None
    assert "8" not in found.market.entitlements.gangs.names
    whole = audit(KEPT / "tree-132", importer="slurm", policies=[], properties=[])
    assert whole.market.entitlements is not None
    assert "8" in whole.market.entitlements.gangs.names


def test_a_node_in_no_partition_offers_nothing(tmp_path: Path) -> None:
    for name in SLURM.keys() - {"config.txt"}:
        (tmp_path / name).write_text((KEPT / "tree-2" / name).read_text())
    found = audit(tmp_path, policies=[], properties=[])
    assert dict(zip(found.market.types, found.market.capacity.tolist(), strict=True)) == {"a100": 8, "v100": 4}
    assert [each.value for each in found.unplaced if "it is in no partition" in each.why] == ["'n3'"]


def test_what_slurm_has_not_computed_yet_is_told_and_not_compared(tmp_path: Path) -> None:
    """A user who was added less than PriorityCalcPeriod ago: sshare -alP of 22.05.8."""
    path = tmp_path / "sshare.txt"
    path.write_text(
        "Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS\n"
        "root|||0.000000|40||1.000000||\n"
        " a2||1|1.000000|40|1.000000|1.000000||1.000000\n"
        "  a2|u3|1|0.500000|40|1.000000|1.000000|1.000000|0.500000\n"
        "  a2|u4|1|0.500000|0||0.000000|0.000000|0.000000\n"
    )
    found = audit(path, importer="slurm", policies=[SlurmFairTree()], properties=[])
    assert [str(each.value) for each in found.unplaced if "not computed" in each.why] == ["'a2/u4'"]
    assert [each.what for each in found.declared if each.name == "a2/u4"] == ["RawShares"]
