"""Schedules with one thing wrong, and no other: each was accepted by a verifier with one change."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from fairopt.proofs.verifier.reading import Unreadable
from fairopt.proofs.verifier.schedules import judged

Json = dict[str, Any]
TWO = {"u1": (2, 1), "u2": (2, 1)}


def job(name: str = "j1", tenant: str = "u1", **more: Any) -> Json:
    """Four mini-batches, of which a worker does one in a slot, or half of one where its PS is elsewhere."""
    known: Json = {"name": name, "tenant": tenant, "arrival": 1, "epochs": 1, "chunks": 4, "minibatches": 1}
    known |= {"minibatch_time": [1], "update_time": [0], "gradient": "1/2"}
    return known | {"utility": {"form": "linear", "slope": -1, "height": 100}} | more


def runs(name: str, first: int, last: int, workers: Json, ps: Json, *, together: bool = True) -> Json:
    spots = {"workers": [list(each) for each in workers.items()], "ps": [list(each) for each in ps.items()]}
    return {"job": name, "first": first, "last": last, "worker_type": "w", "ps_type": "p", "together": together} | spots


def holders(has: dict[str, tuple[int, int]]) -> list[Json]:
    return [{"name": name, "workers": [workers], "ps": [ps]} for name, (workers, ps) in has.items()]


def plan(*schedules: Json, jobs: Any = None, tenants: Any = TWO, servers: Any = None, **more: Any) -> Json:
    """Two servers with two workers and a PS each; of a tenant's half of all."""
    batch = {
        "tenants": holders(tenants),
        "worker_types": [{"name": "w", "bandwidth": 1}],
        "ps_types": [{"name": "p", "bandwidth": 2}],
        "servers": holders({"s1": (2, 1), "s2": (2, 1)} if servers is None else servers),
        "jobs": [job()] if jobs is None else jobs,
    }
    known: Json = {"schema": 1, "policy": "mine", "batch": batch, "schedules": list(schedules)}
    return known | {"bases": [], "admissions": [], "payments": []} | more


def offer(it: Json | None, name: str = "j1", *, own: bool = False, admitted: bool = True, **more: Any) -> Json:
    known = {"job": name, "interval": 1, "round": 1, "own": own, "schedule": it, "worker_cost": 0, "ps_cost": 0}
    return known | {"utility": 100 - it["last"] if it else 0, "origin": 0, "admitted": admitted} | more


def pays(slot: int, workers: Any, ps: Any, *incomes: Any) -> Json:
    return {"job": "j1", "slot": slot, "workers": workers, "ps": ps, "incomes": list(incomes)}


HERE = runs("j1", 1, 2, {"s1": 2}, {"s1": 1})
AWAY = runs("j1", 1, 4, {"s1": 2}, {"s2": 1}, together=False)
PAID = [pays(1, 3, 1, 2, 2), pays(2, 3, 1, 2, 2)]
DEAR = offer(HERE, worker_cost=6, ps_cost=2)
ROOT = {"form": "power", "scale": 8, "exponent": "1/2"}  # of 8 over 2 slots: 2
STEPPED = job(utility={"form": "steps", "values": [10, 8, 5]})


def base(**more: Any) -> Json:
    """An interval of one round of two slots, from slot 3 on."""
    return {"interval": 1, "rounds": 1, "slots": 2, "workers": [16], "ps": [16]} | more


PRICED = {"bases": [base()]}
LATER = runs("j1", 3, 4, {"s1": 2}, {"s1": 1})
GAINS = {"origin": 2, "utility": 98}


def answered(height: int, *, admitted: bool) -> Json:
    """Offer a job of which a completion after two slots is worth ``height`` - 2, for nothing."""
    worth = job(utility={"form": "linear", "slope": -1, "height": height})
    first = offer(LATER, own=True, admitted=admitted, origin=2, utility=height - 2)
    again = [] if admitted else [offer(None, admitted=False, origin=2)]
    return plan(*[LATER][:admitted], jobs=[worth], admissions=[first, *again], **PRICED)


RIGHT = {
    "together, just done": plan(HERE),
    "apart, on a link that is just wide enough": plan(AWAY),
    "all that there is": plan(
        runs("j1", 1, 1, {"s1": 2, "s2": 2}, {"s1": 1, "s2": 1}, together=False), jobs=[job(gradient=0)]
    ),
    "begun when it arrives": plan(runs("j1", 5, 6, {"s1": 2}, {"s1": 1}), jobs=[job(arrival=5)]),
    "paid": plan(HERE, admissions=[DEAR], payments=PAID),
    "paid to who leaves the only one": plan(
        runs("j1", 1, 4, {"s1": 1}, {"s1": 1}),
        tenants={"u1": (1, 1), "u2": (0, 0)},
        servers={"s1": (1, 1)},
        admissions=[offer(runs("j1", 1, 4, {"s1": 1}, {"s1": 1}), worker_cost=4, ps_cost=4)],
        payments=[pays(slot, 1, 1, 2, 0) for slot in (1, 2, 3, 4)],
    ),
    "a power that is nearly right": plan(
        HERE, jobs=[job(utility=ROOT)], admissions=[offer(HERE, utility="2000000000001/1000000000000")]
    ),
    "steps": plan(HERE, jobs=[STEPPED], admissions=[offer(HERE, utility=5)]),
    "steps from the end on": plan(HERE, jobs=[STEPPED], admissions=[offer(HERE, utility=10, origin=2)]),
    "steps from later on": plan(HERE, jobs=[STEPPED], admissions=[offer(HERE, utility=10, origin=3)]),
    "prices that never rise": plan(LATER, admissions=[offer(LATER, own=True, **GAINS)], bases=[base(workers=[1])]),
    "admitted": answered(100, admitted=True),
    "refused": answered(1, admitted=False),
    "no gain": answered(2, admitted=True),
}


@pytest.mark.parametrize("what", RIGHT)
def test_a_plan_may_be_at_its_limits(what: str) -> None:
    assert judged(RIGHT[what])[0] == []


MANY = 10**3000
WRONG: dict[str, tuple[Json, str]] = {
    "more owned than held": (plan(HERE, tenants=TWO | {"u2": (3, 1)}), "quotas: tenants own 5 workers"),
    "less owned than held": (plan(HERE, tenants=TWO | {"u2": (2, 0)}), "quotas: tenants own 1 ps"),
    "two schedules": (plan(HERE, runs("j1", 3, 4, {"s1": 2}, {"s1": 1})), "a job has two schedules"),
    "no PS": (plan(runs("j1", 1, 2, {"s1": 2}, {})), "(3g) 2 workers and 0 PS"),
    "too narrow a link": (
        plan(
            runs("j1", 1, 4, {"s1": 3}, {"s2": 1}, together=False),
            tenants=TWO | {"u2": (3, 1)},
            servers={"s1": (3, 1), "s2": (2, 1)},
        ),
        "(3i) 1 PS on 's2' carry 2 of 3",
    ),
    "apart and said to be together": (plan(AWAY | {"together": True}), "(3j) zeta is 1"),
    "not done": (plan(HERE, jobs=[job(minibatches=2)]), "(3k) 4 mini-batches of 8"),
    "far from done": (plan(HERE, jobs=[job(epochs=MANY, minibatches=MANY)]), "(3k) 4 mini-batches of about 4.0"),
    "before it arrives": (plan(HERE, jobs=[job(arrival=2)]), "(3l) it begins in slot 1"),
    "more workers than a server has": (
        plan(runs("j1", 1, 2, {"s1": 3}, {"s1": 1})),
        "(3c) server 's1', slot 1: 3 workers of 2",
    ),
    "more PS than a server has": (plan(runs("j1", 1, 2, {"s2": 2}, {"s2": 2})), "(3d) server 's2', slot 1: 2 ps of 1"),
    "more than the tenant's own": (
        plan(
            runs("j1", 1, 4, {"s1": 2, "s2": 1}, {"s1": 1}, together=False),
            admissions=[offer(runs("j1", 1, 4, {"s1": 2, "s2": 1}, {"s1": 1}, together=False), own=True)],
        ),
        "slot 1: 'u1' has 3 workers within a share of 2",
    ),
    "another utility after a power": (
        plan(
            HERE,
            runs("j2", 1, 2, {"s2": 2}, {"s2": 1}),
            jobs=[job(utility=ROOT), job("j2", "u2")],
            admissions=[offer(HERE, utility=2), offer(runs("j2", 1, 2, {"s2": 2}, {"s2": 1}), "j2", utility=97)],
        ),
        "admission of 'j2': utility 97 and should be 98",
    ),
    "a utility that is nearly right, and not exactly": (
        plan(HERE, admissions=[offer(HERE, utility="98000000000001/1000000000000")]),
        "admission of 'j1': utility 98000000000001/1000000000000 and should be 98",
    ),
    "a whole power that is nearly right": (
        plan(
            HERE,
            jobs=[job(utility=ROOT | {"exponent": 1})],
            admissions=[offer(HERE, utility="4000000000001/1000000000000")],
        ),
        "admission of 'j1': utility 4000000000001/1000000000000 and should be 4",
    ),
    "costs of one part, and no payment": (
        plan(HERE, admissions=[offer(HERE, ps_cost=2)]),
        "payment of 'j1', slot 1: missing",
    ),
    "a payment too many": (
        plan(HERE, admissions=[DEAR], payments=[*PAID, pays(3, 3, 1, 2, 2)]),
        "payment of 'j1', slot 3: for nothing",
    ),
    "workers paid as PS": (
        plan(HERE, admissions=[DEAR], payments=[pays(slot, 1, 3, 2, 2) for slot in (1, 2)]),
        "payment of 'j1', slot 1: workers cost 1 and should cost 3",
    ),
    "incomes of somebody else": (
        plan(HERE, admissions=[DEAR], payments=[PAID[0], pays(2, 3, 1, 4, 0)]),
        "payment of 'j1', slot 2: incomes ['4', '0'] and should be ['2', '2']",
    ),
    "apart, and not done": (
        plan(runs("j1", 1, 3, {"s1": 2}, {"s2": 1}, together=False)),
        "(3k) 3 mini-batches of 4",
    ),
    "an offer after all intervals": (
        plan(
            LATER,
            jobs=[job(), job("j2", "u2", arrival=9)],
            admissions=[offer(LATER, own=True, **GAINS), offer(None, "j2", admitted=False, interval=2)],
            **PRICED,
        ),
        "jobs are offered a place after the last interval",
    ),
    "a schedule that was not admitted": (
        plan(HERE, admissions=[offer(HERE, admitted=False)]),
        "the schedules are not those admitted",
    ),
    "a round that begins later": (
        plan(LATER, admissions=[offer(LATER, own=True, origin=3, utility=99)], **PRICED),
        "the round begins at 2, not 3",
    ),
    "an interval of half the slots": (
        plan(
            runs("j1", 2, 2, {"s1": 2}, {"s1": 1}),
            jobs=[job(chunks=2)],
            admissions=[offer(runs("j1", 2, 2, {"s1": 2}, {"s1": 1}), own=True, origin=1, utility=99)],
            bases=[base(slots=1)],
        ),
        "interval 1: its bases are those of 1, 1 rounds, 1 slots",
    ),
    "a gain, and refused": (answered(100, admitted=False), "gains 98.0 and is refused"),
    "a gain of 1, and refused": (answered(3, admitted=False), "gains 1.0 and is refused"),
    "a loss of 1, and admitted": (answered(1, admitted=True), "gains -1.0 and is admitted"),
}


@pytest.mark.parametrize("what", WRONG)
def test_one_thing_that_is_wrong_is_seen(what: str) -> None:
    data, why = WRONG[what]
    found, statement = judged(data)
    assert found
    assert statement == ""
    assert why in found[0]
    assert len({each.partition(":")[0] for each in found}) <= 2  # of the same kind, such as in each slot


def formed(what: str, **of: Any) -> Json:
    utility = {"form": what} | of
    return plan(HERE, jobs=[job(utility=utility)], admissions=[offer(HERE)])


TWO_KINDS = [{"name": name, "bandwidth": 1} for name in ("w", "v")]


def two_kinds(**times: Any) -> Json:
    """A job that knows its times on two types of workers; there are none of the second."""
    found = plan(HERE, jobs=[job(**times)])
    found["batch"]["worker_types"] = TWO_KINDS
    for each in (*found["batch"]["tenants"], *found["batch"]["servers"]):
        each["workers"].append(0)
    return found


UNREADABLE: dict[str, tuple[Json, str]] = {
    "no types of PS": (
        plan(jobs=[]) | {"batch": plan(jobs=[], tenants={}, servers={})["batch"] | {"ps_types": []}},
        "there is a part without a type",
    ),
    "no chunks": (plan(HERE, jobs=[job(chunks=0)]), "chunks"),
    "no epochs": (plan(HERE, jobs=[job(epochs=0)]), "epochs"),
    "no mini-batches": (plan(HERE, jobs=[job(minibatches=0)]), "minibatches"),
    "no time for a mini-batch": (two_kinds(minibatch_time=[1, 0]), "a time is negative, or that of a mini-batch is 0"),
    "a negative time": (plan(HERE, jobs=[job(update_time=[-1])]), "a time is negative"),
    "slot 0": (plan(runs("j1", 0, 2, {"s1": 2}, {"s1": 1})), "first"),
    "backwards": (plan(runs("j1", 3, 2, {"s1": 2}, {"s1": 1})), "slots 3 to 2"),
    "no worker": (plan(runs("j1", 1, 2, {"s1": 2, "s2": 0}, {"s1": 1})), "at least 1"),
    "a server twice": (plan(HERE | {"workers": [["s1", 1], ["s1", 1]]}), "servers do not rise"),
    "worth more when later": (formed("linear", slope=1, height=96), "it rises"),
    "a power of nothing": (formed("power", scale=0, exponent=1), "too little"),
    "a power for nothing": (formed("power", scale=8, exponent=0), "too little"),
    "steps that rise": (formed("steps", values=[1, 2]), "it rises, or there is none"),
    "no steps": (formed("steps", values=[]), "it rises, or there is none"),
    "a form that nobody knows": (formed("square"), "is none of"),
    "no form": (plan(HERE, jobs=[job(utility={})]), "is no utility"),
    "worth at no time": (
        plan(HERE, jobs=[job(utility=ROOT)], admissions=[offer(HERE, origin=2)]),
        "it is asked for time 0",
    ),
    "another job's schedule": (
        plan(HERE, jobs=[job(), job("j2", "u2")], admissions=[offer(HERE, "j2"), offer(None, admitted=False)]),
        "another job's schedule",
    ),
    "admitted to nothing": (plan(admissions=[offer(None)]), "admitted to nothing"),
    "no round": (plan(HERE, bases=[base(rounds=0)]), "rounds"),
    "a base below 1": (plan(HERE, bases=[base(ps=["1/2"])]), "one is below 1"),
    "a link of nothing": (
        plan(HERE) | {"batch": plan(HERE)["batch"] | {"ps_types": [{"name": "p", "bandwidth": 0}]}},
        "too little",
    ),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_plan_of_another_form_is_refused(what: str) -> None:
    data, why = UNREADABLE[what]
    with pytest.raises(Unreadable, match=why):
        judged(data)


def test_a_cost_may_be_off_by_the_tolerance_and_no_more() -> None:
    hundredth = Fraction(1, 100)
    for cost, fine in (("1/100", True), ("101/10000", False)):
        dear = offer(LATER, own=True, worker_cost=cost, **GAINS)
        assert (judged(plan(LATER, admissions=[dear], **PRICED), hundredth)[0] == []) is fine


def test_no_devices_at_a_price_beyond_floats_are_refused() -> None:
    """Nothing times infinity is no number: it ended the verifier with a traceback."""
    full = runs("j2", 3, 4, {"s1": 2, "s2": 2}, {"s2": 1}, together=False)
    offers = [offer(full, "j2", own=True, **GAINS), offer(LATER | {"workers": []}, own=True, admitted=False, **GAINS)]
    told = plan(full, jobs=[job(), job("j2")], tenants={"u1": (4, 2)}, admissions=offers, bases=[base(workers=[1e308])])
    with pytest.raises(Unreadable, match="too large for a float"):
        judged(told)


def test_a_batch_that_is_nested_deeply_is_refused() -> None:
    """What JSON may just be nested was too deep to be written again for its digest: a traceback."""
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(Unreadable, match=r"batch: .*no object"):
        judged(plan(HERE) | {"batch": deep})


@pytest.mark.parametrize(
    "times", [{"update_time": [0, -1]}, {"update_time": [-1, 0]}, {"minibatch_time": [0]}], ids=str
)
def test_nothing_takes_less_than_no_time(times: Json) -> None:
    told = plan(HERE)
    told["batch"]["ps_types"] = [{"name": name, "bandwidth": 2} for name in ("p", "q")]
    told["batch"]["tenants"], told["batch"]["servers"] = (
        [each | {"ps": [*each["ps"], 0]} for each in told["batch"][key]] for key in ("tenants", "servers")
    )
    told["batch"]["jobs"] = [job(**{"update_time": [0, 0]} | times)]
    with pytest.raises(Unreadable, match="a time is negative"):
        judged(told)


def test_what_is_paid_in_all_is_not_said_to_be_what_it_is_rounded_to() -> None:
    """4 - 2/10**9 was "4 in all", and reached the owners exactly."""
    each = 1.999999999
    cheap = offer(HERE, worker_cost=2 * each, ps_cost=0), [pays(slot, each, 0, each / 2, each / 2) for slot in (1, 2)]
    for (dear, paid), said in (((DEAR, PAID), "payments, 8 in all,"), (cheap, "payments, about 4 in all,")):
        violations, statement = judged(plan(HERE, admissions=[dear], payments=paid))
        assert not violations
        assert said in statement
