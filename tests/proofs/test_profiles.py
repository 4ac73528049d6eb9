"""What the verifier makes of profiles in records: worked out by hand, and those that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_forged_runs import APART, ends, job, profile, record

from fairopt.proofs.verifier.reading import Unreadable
from fairopt.proofs.verifier.runs import decide

RIGHT = {
    "a batch that is worth more after a third, and less apart": record(
        job("j1", 0, 60, gpus=2, profile=0),
        {"round": 0, "start": {"j1": APART}},
        {"round": 1, "complete": {"j1": "135/2"}},  # 20 at 1/2, 5 at 6/5, 35 at 3/2
        ends(2),
        profiles=[
            profile(
                [2, 1, 8, 1],
                [2, 1, 16, 2],
                [2, 2, 8, "1/2"],
                [2, 2, 16, 1],
                efficiency=[[0, 16, "1/4"], [20, 16, "6/5"], [25, 8, 3]],
            )
        ],
    ),
    "a restart of its own": record(
        job("j1", 0, 80, profile=0),
        {"round": 0, "start": {"j1": [["a", 1]]}},
        {"round": 1, "migrate": {"j1": [["b", 1]]}, "complete": {"j1": 100}},
        ends(2),
        profiles=[profile([1, 1, 1, 1], restart=10)],
    ),
}
BAD_PROFILES = [
    profile(),
    *(profile(row) for row in ([0, 1, 1, 1], [1, 2, 1, 1], [1, 1, 0, 1], [1, 1, 1, -1], [1, 1, 1])),
    *(profile([1, 1, 1, 1], efficiency=[row]) for row in ([0, 1, 0], [-1, 1, 1], [0, 2, 1], [0, 1])),
    profile([1, 1, 1, 1], efficiency=[[0, 1, 1], [0, 1, 2]]),
    profile([1, 1, 1, 1], restart=-1),
]


@pytest.mark.parametrize("name", RIGHT)
def test_what_follows_by_hand_is_accepted_and_nothing_else(name: str) -> None:
    assert decide(RIGHT[name])[0] == []
    lines = RIGHT[name].splitlines()
    for at, line in enumerate(lines):
        told = json.loads(line)
        if told.get("complete"):
            lines[at] = json.dumps(told | {"complete": {"j1": 75}})
    assert "should be" in decide("\n".join(lines))[0][0]


@pytest.mark.parametrize("at", [0, 1, -1, "p", 1.5])
def test_a_profile_that_is_not_there_is_refused(at: Any) -> None:
    with pytest.raises(Unreadable):
        decide(record(job("j1", 0, 60, profile=at), {"round": 0, "start": {"j1": [["a", 1]]}}, ends(1)))


@pytest.mark.parametrize("bad", BAD_PROFILES)
def test_a_profile_that_cannot_be_is_refused(bad: dict[str, Any]) -> None:
    lines = {"round": 0, "start": {"j1": [["a", 1]]}, "complete": {"j1": 60}}
    assert decide(record(job("j1", 0, 60, profile=0), lines, ends(1), profiles=[profile([1, 1, 1, 1])]))[0] == []
    with pytest.raises(Unreadable):
        decide(record(job("j1", 0, 60, profile=0), lines, ends(1), profiles=[bad]))
    with pytest.raises(Unreadable, match="its number of GPUs is not in its profile"):
        decide(record(job("j1", 0, 60, gpus=2, profile=0), lines, ends(1), profiles=[profile([1, 1, 1, 1])]))
