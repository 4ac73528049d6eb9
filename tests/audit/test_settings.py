"""Changes in words: which numbers go together, and what is said where they do not."""

from __future__ import annotations

import pytest

from fairopt.audit import whatif
from fairopt.errors import BadInput
from fairopt.problem import Entitlements, Market


def of_two(quota: int) -> Market:
    entitlements = Entitlements.of(["a", "b"], ["T"], guarantee={"a": [quota], "b": [2]})
    return Market.of([[1], [1]], [10], users=["a", "b"], types=["T"], entitlements=entitlements)


@pytest.mark.parametrize("settings", [("a.T.cap=4", "a.T.quota=3"), ("a.T.quota=3", "a.T.cap=4")])
def test_a_cap_and_a_quota_below_it_may_be_set_in_either_order(settings: tuple[str, str]) -> None:
    said = whatif(of_two(8), settings, policies=[]).after.accounts.said
    assert (said.guarantee[0, 0], said.cap[0, 0]) == (3, 4)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        (
            "a.T.limit=4",
            "the quota of 8 is above the cap of 4. Set a.T.cap to 8 or more, or a.T.quota to 4 or less too",
        ),
        (
            "a.T.reserve=9",
            "the reserve of 9 is above the quota of 8. Set a.T.reserve to 8 or less, or a.T.quota to 9 or more too",
        ),
        ("a.limit=4", "--set a.limit=4: a limit is set for one GPU type, and none is named. Write a.T.limit"),
    ],
)
def test_what_must_be_set_too_is_the_other_one_and_to_what(setting: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        whatif(of_two(8), [setting], policies=[])


def test_a_quota_without_bound_promises_no_number_that_a_cap_could_break() -> None:
    said = whatif(of_two(8), ["a.T.quota=none", "a.T.cap=4"], policies=[]).after.accounts.said
    assert said.cap[0, 0] == 4


def test_what_was_out_of_order_before_is_no_fault_of_another_setting() -> None:
    owed = Entitlements.of(["a"], ["T"], guarantee={"a": [8]}, cap={"a": [4]})
    market = Market.of([[1]], [10], users=["a"], types=["T"], entitlements=owed)
    assert whatif(market, ["a.T.reserve=3"], policies=[]).after.accounts.said.reserve[0, 0] == 3
    with pytest.raises(BadInput, match="the quota of 9 is above the cap of 4"):
        whatif(market, ["a.T.quota=9"], policies=[])
