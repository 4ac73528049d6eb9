"""Schedules of a batch before the verifier that Coq proves: it says what the other says, of right and of wrong ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "torture"))
import differential
from differential import Proved, differ
from drawn_seeds import counts
from tampering import changes, places
from test_forged_schedules import HERE, RIGHT, UNREADABLE, WRONG, job, offer, plan

from fairopt.proofs.verifier import front
from fairopt.proofs.verifier.reading import one_line

pytestmark = pytest.mark.skipif(not differential.PROGRAM.exists(), reason="it is not built: make verified")
EVERY = RIGHT | {what: data for known in (WRONG, UNREADABLE) for what, (data, _) in known.items()}


def open_to(data: dict[str, Any]) -> bool:
    """Return whether it has something that the proved verifier does not know: prices, payments, powers with roots."""
    forms = [each["utility"] for each in data["batch"]["jobs"]]
    return bool(data["bases"] or data["payments"]) or any(each.get("exponent") == "1/2" for each in forms)


def both(written: str, path: Path, proved: Proved) -> tuple[tuple[int, str], tuple[int, str]]:
    path.write_text(written)
    status, said = front.report(path)
    return (status, one_line(said[0])), proved.report(path)


@pytest.mark.parametrize("most", counts(5, 10_000))
@pytest.mark.parametrize("what", EVERY)
def test_what_is_right_is_accepted_and_what_is_wrong_is_not(what: str, most: int, tmp_path: Path) -> None:
    """And so each with a change at some of its places in every run, at all in the campaign."""
    path, data, draw = tmp_path / "file.json", EVERY[what], Random(what)
    with Proved() as proved:
        here, there = both(json.dumps(data), path, proved)
        assert here == there if what in RIGHT and not open_to(data) else not differ(here, there)
        assert (there[0] == 4) <= open_to(data)
        everywhere = list(places(data))
        possible = [changes(data, place, draw) for place in draw.sample(everywhere, min(most, len(everywhere)))]
        for change in [draw.choice(each) for each in possible if each]:
            found = both(json.dumps(change.of(data)), path, proved)
            assert not differ(*found), f"{change.kind} at {change.place}"


FLOATS = """0.1 1e-7 1e22 1e23 8.5 0.30000000000000004 1.7976931348623157e308 1.7976931348623159e308 5e-324 2.4e-324
2.5e-324 2.2250738585072011e-308 9007199254740993.0 9007199254740992.5 1e999999999 1e-999999999 123456789.123e-3 -0.0
0.000000000000000000000000000000000000001e+39 1E5 7205759403792793.5 1e309"""


@pytest.mark.parametrize("number", FLOATS.split())
def test_a_float_is_read_as_the_fraction_that_it_is(number: str, tmp_path: Path) -> None:
    """What it is goes into the digest of the batch."""
    told = plan(HERE, jobs=[job(utility={"form": "linear", "slope": 0, "height": "HERE"})])
    with Proved() as proved:
        here, there = both(json.dumps(told).replace('"HERE"', number), tmp_path / "file.json", proved)
    assert here == there if here[0] == 0 else here[0] == there[0]


def test_floats_of_chance_are_read_as_the_fractions_that_they_are(tmp_path: Path) -> None:
    draw = Random("floats")
    written = [f"{draw.randrange(10**18)}.{draw.randrange(10**18)}e{draw.randint(-340, 300)}" for _ in range(400)]
    values = {"form": "steps", "values": ["HERE"]}
    with Proved() as proved:
        for each in written:
            told = json.dumps(plan(HERE, jobs=[job(utility=values)])).replace('"HERE"', each)
            here, there = both(told, tmp_path / "file.json", proved)
            assert there[0] != 4, each
            assert not differ(here, there), each


def test_one_slot_among_a_great_many_is_found(tmp_path: Path) -> None:
    """What is in use is looked at where schedules begin, whatever lies between them."""
    long = HERE | {"first": 1, "last": 10**30}
    late = HERE | {"job": "j2", "first": 10**30, "last": 10**30 + 1}
    jobs, right = [job(), job("j2", "u2")], HERE | {"job": "j2", "first": 10**30 + 1, "last": 10**30 + 2}
    with Proved() as proved:
        for other, status in ((late, 1), (right, 0)):
            here, there = both(json.dumps(plan(long, other, jobs=jobs)), tmp_path / "file.json", proved)
            assert (here[0], there[0]) == (status, status)


def test_who_pays_nothing_for_what_is_not_its_own_is_seen(tmp_path: Path) -> None:
    for cost, status in (("0", 0), ("1/1000000", 1)):
        with Proved() as proved:
            told = plan(HERE, admissions=[offer(HERE, worker_cost=cost)])
            here, there = both(json.dumps(told), tmp_path / "file.json", proved)
        assert (here[0], there[0]) == (status, status)
