"""The line that the verifier prints is all that a reader may believe: it says enough, and no two lines contradict."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from certificate_kinds import BY_HAND
from certificate_kinds.decisions import (
    ANY_SPLIT,
    DOMINANCE_OVER_ALL,
    EFFICIENT,
    ENVY,
    FAIR,
    MOST,
    PARTIAL,
    TRADING,
)
from certificate_kinds.examples import ALIKE, PAIR, certificate, market, optimality
from certificate_kinds.frontiers import NASH_COSTS_NOTHING
from certificate_kinds.programs import LIE
from tampering import changes, places

from fairopt.cli import main
from fairopt.proofs.verifier import decisions, front, gangs, nash, programs, trading
from fairopt.proofs.verifier.certificates import RULES, recognises
from fairopt.proofs.verifier.reading import Entry
from fairopt.proofs.verify import Rejected, verify
from fairopt.testing.counted_steps import CountedSteps

#: Steps, fewer than are taken by what would last hours.
A_HANG = 10_000_000


def named(data: Any) -> str:
    """Return what a statement says of its market, or of its program."""
    return verify(data).rpartition(" [")[2].rpartition("market ")[2].partition(";")[0]


# -- what a line speaks of ------------------------------------------------------------------------------------------
def test_a_statement_names_its_market_and_its_allocation() -> None:
    said = verify(EFFICIENT)
    assert said.startswith("the allocation is optimal for max-efficiency, objective 6 [market ")
    assert said.endswith(": 1 'T0', 1 'T1' for 'A' (1, 2), 'B' (1, 5); allocation (1, 0), (0, 1)]")


def test_weights_and_demands_are_named() -> None:
    special = market({"A": [1, 2], "B": [1, 5]}, [1, 1], A={"weight": "3/2"}, B={"demand": 2})
    told = FAIR | {"market": special, "allocation": [["1/2", "1/2"], ["1/2", "1/2"]], "answer": "HOLDS"}
    assert "'A' (1, 2) weight 3/2, 'B' (1, 5) demand 2" in verify(told | {"property": "feasibility"})


def test_a_large_market_is_named_by_its_digest_and_size() -> None:
    large = market({f"u{i}": [1, i] for i in range(1, 8)}, [1, 1])
    told = FAIR | {"market": large, "allocation": [[0, 0]] * 7, "property": "feasibility"}
    said = verify(told)
    assert ": 7 users, 2 types; allocation of digest " in said
    other = told | {"allocation": [[0, 0]] * 6 + [[0, 1]]}
    assert verify(other) != said
    assert named(other) == named(told)


def test_the_digest_is_that_of_the_numbers_and_not_of_how_they_are_written() -> None:
    twice = market({"A": ["2/2", "8/4"], "B": ["1", 5]}, ["01", 1], A={"weight": 1})
    assert named(EFFICIENT | {"market": twice}) == named(EFFICIENT)


@pytest.mark.parametrize("place", list(places(PAIR)), ids=str)
def test_no_two_markets_have_one_name(place: Any) -> None:
    told = FAIR | {"property": "feasibility"}
    for change in changes(PAIR, place, Random(1)):
        try:
            assert named(told | {"market": change.of(PAIR)}) != named(told)
        except Rejected:
            continue


def test_programs_are_named_too() -> None:
    names = {name: verify(BY_HAND[name]).rpartition("[program ")[2] for name in ("NO_POINT", "WHOLE", "CHEAPEST")}
    assert len(set(names.values())) == 3
    assert names["WHOLE"].endswith(": 1 variables with integers, 1 rows]")
    changed = json.loads(json.dumps(BY_HAND["WHOLE"]))
    changed["program"]["rows"][0]["upper"] = "31/10"
    changed.update(bound="31/20", gap="11/20")
    assert verify(changed).rpartition("[program ")[2] != names["WHOLE"]


def test_adjacency_says_of_which_order_it_speaks() -> None:
    types = [[1, 1, 1], [1, 1, 1]]
    told = certificate(
        "property",
        market=market({"A": types[0], "B": types[1]}, [1, 0, 1]),
        allocation=[["1/2", 0, "1/2"], ["1/2", 0, "1/2"]],
        property="adjacent_types",
        answer="HOLDS",
    )
    assert "in the order 'T0', 'T2' (types without GPUs do not count)" in verify(told)
    told["market"]["capacity"][1] = 1
    with pytest.raises(Rejected):
        verify(told)
    assert "in the order 'T0', 'T1', 'T2'" in verify(told | {"answer": "FAILS"})


@pytest.mark.parametrize("name", ["COOPERATIVE", "LIE_WHATEVER_OPTIMUM"])
def test_the_reading_of_envy_is_said_where_a_demand_makes_two_of_it(name: str) -> None:
    assert "read so that" not in verify(BY_HAND[name])
    told = json.loads(json.dumps(BY_HAND[name]).replace('"name": "B"', '"name": "B", "demand": 9'))
    assert "oef-cooperative (read so that envy counts all GPUs of the other" in verify(told)


def test_a_lie_says_whether_others_might_have_been_decided() -> None:
    assert "1/28 more, and the policy leaves no choice [" in verify(LIE)
    assert "whatever optima are chosen [" in verify(BY_HAND["LIE_WHATEVER_OPTIMUM"])
    told = market({"A": [2], "B": [1]}, [1])
    takes = certificate(
        "optimality",
        market=told,
        policy="max-efficiency",
        allocation=[[1], [0]],
        value=2,
        duals=[["capacity", 0, 2]],
    )
    lie = certificate(
        "misreport",
        market=ALIKE,
        policy="max-efficiency",
        user="A",
        report=[2],
        gain="1/2",
        truth=ANY_SPLIT,
        lie=takes,
    )
    assert "by the two decisions given; where optima tie, the policy may choose others" in verify(lie)


# -- no two lines contradict ----------------------------------------------------------------------------------------
#: Nobody can run on the second type: it is free, and nobody may hold it.
USELESS = market({"A": [1, 0], "B": [1, 0]}, [1, 1])
HALVES = certificate("equilibrium", market=USELESS, allocation=[["1/2", 0], ["1/2", 0]], prices=[2, 0])


def test_an_equilibrium_holds_nothing_that_ranges_over_equilibria_forbid() -> None:
    at_most = certificate(
        "extreme", of=HALVES, sense="maximize", weights=[[0, 1], [0, 0]], allocation=HALVES["allocation"], value=0
    )
    assert "the maximum of 1 x['A', 'T1'] is 0" in verify(at_most | {"duals": []})
    assert verify(HALVES)
    with pytest.raises(Rejected, match="'A' holds a type that it cannot run on"):
        verify(HALVES | {"allocation": [["1/2", 1], ["1/2", 0]]})


def test_bundles_of_partial_allocation_hold_nothing_of_no_use() -> None:
    spare = json.loads(json.dumps(PARTIAL))
    spare["market"]["types"].append("T2")
    spare["market"]["capacity"].append(1)
    for user in spare["market"]["user"]:
        user["speedup"].append(0)
    for part in (spare["together"], *spare["apart"]):
        part["prices"].append(0)
        for row in part["allocation"]:
            row.append(0)
    for row in spare["allocation"]:
        row.append(0)
    assert verify(spare)
    spare["together"]["allocation"][0][2] = 1
    spare["allocation"][0][2] = "5/8"
    with pytest.raises(Rejected, match="cannot run on"):
        verify(spare)


def test_an_allocation_that_cannot_be_had_is_called_so() -> None:
    """Else "nobody can have that" would be contradicted by a property of an allocation in which somebody has it."""
    assert verify(BY_HAND["OUT_OF_REACH"]).startswith("no feasible allocation gives 'A' 4 [")
    impossible = FAIR | {"allocation": [[2, 2], [2, 2]]}
    assert verify(impossible).startswith("envy_freeness holds for the allocation, which gives out what is not there [")
    assert verify(impossible | {"property": "feasibility", "answer": "FAILS"}).startswith("feasibility fails for the a")
    envious = ENVY | {"allocation": [[1, 0], [0, 2]]}
    assert "the shares of 'B', which gives out what is not there [" in verify(envious)
    assert "what is not there" not in verify(ENVY) + verify(FAIR)


def test_a_throughput_is_asked_of_each_user_once() -> None:
    with pytest.raises(Rejected, match="'A' stands twice"):
        verify(BY_HAND["OUT_OF_REACH"] | {"at_least": [["A", 4], ["A", 4]]})


def test_a_policy_of_others_cannot_pass_for_one_that_is_known() -> None:
    told = BY_HAND["LIE_TO_OTHERS"]
    name = "max-min rewards nobody; 'x'"
    fake = told | {"policy": name, "truth": told["truth"] | {"policy": name}, "lie": told["lie"] | {"policy": name}}
    assert f"which the author of {name!r} wrote, {name!r} rewards 'A' for reporting" in verify(fake)
    for known in ("max-min", "water-filling", "second-price-trading"):
        with pytest.raises(Rejected, match="are proved from the market"):
            verify(told["truth"] | {"policy": known})


# -- which file is what ---------------------------------------------------------------------------------------------
def test_water_filling_is_a_certificate_although_it_has_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "levels.json"
    path.write_text(json.dumps(BY_HAND["TWO_LEVELS"]))
    monkeypatch.setattr("sys.argv", ["fairopt", "check", str(path)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert (stop.value.code or 0) == 0
    assert "accepted: ratios to own partitions are lexicographically max-min" in capsys.readouterr().out
    assert recognises(BY_HAND["TWO_LEVELS"])
    assert not recognises({"rounds": []})


def test_the_range_of_a_certificate_is_not_that_of_its_own_allocation() -> None:
    assert "allocation" not in verify(MOST)


# -- much work in a small file --------------------------------------------------------------------------------------
def test_sums_that_grow_without_end_are_refused_with_a_message() -> None:
    """Packed, such a file has 2 kB; it would be decided for hours."""
    long = [f"1/1{'0' * 18_990}{2 * i + 1:05d}" for i in range(9)]
    users = market({f"u{i}": [1] for i in range(9)}, [1], **{f"u{i}": {"weight": each} for i, each in enumerate(long)})
    told = FAIR | {"market": users, "allocation": [[0]] * 9}
    with (
        CountedSteps(A_HANG),
        pytest.raises(Rejected, match="bits of a sum are too many to decide; the limit is 200000"),
    ):
        verify(told)


def test_rows_that_would_not_fit_into_memory_are_refused_with_a_message() -> None:
    many = market({f"u{i}": [1] for i in range(1500)}, [1])
    told = certificate("optimality", market=many, policy="oef-cooperative", allocation=[[0]] * 1500, value=0, duals=[])
    with pytest.raises(Rejected, match="terms of its envy rows are too many to decide; the limit is 20000000"):
        verify(told)
    with pytest.raises(Rejected, match="comparisons are too many"):
        verify(FAIR | {"market": market({f"u{i}": [1] for i in range(9000)}, [1]), "allocation": [[0]] * 9000})


def test_powers_of_long_numbers_at_many_points_are_refused_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed, such a file has 5 kB, and each of its points would take seconds."""
    steps = []
    for digits in (1, 4000):
        long = NASH_COSTS_NOTHING["points"][0] | {"value": f"{'1' * digits}/{'3' * digits}1"}
        told = Entry(NASH_COSTS_NOTHING | {"points": [long]})
        with pytest.raises(Rejected, match="the gap is another"):
            RULES["frontier"](decisions.opened(told)[1])
        steps.append(int(told.budget.spent * nash.MOST_STEPS))
    assert steps[1] - steps[0] > 4000**2
    monkeypatch.setattr(nash, "MOST_STEPS", 100)
    with pytest.raises(Rejected, match=r"a product of powers: .* steps .* too many"):
        verify(NASH_COSTS_NOTHING)


def spent(data: Any) -> int:
    """Return how many terms are looked at for a certificate."""
    kind, body = decisions.opened(Entry(data))
    RULES[kind](body)
    return ceil(body.budget.spent * programs.MOST_STEPS)


NESTED = ("DOMINANCE_OVER_ALL", "LIE_WHATEVER_OPTIMUM", "TWO_LEVELS", "NASH_COSTS_NOTHING", "BEST", "GANGS")


@pytest.mark.parametrize("name", NESTED)
def test_all_that_is_nested_in_a_file_spends_one_budget(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = BY_HAND[name]
    needs = spent(data)
    for module in (programs, gangs):
        monkeypatch.setattr(module, "MOST_STEPS", needs)
    assert verify(data)
    for module in (programs, gangs):
        monkeypatch.setattr(module, "MOST_STEPS", needs - 1)
    with pytest.raises(Rejected, match=f"to decide beside what was decided before; the limit is {needs - 1}"):
        verify(data)


def test_every_decision_in_a_dominance_is_counted() -> None:
    assert spent(DOMINANCE_OVER_ALL) == sum(spent(each) for each in DOMINANCE_OVER_ALL["optima"])


def never(*_: Any) -> Any:
    raise AssertionError("it is decided what could not fit")


def test_what_does_not_fit_together_is_refused_before_anything_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed, such a file had 2 kB, and each of the decisions in it took seconds and a hundred megabytes."""
    first, second = DOMINANCE_OVER_ALL["optima"]
    other = market({f"u{i}": [1] for i in range(700)}, [1])
    of_another = optimality("oef-cooperative", other, [[0]] * 700, 0, [])
    with monkeypatch.context() as patched:
        for kind in decisions.DECISIONS.keys() - {"extreme"}:
            patched.setitem(decisions.DECISIONS, kind, never)
        for optima in ([second, first], [first], [first, of_another], [of_another] * 2, [first, second] * 50):
            with pytest.raises(Rejected, match="each user's most"):
                verify(DOMINANCE_OVER_ALL | {"optima": optima})
        for nested in ({"truth": of_another}, {"lie": of_another}):
            with pytest.raises(Rejected, match="not on the truth and on the misreport"):
                verify(LIE | nested)
        with pytest.raises(Rejected, match="leaves no choice"):
            verify(MOST | {"of": MOST})


def test_trades_among_too_many_are_refused_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of users that have all they demand, each pair of types would be looked at, and nothing traded."""
    monkeypatch.setattr(trading, "MOST_PAIRS", 15)
    with pytest.raises(Rejected, match="16 pairs of users and of types are too many"):
        verify(TRADING)


def test_a_small_file_that_takes_long_is_refused_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long number that goes into every comparison takes hours, whatever limits on steps there are."""
    monkeypatch.setattr(front, "MOST_SECONDS", 0.05)
    path = tmp_path / "small.json"
    users = {f"u{i}": [1, 2] for i in range(400)}
    told = market(users, [1, 1], u0={"weight": "7" * 9_000 + "/" + "3" * 9_001})
    body = {"property": "envy_freeness", "answer": "HOLDS", "allocation": [[0, 0]] * len(users)}
    path.write_text(json.dumps(certificate("property", market=told, **body)))
    status, (said,) = front.report(path)
    assert (status, said) == (
        front.UNREADABLE,
        "cannot be read: it takes more than 0.05 s, the limit for files below 100000 bytes",
    )
    monkeypatch.setattr(front, "SMALL", 1)
    assert front.report(path)[0] == front.FINE
