"""What is to be freed for a gang is enough unless a gang before it takes it: by hand, who may."""

from __future__ import annotations

from typing import Any

import pytest

from fairopt.audit import explain
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good
from fairopt.report import plain

#: In the order in which they asked: name, user, GPUs. Of "ours" it is asked who goes before it.
OURS = ("ours", "A", 4)
TYPES = ("H100", "A100")


def loan_of(
    *gangs: tuple[str, str, int],
    tier: dict[str, int] | None = None,
    only: dict[str, str] | None = None,
    running: dict[str, str] | None = None,
    there: tuple[int, int] = (8, 0),
    cpu: dict[str, int] | None = None,
    **owed: Any,
) -> Any:
    """Return what would let the gang "ours" run on H100s, of which B's gang "runs" holds all but 2."""
    every = (*gangs, ("runs", "B", there[0] - 2))
    names, users, gpus = zip(*every, strict=True)
    rows = ["A", "B", "C"]
    on = [{"runs": "H100", **(running or {})}.get(name) for name in names]
    made = Gangs.of(
        *(users, gpus),
        users=rows,
        types=list(TYPES),
        names=names,
        on=on,
        tier=[(tier or {}).get(name, 0) for name in names],
        allowed=[[(only or {}).get(name, "H100")] for name in names],
        other=None if cpu is None else {"cpu": [cpu.get(name, 0) for name in names]},
    )
    goods = None if cpu is None else {Good("cpu", "all"): 8}
    said = Entitlements.of(rows, list(TYPES), gangs=made, goods=goods, **owed)
    market = Market.of([[1, 1]] * 3, list(there), users=rows, types=list(TYPES), entitlements=said)
    [loan] = [each for each in explain(market, "A", policies=[]).loans if each.type == "H100"]
    return loan


def test_those_that_asked_earlier_are_named_and_the_json_says_the_same() -> None:
    loan = loan_of(("early", "C", 4), OURS, ("late", "C", 4))
    assert (loan.gpus, loan.steps, loan.ahead) == (2, ("free or add 2 H100",), ("early",))
    assert str(loan) == (
        "ours could run on H100: free or add 2 H100; but a gang before it may take the GPUs first: early"
    )
    assert plain(loan)["ahead"] == ["early"]
    assert str(loan_of(("one", "B", 4), ("two", "C", 1), OURS)).endswith(
        "but gangs before it may take the GPUs first: one, two"
    )


def test_nobody_before_it_is_no_word() -> None:
    assert str(loan_of(OURS, ("late", "C", 4))) == "ours could run on H100: free or add 2 H100"


def test_a_higher_priority_goes_first_and_a_lower_one_does_not() -> None:
    gangs = (("low", "C", 4), OURS, ("high", "C", 4))
    assert loan_of(*gangs, tier={"low": -1, "high": 1}).ahead == ("high",)


@pytest.mark.parametrize(("whose", "ahead"), [("C", ("owed",)), ("A", ())])
def test_of_the_same_priority_what_is_owed_goes_first(whose: str, ahead: tuple[str, ...]) -> None:
    """Where A is owed its GPUs, a gang of C that asked earlier and only borrows is not before it."""
    gangs = (OURS, ("owed", "C", 4)) if whose == "C" else (("lent", "C", 4), OURS)
    assert loan_of(*gangs, guarantee={whose: [4, 0]}).ahead == ahead


@pytest.mark.parametrize(
    "stops",
    [
        {"cap": {"C": [3, 0]}},
        {"only": {"early": "A100"}},
        {"cpu": {"early": 9}},
        {"reserve": {"B": [8, 0]}, "guarantee": {"B": [8, 0]}},  # B keeps the 2 that are free; they are lent to A only
        {"there": (12, 0), "running": {"early": "H100"}},
    ],
    ids=["cap", "type", "cpu", "reserve", "runs"],
)
def test_what_cannot_take_them_is_not_before_it(stops: dict[str, Any]) -> None:
    assert loan_of(("early", "C", 4), OURS).ahead == ("early",)
    assert loan_of(("early", "C", 4), OURS, **stops).ahead == ()


def test_what_needs_more_than_will_be_free_is_not_before_it() -> None:
    assert loan_of(("large", "C", 5), OURS).ahead == ()


def test_cpu_that_is_given_may_be_taken_by_others() -> None:
    """All CPU is held: what is freed for A's gang is enough for C's, too."""
    loan = loan_of(("early", "C", 4), OURS, cpu={"runs": 8, "early": 1, "ours": 1})
    assert loan.ahead == ("early",)
    assert "free or add 1 cpu:all" in loan.steps


def test_a_cap_that_is_raised_may_be_filled_by_others_in_the_group() -> None:
    group = {"group": {"A": "g", "C": "g"}, "cap": {"g": [0, 0]}}
    loan = loan_of(("early", "C", 4), OURS, **group)
    assert loan.steps[0] == "raise the cap of g from 0 to 4"
    assert loan.ahead == ("early",)


def test_gpus_that_were_set_aside_for_others_are_not_taken_twice() -> None:
    """Two are free for C, which is owed them; A is owed four more than these, and who is served takes none of them."""
    loan = loan_of(("served", "C", 2), OURS, guarantee={"C": [2, 0], "A": [4, 0]})
    assert (loan.steps, loan.ahead) == (("free or add 4 H100",), ())
    borrows = loan_of(OURS, ("served", "C", 2), guarantee={"C": [2, 0]})
    assert (borrows.steps, borrows.ahead) == (("free or add 2 H100",), ("served",))
