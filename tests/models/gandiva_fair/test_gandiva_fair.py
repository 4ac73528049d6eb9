"""Gandiva_fair: tickets (Eq. (1)-(3)), Algorithm 2, migration, and trades as a step between rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction as F
from random import Random

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.models import WaterFilling
from fairopt.models.baselines.equal_split import fill
from fairopt.models.gandiva_fair.gandiva_fair import GandivaFair, Shared, best_type, traded
from fairopt.models.gandiva_fair.servers import ServerLoads, to_balance, to_faster_type
from fairopt.models.gandiva_fair.split_stride import fair_tickets
from fairopt.models.gandiva_fair.tickets import effective_tickets, entitled, load_per_gpu, tickets_per_gpu
from fairopt.problem import Market
from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.problem.queue import Queue
from fairopt.problem.trace import Outage, Trace
from fairopt.simulation import Change, Round, run, snapshot_from, snapshot_text

ENDLESS = 10**6


def all_known(user: str, gpu_type: int) -> bool:
    return True


def unknown(user: str, gpu_type: int) -> bool:
    return False


def servers_of(jobs: Jobs, cluster: Cluster, homes=None) -> ServerLoads:
    queue = Queue.fresh(jobs, cluster, length=1)
    return ServerLoads(queue, fair_tickets(queue), homes or {})


# -- tickets -----------------------------------------------------------------------------------------------------------
def test_equations_1_to_3():
    per_gpu = tickets_per_gpu({"A": F(100), "B": F(100)}, {"A": 4, "B": 10})
    assert per_gpu == {"A": 25, "B": 10}
    assert load_per_gpu([(2, per_gpu["A"]), (4, per_gpu["B"])], 4) == F(90, 4)


def test_figure_1_who_wants_little_is_satisfied_first():
    one = F(1)
    assert entitled({"A": one, "B": one, "C": one}, {"A": 4, "B": 4, "C": 2}, 8) == {"A": 3, "B": 3, "C": 2}
    assert effective_tickets({"A": one, "B": one, "C": one}, {"A": 4, "B": 4, "C": 2}, 8) == {
        "A": F(9, 8),
        "B": F(9, 8),
        "C": F(3, 4),
    }


def test_readjustment_is_water_filling_conserves_tickets_and_exceeds_no_demand():
    dice = Random(0)
    for number in range(150):
        users = [f"u{place}" for place in range(dice.randint(1, 6))]
        tickets = {user: F(dice.randint(1, 9), dice.randint(1, 3)) for user in users}
        demand = {user: dice.randint(1, 12) for user in users}
        gpus = dice.randint(1, 24)
        share = entitled(tickets, demand, gpus)
        assert list(share) == users
        assert all(isinstance(part, F) for part in share.values())
        assert sum(share.values()) == min(gpus, sum(demand.values()))
        assert all(0 < share[user] <= demand[user] for user in users)
        assert sum(effective_tickets(tickets, demand, gpus).values()) == sum(tickets.values())
        weight, limit = (np.array([F(of[user]) for user in users], dtype=object) for of in (tickets, demand))
        assert list(share.values()) == fill(weight, limit, F(gpus)).tolist()
        if number < 12 and gpus < sum(demand.values()):
            market = Market.of([[1]] * len(users), [gpus], weight=weight, demand=limit, users=users)
            assert allocate(WaterFilling(), market, Exact()).shares[:, 0].tolist() == list(share.values())


def test_who_has_no_tickets_gets_none():
    assert entitled({"A": F(0), "B": F(3)}, {"A": 5, "B": 2}, 4) == {"A": 0, "B": 2}
    assert effective_tickets({"A": F(0)}, {"A": 5}, 4) == {"A": 0}


# -- Algorithm 2 -------------------------------------------------------------------------------------------------------
def test_a_new_job_goes_to_the_least_loaded_server_with_its_users_tickets_spread_anew():
    jobs = Jobs.of(gpus=[2, 2, 1, 1, 4], work=[1] * 5, types=["T"], tenant=list("AABBB"), names=list("abcde"))
    cluster = Cluster.uniform({"T": (2, 4)})
    homes = {"a": (("T-1", 2),), "b": (("T-1", 2),), "c": (("T-2", 1),), "d": (("T-2", 1),)}
    servers = servers_of(jobs, cluster, homes)
    # before: A is entitled to 4 of 8 GPUs and wants 4, B wants 2: one ticket per GPU; loads 1 and 1/2
    assert servers.loads(0, servers.per_gpu(0)) == {0: 1, 1: F(1, 2)}
    # with e, B's 4 GPUs are 2/3 of a ticket per GPU: loads 1 and 1/3
    servers.allocate(4, 0)
    assert servers.home[4] == ((1, 4),)
    assert servers.loads(0, servers.per_gpu(0)) == {0: 1, 1: 1}


def test_large_jobs_take_as_many_servers_as_they_need():
    jobs = Jobs.of(gpus=[1, 6], work=[1] * 2, types=["T"], tenant=list("AB"))
    servers = servers_of(jobs, Cluster.uniform({"T": (3, 4)}), {"j1": (("T-1", 1),)})
    servers.allocate(1, 0)
    assert servers.home[1] == ((1, 4), (2, 2))
    assert servers.large(1)
    assert not servers.large(0)


def test_users_take_turns_by_what_they_have_for_their_tickets():
    jobs = Jobs.of(
        gpus=[1, 1, 1, 1, 1],
        work=[1] * 5,
        types=["T"],
        tenant=list("AAABB"),
        tenant_weight={"B": 2},
        priority=[0, 5, 0, 0, 0],
    )
    servers = servers_of(jobs, Cluster.uniform({"T": (1, 4)}))
    assert servers.next_jobs() == [1, 3, 4, 0, 2]


def types_chosen(speedup: object, jobs_of_user: int, known=all_known) -> list[str]:
    """Return the type that each of a user's jobs goes to, with 4 K80 and 4 V100 to itself (Sec. 3.4)."""
    jobs = Jobs.of(
        gpus=[1] * jobs_of_user,
        work=[1] * jobs_of_user,
        types=["K80", "V100"],
        throughput=[[1, speedup]] * jobs_of_user,
    )
    servers = servers_of(jobs, Cluster.uniform({"K80": (1, 4), "V100": (1, 4)}))
    chosen = []
    for row in servers.next_jobs():
        gpu_type = best_type(servers, row, known)
        servers.allocate(row, gpu_type)
        chosen.append(("K80", "V100")[gpu_type])
    return chosen


def test_section_3_4_a_slight_speedup_spreads_jobs_and_a_large_one_shares_time():
    assert Counter(types_chosen("1.25", 8)) == Counter(V100=4, K80=4)
    assert Counter(types_chosen(5, 8)) == Counter(V100=8)
    assert types_chosen("1.25", 3, unknown) == ["V100"] * 3


def test_nobody_is_profiled_and_jobs_go_to_the_next_type_once_the_allocation_is_used_up():
    """Sec. 3.5: "on the V100s until the user exhausts their V100 allocation"; the newest type got all of them."""
    assert types_chosen(5, 8, unknown) == ["V100"] * 4 + ["K80"] * 4
    assert Counter(types_chosen(5, 16, unknown)) == Counter(V100=8, K80=8)


def test_unknown_types_are_tried_when_tickets_on_known_ones_are_used_up():
    def v100_only(user: str, gpu_type: int) -> bool:
        return gpu_type == 1

    assert types_chosen(5, 6, v100_only) == ["V100"] * 4 + ["K80"] * 2


# -- migration ---------------------------------------------------------------------------------------------------------
def test_balance_moves_the_job_that_evens_loads_most():
    jobs = Jobs.of(gpus=[1, 2, 1, 1], work=[1] * 4, types=["T"], names=list("abcd"))
    cluster = Cluster.uniform({"T": (2, 4)})
    homes = {"a": (("T-1", 1),), "b": (("T-1", 2),), "c": (("T-1", 1),), "d": (("T-2", 1),)}
    servers = servers_of(jobs, cluster, homes)
    assert to_balance(servers, F(1, 10)) == (0, 1)  # loads 1 and 1/4; a or c leaves 1/4, b as well: first
    assert to_balance(servers, F(3, 4)) is None
    assert to_balance(servers_of(jobs, cluster, dict.fromkeys("abcd", (("T-1", 1),))), F(1)) is None


def test_a_move_that_only_mirrors_the_imbalance_is_none():
    jobs = Jobs.of(gpus=[4], work=[1], types=["T"], names=["a"])
    assert to_balance(servers_of(jobs, Cluster.uniform({"T": (2, 4)}), {"a": (("T-1", 4),)}), F(1, 10)) is None


def test_a_job_moves_to_the_type_where_it_is_faster():
    jobs = Jobs.of(
        gpus=[1] * 3, work=[1] * 3, types=["K80", "V100"], throughput=[[1, "1.25"]] * 2 + [[1, 5]], tenant=list("AAB")
    )
    homes = {"j1": (("V100-1", 1),), "j2": (("V100-1", 1),), "j3": (("V100-1", 1),)}
    # A is entitled to half a V100 per job, the rest goes to nobody: B has one as well
    servers = servers_of(jobs, Cluster.uniform({"K80": (1, 4), "V100": (1, 2)}), homes)
    assert to_faster_type(servers, all_known, F(1, 10)) == (0, 0)
    gain = 1 / F(5, 8) - 1
    assert to_faster_type(servers, all_known, gain - F(1, 1000)) == (0, 0)
    assert to_faster_type(servers, all_known, gain) is None


def test_departures_are_balanced_one_job_a_round():
    names = [f"j{n}" for n in range(1, 17)]
    jobs = Jobs.of(gpus=[1] * 16, work=[3 if n % 2 else 60 for n in range(16)], types=["T"], names=names)
    records = list(run(GandivaFair(), Trace(jobs), Cluster.uniform({"T": (2, 4)}), length=1, rounds=40))
    moves = [record.costs["moves"] for record in records]
    assert max(moves) == 1
    assert sum(moves) > 0
    assert all(len(record.migrations) <= 1 for record in records)
    assert records[-1].costs["load_gap"] <= F(1, 10)
    assert any("load balance" in text for record in records for text in record.notes.values())


def test_jobs_of_a_failed_server_go_elsewhere():
    jobs = Jobs.of(gpus=[2, 2, 8], work=[12, 12, 4], types=["T"], names=["a", "b", "large"])
    outage = Outage("T-1", F(2), F(6))
    records = list(run(GandivaFair(), Trace(jobs, (outage,)), Cluster.uniform({"T": (2, 4)}), length=1))
    assert {job for record in records for job in record.completed} == {"a", "b", "large"}
    down = [record for record in records if record.down]
    assert all(host == "T-2" for record in down for one in record.ran for host, _ in one.spots)


# -- trades ------------------------------------------------------------------------------------------------------------
def table_3(each: int = 60) -> tuple[Trace, Cluster]:
    speedups = {"A": "1.25", "B": 5, "C": "6.25"}
    jobs = Jobs.of(
        gpus=[1] * (3 * each),
        work=[ENDLESS] * (3 * each),
        types=["K80", "V100"],
        throughput=[[1, speedups[user]] for user in speedups for _ in range(each)],
        tenant=[user for user in speedups for _ in range(each)],
    )
    return Trace(jobs), Cluster.uniform({"K80": (15, 4), "V100": (3, 4)})


def gpus_by_user(records: Iterable[Round], trace: Trace) -> dict[tuple[str, str], F]:
    """Return GPUs in the mean over ``records``, by (user, type)."""
    owner = {name: trace.jobs.tenants[tenant] for name, tenant in zip(trace.jobs.names, trace.jobs.tenant, strict=True)}
    rounds = list(records)
    total: Counter[tuple[str, str]] = Counter()
    for record in rounds:
        for one in record.ran:
            total[owner[one.job], one.types[0]] += one.gpus
    return {key: F(value, len(rounds)) for key, value in total.items()}


def test_table_3_tickets():
    trace, cluster = table_3()
    after = traded(Queue.fresh(trace.jobs, cluster, length=1), Shared(), all_known)
    assert after.tickets == {"A": (40, 0), "B": (20, 4), "C": (0, 8)}
    assert [(each.buyer, each.seller, each.price) for each in after.trades] == [("C", "A", 5)]


def test_table_3_as_a_run():
    trace, cluster = table_3()
    records = list(run(GandivaFair(profiling=False, migrations=20), trace, cluster, length=1, rounds=80))
    got = gpus_by_user(records[20:], trace)
    assert got == {("A", "K80"): 40, ("B", "K80"): 20, ("B", "V100"): 4, ("C", "V100"): 8}
    fair = gpus_by_user(
        list(run(GandivaFair(profiling=False, trading=False), trace, cluster, length=1, rounds=80))[20:], trace
    )
    assert all(
        abs(fair[user, gpu_type] - part) <= F(1, 2) for user in "ABC" for gpu_type, part in (("K80", 20), ("V100", 4))
    )


def test_trades_stand_until_users_come_or_go():
    trace, cluster = table_3(30)
    queue = Queue.fresh(trace.jobs, cluster, length=1)
    first = traded(queue, Shared(), all_known)
    less = Queue.fresh(trace.jobs.take(range(1, 90)), cluster, length=1)
    assert traded(less, first, all_known) is first
    without_c = Queue.fresh(trace.jobs.take(range(60)), cluster, length=1)
    undone = traded(without_c, first, all_known)
    # A has 30 jobs and B has 30: neither wants its 36 GPUs, so that nobody trades, and both have their fair shares
    assert undone.trades == ()
    assert undone.tickets == {}
    assert traded(queue, undone, all_known) == first


def test_who_wants_less_than_its_share_or_is_not_profiled_does_not_trade():
    trace, cluster = table_3(60)
    few = Queue.fresh(trace.jobs.take([*range(5), *range(60, 180)]), cluster, length=1)
    assert set(traded(few, Shared(), all_known).users) == {"B", "C"}
    queue = Queue.fresh(trace.jobs, cluster, length=1)
    assert set(traded(queue, Shared(), lambda user, gpu_type: user != "B" or gpu_type == 1).users) == {"A", "C"}


def test_trades_leave_nobody_below_its_fair_share_and_give_away_what_there_is():
    dice = Random(3)
    for _ in range(30):
        users = "ABCD"[: dice.randint(2, 4)]
        speeds = {user: sorted(F(dice.randint(1, 20), 4) for _ in range(3)) for user in users}
        jobs = Jobs.of(
            gpus=[2] * 20 * len(users),
            work=[1] * 20 * len(users),
            types=["K80", "P100", "V100"],
            throughput=[speeds[user] for user in users for _ in range(20)],
            tenant=[user for user in users for _ in range(20)],
            tenant_weight={user: dice.randint(1, 3) for user in users},
        )
        queue = Queue.fresh(jobs, Cluster.uniform({"K80": (4, 4), "P100": (2, 4), "V100": (1, 4)}), length=1)
        fair, after = fair_tickets(queue), traded(queue, Shared(), all_known).tickets
        for user in users:
            own = sum(speed * part for speed, part in zip(speeds[user], after[user], strict=True))
            assert own >= sum(speed * part[user] for speed, part in zip(speeds[user], fair, strict=True))
        assert [sum(after[user][gpu_type] for user in users) for gpu_type in range(3)] == [16, 8, 4]


def test_a_run_with_trades_stopped_and_resumed():
    trace, cluster = table_3(30)
    short = replace(trace, jobs=replace(trace.jobs, work=np.array([F(5 + n % 7) for n in range(90)], dtype=object)))
    policy = GandivaFair(migrations=10)
    whole = list(run(policy, short, cluster, length=1))
    assert any(record.costs["trades"] for record in whole)
    assert any("faster type" in text for record in whole for text in record.notes.values())
    for stop in (3, len(whole) // 2):
        snapshot = snapshot_from(snapshot_text(whole[stop - 1].after), policy.states)
        assert isinstance(snapshot.state, Shared)
        assert snapshot == whole[stop - 1].after
        assert whole[:stop] + list(run(policy, short, cluster, length=1, after=snapshot)) == whole


def test_a_user_that_comes_late_gets_its_share():
    trace, cluster = table_3(40)
    late = [F(0)] * 80 + [F(30)] * 40
    jobs = replace(trace.jobs, arrival=np.array(late, dtype=object))
    policy = GandivaFair(profiling=False, migrations=20)
    records = list(run(policy, Trace(jobs), cluster, length=1, rounds=100))
    assert ("C", "V100") not in gpus_by_user(records[10:30], trace)
    got = gpus_by_user(records[60:], trace)
    assert abs(got["C", "V100"] - 8) <= F(1, 4)  # loads may differ by a tenth
    assert {each.before for each in records[31].ran if each.change is Change.MIGRATE} <= {("V100",), ("K80",)}


def test_a_round_of_several_quanta_has_the_moves_of_each():
    """Sec. 3.5: one migration in a quantum, of one or two minutes; a round of 300 is five quanta of 60."""
    names = [f"j{n}" for n in range(1, 33)]
    jobs = Jobs.of(gpus=[1] * 32, work=[30 if n % 2 else 6000 for n in range(32)], types=["T"], names=names)
    moves = {
        quantum: max(
            record.costs["moves"]
            for record in run(GandivaFair(quantum=quantum), Trace(jobs), Cluster.uniform({"T": (2, 8)}), length=300)
        )
        for quantum in (None, 60, 600)
    }
    assert moves[None] == moves[600] == 1
    assert 1 < moves[60] <= 5


@pytest.mark.parametrize("migrations", [0, 1, 5])
def test_never_more_moves_than_allowed(migrations):
    trace, cluster = table_3(20)
    records = list(run(GandivaFair(migrations=migrations), trace.as_(float), cluster, length=1, rounds=30))
    assert max(record.costs["moves"] for record in records) <= migrations
    assert sum(len(record.migrations) for record in records) <= 30 * migrations
