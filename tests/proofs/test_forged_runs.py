"""Runs with one thing wrong, and no other: each was accepted by a verifier with one change."""

from __future__ import annotations

import json
from fractions import Fraction
from hashlib import sha256
from typing import Any

import pytest

from fairopt.proofs.verifier.reading import Unreadable
from fairopt.proofs.verifier.runs import decide

Json = dict[str, Any]
THOUSANDTH = Fraction(1, 1000)
HOSTS = [{"name": name, "type": "old", "gpus": 2, "bandwidth": None} for name in ("a", "b")]
#: Host b is of another type, with memory for every job.
TWO_TYPES: Json = {"hosts": [HOSTS[0], HOSTS[1] | {"type": "new"}], "memory": [12, None]}


def job(name: str, arrival: int, work: int, gpus: int = 1, **more: Any) -> Json:
    known: Json = {"name": name, "tenant": "X", "arrival": arrival, "gpus": gpus, "work": work, "throughput": [1]}
    known |= {"memory": 0, "state_size": 0, "pattern": "alone", "dataset": "", "dataset_size": 0}
    return {"job": known | {"weight": 1, "priority": 0} | more}


def canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def record(
    *lines: Any,
    jobs: int | None = None,
    numbers: str = "exact",
    down: Any = (),
    hosts: Any = HOSTS,
    memory: Any = (None,),
    types: Any = ("old", "new"),
    traced: Any = None,
    profiles: Any = (),
) -> str:
    """A record on two hosts of two GPUs each, in rounds of 60, where nothing costs time; ``down``: [host, from, to].

    ``traced`` are the types that the trace tells, where they are not those of the cluster.
    """
    told = [line["job"] for line in lines if isinstance(line, dict) and "job" in line]
    types = list(types)[: len(memory)]
    outages = [dict(zip(("host", "begin", "end"), each, strict=True)) for each in down]
    trace: Json = {"types": traced or types, "tenants": [{"name": "X", "weight": 1}], "outages": outages}
    trace["jobs"] = len(told) if jobs is None else jobs
    trace |= {"profiles": list(profiles)} if profiles else {}
    hashed = b"\n".join(map(canonical, [trace, *told]))
    run = {"policy": "mine", "options": [], "backend": "auto", "numbers": numbers, "length": 60}
    run["mechanics"] = {"restart": 0, "launch": 0, "spread": 1, "local_data": False}
    run["cluster"] = {"types": types, "memory": list(memory), "hosts": list(hosts)}
    run["trace"] = trace | {"sha256": sha256(hashed).hexdigest()}
    return "\n".join(map(json.dumps, [{"schema": 2, "run": run}, *lines]))


def profile(*throughput: Any, efficiency: Any = (), restart: Any = None) -> Json:
    return {"throughput": list(throughput), "efficiency": list(efficiency), "restart": restart}


def ends(end: int, **outcome: bool) -> Json:
    return {"end": end, "seconds": 0} | ({"outcome": outcome} if outcome else {})


def stands(name: str, **more: Any) -> Json:
    return {"standing": {"job": name, "setup": 0, "running": True, "lease": 180} | more}


#: j1 is completed in the second round, and nobody is there.
J1, J2 = job("j1", 0, 90), job("j2", 70, 100, gpus=2)
ALONE = [J1, {"round": 0, "start": {"j1": [["a", 1]]}}, {"round": 1, "complete": {"j1": 90}}]
#: j2 comes in the third.
THIRD = [*ALONE, J2, {"round": 2, "start": {"j2": [["b", 2]]}}]
J2_STANDS = {"remaining": 40, "attained": 120, "last": [["b", 2]], "started": 120}
#: j1 runs for long.
LONG = [job("j1", 0, 1000), {"round": 0, "start": {"j1": [["a", 1]]}}]
LONG_STANDS = stands("j1", remaining=820, attained=180, last=[["a", 1]], started=0)
APART = [["a", 1], ["b", 1]]
FIRST = stands("j1", remaining=940, attained=60, last=[["a", 1]], started=0, lease=60)
SECOND = stands("j1", remaining=880, attained=120, last=[["a", 1]], started=0, lease=120)
JUST_FITS = [
    job("j1", 0, 60, memory=12, throughput=[1, 1]),
    {"round": 0, "start": {"j1": [["a", 1]]}, "complete": {"j1": 60}},
]
RIGHT = {
    "a type of just the memory": record(*JUST_FITS, ends(1), **TWO_TYPES),
    "a host of twice the speed": record(
        job("j1", 0, 60),
        {"round": 0, "start": {"j1": [["a", 1]]}, "complete": {"j1": 30}},
        ends(1),
        hosts=[HOSTS[0] | {"speed": 2}, HOSTS[1]],
    ),
    "on a host and on one of twice the speed": record(
        job("j1", 0, 60, gpus=2),
        {"round": 0, "start": {"j1": APART}, "complete": {"j1": 60}},
        ends(1),
        hosts=[HOSTS[0], HOSTS[1] | {"speed": 2}],
    ),
    "half the GPUs at half the speed": record(
        job("j1", 0, 30, gpus=2, profile=0),
        {"round": 0, "start": {"j1": [["a", 1]]}, "complete": {"j1": 60}},
        ends(1),
        profiles=[profile([1, 1, 1, "1/2"], [2, 1, 1, 1])],
    ),
    "the first of two hosts that fail": record(
        job("j1", 0, 1000, gpus=2),
        {"round": 0, "start": {"j1": APART}},
        {"round": 1, "lost": {"j1": 70}},
        stands("j1", remaining=940, attained=140, last=APART, started=0, running=False, lease=120),
        ends(2),
        down=[["a", 70, 200], ["b", 80, 200]],
    ),
    "one round": record(*LONG, FIRST, ends(1)),
    "two rounds": record(*LONG, SECOND, ends(2)),
    "alone": record(*ALONE, ends(2, complete=True)),
    "before the last job": record(*ALONE, J2, ends(2, complete=False)),
    "under way": record(*THIRD, stands("j2", **J2_STANDS), ends(3, complete=False)),
    "with snapshots": record(*ALONE, {"snapshot": 3}, ends(2)),
    "on no host at all": record(
        job("j1", 0, 90),
        {"round": 0, "unschedulable": {"j1": "no host"}},
        stands("j1", remaining=90, attained=0, last=[], running=False, started=None, lease=60),
        ends(1),
        hosts=[],
    ),
    "just before a job is seen": record(*LONG, job("j2", 121, 1), LONG_STANDS, ends(3)),
}


@pytest.mark.parametrize("what", RIGHT)
def test_a_run_may_be_at_its_limits(what: str) -> None:
    assert decide(RIGHT[what])[0] == []


def test_whether_a_job_came_at_the_very_end_floats_do_not_tell() -> None:
    ended = (*LONG, job("j2", 120, 1), LONG_STANDS, ends(3))
    assert decide(record(*ended, numbers="float"), THOUSANDTH)[0] == []
    assert "j2" in decide(record(*ended))[0][0]
    with pytest.raises(Unreadable, match="within a tolerance: give one"):
        decide(record(*ended, numbers="float"))


def test_the_first_of_two_failures_counts_though_floats_do_not_tell_whether_it_is_in_the_round() -> None:
    stopped = stands("j1", remaining=940, attained=60, last=[["a", 1]], started=0, running=False)
    ended = (*LONG, {"round": 1, "lost": {"j1": 60}}, stopped | {"standing": stopped["standing"] | {"lease": 120}})
    found = decide(record(*ended, ends(2), numbers="float", down=[["a", 60, 70], ["a", 80, 90]]), THOUSANDTH)[0]
    assert found == []


def under_way(**wrong: Any) -> str:
    return record(*THIRD, stands("j2", **J2_STANDS | wrong), ends(3))


#: j1 is completed at 90, and is said to stand there still, beside a long j2.
BOTH = [J1, job("j2", 0, 1000), {"round": 0, "start": {"j1": [["a", 1]], "j2": [["b", 1]]}}]
ENDLESS = [
    stands("j1", remaining=0, attained=180, last=[["a", 1]], started=0),
    stands("j2", remaining=820, attained=180, last=[["b", 1]], started=0),
]
WRONG: dict[str, tuple[str, str]] = {
    "a completion that is passed over": (record(*BOTH, *ENDLESS, ends(3)), "round 1 has no line, and job 'j1'"),
    "a failure when a round begins": (
        record(*LONG, LONG_STANDS, ends(3), down=[["a", 60, 70]]),
        "round 1 has no line, and host 'a' fails",
    ),
    "a failure of a host that nobody is on": (
        record(*LONG, LONG_STANDS, ends(3), down=[["b", 90, 125]]),
        "round 2 has no line, and host 'b' fails",
    ),
    "a failure that is seen in the next round, and lasts": (
        record(*LONG, LONG_STANDS, ends(3), down=[["b", 90, 500]]),
        "round 2 has no line, and host 'b' fails",
    ),
    "more GPUs than a host has": (
        record(
            *(job(name, 0, 1000, gpus=2) for name in ("j1", "j2")),
            {"round": 0, "start": {"j1": [["a", 2]], "j2": [["a", 2]]}},
            *(stands(name, remaining=940, attained=120, last=[["a", 2]], started=0, lease=60) for name in ("j1", "j2")),
            ends(1),
        ),
        "host 'a' gives out 4 GPUs and has 2 that work",
    ),
    "a GPU of a host that is down": (
        record(LONG[0], LONG[1] | {"failed": ["a"]}, FIRST, ends(1), down=[["a", 0, 100]]),
        "host 'a' gives out 1 GPUs and has 0 that work",
    ),
    "before it arrives": (
        record(job("j1", 30, 1000), LONG[1], FIRST, ends(1)),
        "job 'j1' arrives at 30, after the round begins",
    ),
    "stopped before its lease is over": (
        record(
            LONG[0],
            LONG[1] | {"lease": {"j1": 180}},
            {"round": 1, "stop": ["j1"]},
            stands("j1", remaining=940, attained=60, last=[["a", 1]], started=0, running=False, lease=120),
            ends(2),
        ),
        "job 'j1' has a lease until 180 and is not where it was",
    ),
    "moved before its lease is over": (
        record(
            LONG[0],
            LONG[1] | {"lease": {"j1": 180}},
            {"round": 1, "migrate": {"j1": [["b", 1]]}},
            stands("j1", remaining=880, attained=120, last=[["b", 1]], started=0, lease=120),
            ends(2),
        ),
        "job 'j1' has a lease until 180 and is not where it was",
    ),
    "a lease for who does not run": (
        record(*ALONE[:1], ALONE[1] | {"lease": {"j2": 180}}, *ALONE[2:], ends(2)),
        "job 'j2' gets a lease and does not run",
    ),
    "on a type of too little memory, too": (
        record(
            job("j1", 0, 1000, gpus=2, memory=16, throughput=[1, 1]),
            {"round": 0, "start": {"j1": APART}},
            stands("j1", remaining=940, attained=120, last=APART, started=0, lease=60),
            ends(1),
            **TWO_TYPES,
        ),
        "job 'j1': it cannot run there",
    ),
    "hosts that fall": (
        record(
            job("j1", 0, 1000, gpus=2),
            {"round": 0, "start": {"j1": [["b", 1], ["a", 1]]}},
            stands("j1", remaining=940, attained=120, last=[["b", 1], ["a", 1]], started=0, lease=60),
            ends(1),
        ),
        "hosts rising",
    ),
    "said to be complete before the last job": (
        record(*ALONE, J2, ends(2, complete=True)),
        "outcome: complete is True",
    ),
    "said to be complete while one runs": (
        record(*THIRD, stands("j2", **J2_STANDS), ends(3, complete=True)),
        "outcome: complete is True",
    ),
    "on an earlier host": (under_way(last=[["a", 2]]), "where it ran last"),
    "on more GPUs": (under_way(last=[["b", 3]]), "where it ran last"),
    "a job more": (record(*ALONE, ends(2), jobs=2), "trace: 1 jobs are told, and there are 2"),
    "a job less": (record(*ALONE, ends(2), jobs=0), "trace: 1 jobs are told, and there are 0"),
    "a job that came and is passed over": (
        record(*LONG, job("j2", 120, 1), LONG_STANDS, ends(3)),
        "job 'j2' arrived at 120, and no round says so",
    ),
    "a start that is called another": (
        record(J1, {"round": 0, "resume": {"j1": [["a", 1]]}}, *ALONE[2:], ends(2)),
        "round 0: ",
    ),
    "a round for nobody": (record(*ALONE, {"round": 2}, ends(3)), "round 2 has a line, and nobody was there"),
    "rounds for nobody at the end": (record(*ALONE, ends(5)), "end: rounds 2 to 4 have nobody who could run"),
}


@pytest.mark.parametrize("what", WRONG)
def test_one_thing_that_is_wrong_in_a_record_is_seen(what: str) -> None:
    written, why = WRONG[what]
    found, statement = decide(written)
    assert why in found[0]
    assert statement == ""


@pytest.mark.parametrize("line", [{"sketch": 1}, {}, [], ["round"], 3, {"round": 2, "unschedulable": 3}], ids=str)
def test_a_line_of_another_form_is_refused(line: Any) -> None:
    with pytest.raises(Unreadable, match="line 5"):
        decide(record(*ALONE, line, ends(2)))


def test_the_name_of_a_type_cannot_pass_for_a_statement() -> None:
    name = "old) are shared fairly (by any policy"
    hosts = [each | {"type": name} for each in HOSTS]
    found, statement = decide(record(*ALONE, ends(2), hosts=hosts, types=[name]))
    assert found == []
    assert statement.startswith(f"2 rounds on 2 hosts (4 '{name}') are what trace")


def test_work_left_whose_digits_grow_without_end_is_refused() -> None:
    """Packed, 100 such hosts have 4 kB, and each round would take longer than the one before."""
    hosts = [HOSTS[0], HOSTS[1] | {"speed": f"1/1{'0' * 6099}1"}]
    moves = [{"round": 0, "start": {"j1": [["b", 1]]}}, {"round": 1, "migrate": {"j1": [["a", 1]]}}]
    with pytest.raises(Unreadable, match="job 'j1': 20264 bits of what is left to do are too many"):
        decide(record(job("j1", 0, 1000), *moves, ends(2), hosts=hosts))


@pytest.mark.parametrize("said", ["0" * 64, "f" * 64])
def test_another_digest_of_the_trace_is_seen(said: str) -> None:
    head, *lines = record(*ALONE, ends(2)).splitlines()
    told = json.loads(head)
    told["run"]["trace"]["sha256"] = said
    assert "trace: its sha256 is" in decide("\n".join([json.dumps(told), *lines]))[0][0]


def test_a_trace_of_another_form_is_refused() -> None:
    with pytest.raises(Unreadable, match="job 'j1': the name stands twice"):
        decide(record(J1, job("j1", 0, 1), *ALONE[1:], ends(2)))
    with pytest.raises(Unreadable, match="line 5: more follows the end of the run"):
        decide(record(*ALONE, ends(2), {"snapshot": 3}))
    with pytest.raises(Unreadable, match="schema: 3 is not 2"):
        decide(record(*ALONE, ends(2)).replace('{"schema": 2', '{"schema": 3'))
    with pytest.raises(Unreadable, match="job 'j0': the jobs' arrivals are not rising"):
        decide(record(J1, job("j2", 70, 1), job("j0", 60, 1), *ALONE[1:], ends(2)))
    for traced in (["new", "old"], ["old", "older"]):
        with pytest.raises(Unreadable, match="trace, types: not those of the cluster"):
            decide(record(*JUST_FITS, ends(1), **TWO_TYPES, traced=traced))
    with pytest.raises(Unreadable, match="0 is no integer of at least 1"):
        decide(record(J1, {"round": 0, "start": {"j1": [["a", 1], ["b", 0]]}}, *ALONE[2:], ends(2)))
    with pytest.raises(Unreadable, match="it ends before it begins"):
        decide(record(*ALONE, ends(2), down=[["b", 60, 60]]))


MECHANICS, HOST = ("run", "mechanics"), ("run", "cluster", "hosts", 0)


@pytest.mark.parametrize(
    ("line", "place", "value"),
    [
        *((0, ("run", "length"), 0), (0, (*MECHANICS, "spread"), 0), (0, (*MECHANICS, "spread"), 2)),
        *((0, (*HOST, "gpus"), 0), (0, (*HOST, "speed"), 0), (0, ("run", "trace", "tenants", 0, "weight"), 0)),
        *((0, (*HOST, "bandwidth"), 0), (0, ("run", "cluster", "memory", 0), 0)),
        *((1, ("job", key), 0) for key in ("weight", "work", "gpus")),
    ],
)
def test_nothing_runs_on_nothing(line: int, place: Any, value: Any) -> None:
    lines = [json.loads(each) for each in record(*ALONE, ends(2)).splitlines()]
    inside = lines[line]
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(Unreadable):
        decide("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize(
    ("key", "right", "most"), [("remaining", 40, "6/100"), ("attained", 120, "12/100"), ("setup", 0, "6/100")]
)
def test_what_is_left_may_be_off_by_a_part_of_a_round_of_the_job(key: str, right: int, most: str) -> None:
    for more, fine in ((0, True), (Fraction(1, 1000), False)):
        told = stands("j2", **J2_STANDS | {key: str(right + Fraction(most) + more)})
        found = decide(record(*THIRD, told, ends(3), numbers="float"), THOUSANDTH)[0]
        assert (found == []) is fine


SLOW = job("j1", 0, 100, throughput=["1/2", 0, 3], profile=0)
SLOWER = [profile([1, 1, 1, "1/2", 0, 3], [2, 1, 1, "1/6", 0, 1])]
#: At its slowest the first would do 1/24 in a unit of time: on two GPUs, one of the slower host, apart. The second
#: could run nowhere, and is judged as if it did 1.
WAIT = [(SLOW, HOSTS, "1/400"), (job("j1", 0, 100, throughput=[0] * 3), HOSTS, "3/200")]
WAIT += [(job("j1", 0, 100, throughput=[0] * 3), [], "3/100")]


@pytest.mark.parametrize(("told", "hosts", "most"), WAIT, ids=["slow", "on no type", "on no host"])
def test_what_is_left_of_who_waits_may_be_off_by_a_part_of_its_slowest_round(told: Json, hosts: Any, most: str) -> None:
    there = [each | {"speed": speed} for each, speed in zip(hosts, ("1/2", 1), strict=False)]
    line = {"round": 0} if told is SLOW else {"round": 0, "unschedulable": {"j1": "no type"}}
    for more, fine in ((1, True), (Fraction(6, 5), False)):
        left = stands("j1", remaining=str(100 - more * Fraction(most)), attained=0, last=[], running=False)
        left["standing"] |= {"started": None, "lease": 60}
        of: Json = {"hosts": there, "memory": [None] * 3, "types": ("old", "new", "odd")}
        of |= {"profiles": SLOWER} if told is SLOW else {}
        written = record(told, line, left, ends(1), numbers="float", **of)
        assert (decide(written.replace('"spread": 1', '"spread": "1/2"'), THOUSANDTH)[0] == []) is fine


def test_a_lease_is_not_cut_a_little_in_every_round() -> None:
    """Each time by less than the tolerance; together they are a round."""
    cut = [LONG[1] | {"lease": {"j1": 180}}]
    cut += [{"round": index, "lease": {"j1": str(180 - Fraction(6 * index, 100))}} for index in (1, 2)]
    stays = stands("j1", remaining=820, attained=180, last=[["a", 1]], started=0, lease="17994/100")
    once, twice = (decide(record(LONG[0], *cut[:n], stays, ends(3), numbers="float"), THOUSANDTH)[0] for n in (2, 3))
    assert once == []
    assert twice == ["round 2: job 'j1': its lease until 180 is cut short to 4497/25"]
