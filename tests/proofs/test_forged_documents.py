"""Documents of runs with one thing wrong, and no other: each was accepted by a verifier with one change."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from fairopt.proofs.verifier.reading import Unreadable
from fairopt.proofs.verifier.runs import decide
from fairopt.simulation import Mechanics
from fairopt.testing.round_samples import by_hand, documented
from fairopt.testing.round_suite import Lender

Json = dict[str, Any]


def changed(kind: str) -> Json:
    data = documented(Lender(seed=1), by_hand())
    rounds = data["rounds"]
    if kind == "loads for more than a round":
        return documented(Lender(seed=1), replace(by_hand(), mechanics=Mechanics(Fraction(5), Fraction(90))))
    if kind == "left out":
        del rounds[4]
    if kind == "once more":
        rounds.append(rounds[0])
    if kind == "ran twice":
        rounds[4]["ran"].insert(0, rounds[4]["ran"][0] | {"progress": 1000})
    if kind == "for nobody":
        rounds.append(rounds[8] | {"index": 9, "begin": 540, "end": 600, "ran": [], "waiting": ["j4"]})
        data["standing"][0]["lease"] = 600
    return data


def test_one_thing_that_is_wrong_in_a_document_is_seen() -> None:
    for kind in ("nothing", "loads for more than a round"):
        assert decide(json.dumps(changed(kind)))[0] == []
    assert "rounds 4 to 4 have no record" in decide(json.dumps(changed("left out")))[0][0]
    assert "nobody was there" in decide(json.dumps(changed("for nobody")))[0][0]
    with pytest.raises(Unreadable, match="round 0 comes too late"):
        decide(json.dumps(changed("once more")))
    with pytest.raises(Unreadable, match="a job ran twice"):
        decide(json.dumps(changed("ran twice")))
    for tolerance in (Fraction(-1, 100), Fraction(1, 99)):
        with pytest.raises(Unreadable, match="tolerance"):
            decide(json.dumps(changed("nothing")), tolerance)
    assert decide(json.dumps(changed("nothing")), Fraction(1, 100))[0] == []


def test_progress_may_be_off_by_a_part_of_what_the_job_does_in_a_round() -> None:
    for part, fine in ((Fraction(1, 100), True), (Fraction(11, 1000), False)):
        data = changed("nothing")
        ran = data["rounds"][4]["ran"][0]
        ran["progress"] = str(Fraction(ran["progress"]) + part * Fraction(ran["speed"]) * data["length"])
        assert (decide(json.dumps(data), Fraction(1, 100))[0] == []) is fine
