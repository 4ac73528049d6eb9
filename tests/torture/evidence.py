"""Certificates, records and schedules that are changed or made up: what a verifier accepts is true all the same."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("certificates", "proofs", "problem")]
import test_verify_run as runs
import test_verify_schedule as schedules
from certificate_kinds import BY_HAND, require_true
from certificate_kinds.examples import Untrue
from certificate_samples import of_entitlements, of_market, of_programs
from changed import changed_values
from tampering import Place, Tampering, changes, places
from trials import Ending, Fault, Kind

from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.proofs.verify import Rejected, verify
from fairopt.testing.round_samples import by_hand, documented, sample_settings
from fairopt.testing.round_suite import Lender
from fairopt.testing.samples import entitled_markets, sample_markets

#: What of a run nobody works out is judged for its form at most.
NOT_JUDGED = ("backend", "policy", "seconds")
#: What a run begins with: few places, from which all the others follow.
BEGINS = ("length", "mechanics", "cluster", "trace")
#: This part of the trials changes nothing.
UNCHANGED = 0.03


#: Certificates are made on so many markets of users, and as many with entitlements.
MARKETS = 12


def certificates() -> list[Any]:
    """Return certificates of every kind that we make, as they are read from files."""
    return _certificates(MARKETS)


@cache
def _certificates(markets: int) -> list[Any]:
    random, found = Random("certificates"), list(BY_HAND.values())
    for market in sample_markets(markets, seed=71, users=(2, 3), types=(2, 3), demands=True):
        found += [each.certificate.to_json() for each in of_market(market, random)]
    for market in entitled_markets(markets, seed=72):
        found += [each.certificate.to_json() for each in of_entitlements(market, random)]
    found += [each.certificate.to_json() for each in of_programs(random, 20)]
    return [json.loads(json.dumps(each)) for each in found]


def certificate(draw: Random) -> Ending:
    """Change a certificate in one to three places; one that is not changed is accepted."""
    data = draw.choice(certificates())
    if draw.random() < UNCHANGED:
        return must_be_accepted(certified(data), "a certificate")
    return certified(changed(data, draw))


def changed(data: Any, draw: Random) -> Any:
    """Return a document with a change in one to three places, where one can be made."""
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        change = _some(data, draw)
        data = data if change is None else change.of(data)
    return data


def made_up(draw: Random) -> Ending:
    """Mix parts of two certificates of one kind, or change values without knowing what they mean."""
    data = draw.choice(certificates())
    if data.get("policy") == "max-min" and data["certificate"] == "optimality" and draw.random() < 0.5:
        return certified(_as_levels(data))
    alike = [each for each in certificates() if each["certificate"] == data["certificate"]]
    other = draw.choice(alike)
    shared = [key for key in data if key in other and key not in ("schema", "certificate")]
    data = data | {key: other[key] for key in draw.sample(shared, draw.randint(0, len(shared)))}
    return certified(changed_values(data, draw) if draw.random() < 0.5 else data)


def _as_levels(data: Any) -> Any:
    """Return the optimum of max-min as if it were one of water filling: everybody is held at the least ratio."""
    names = [user["name"] for user in data["market"]["user"]]
    found = {key: data[key] for key in ("schema", "market", "allocation")}
    return found | {
        "certificate": "levels",
        "rounds": [{"level": data["value"], "fixed": names, "duals": data["duals"]}],
    }


def must_be_accepted(ending: Ending, what: str) -> Ending:
    """Return the ending; `Fault` where what is right was refused."""
    if ending is Ending.REFUSED:
        raise Fault(Ending.WRONG, f"{what} that is right is refused")
    return ending


def certified(data: Any) -> Ending:
    """Return how the verifier judges a certificate; `Fault` where it accepts what is false."""
    try:
        verify(data)
    except Rejected:
        return Ending.REFUSED
    try:
        require_true(data)
    except Untrue as reason:
        raise Fault(Ending.FALSE, f"{reason}: {json.dumps(data)[:3000]}") from reason
    return Ending.RIGHT


def _some(data: Any, draw: Random) -> Tampering | None:
    """Return a change somewhere; half of them on a way down from the top, else most are in what is longest."""
    for _ in range(20):
        place = draw.choice(list(places(data))) if draw.random() < 0.5 else _way_down(data, draw)
        possible = changes(data, place, draw)
        if possible:
            return draw.choice(possible)
    return None


def _way_down(data: Any, draw: Random) -> Place:
    place: Place = ()
    while isinstance(data, dict | list) and data:
        key: Any = draw.choice(list(data) if isinstance(data, dict) else range(len(data)))
        place, data = (*place, key), data[key]
    return place


@cache
def records() -> list[Any]:
    """Return documents of runs."""
    found = [documented(ShortestRemainingTimeFirst(), by_hand())]
    for seed in range(6):
        found += [documented(Lender(seed=seed), one) for one in sample_settings(1, seed=90 + seed, jobs=(3, 5))]
    return found


def record(draw: Random) -> Ending:
    """Change the document of a run in a place; the core replays what is accepted."""
    data = draw.choice(records())
    if draw.random() < UNCHANGED:
        return must_be_accepted(Ending.RIGHT if runs.accepted(data) else Ending.REFUSED, "a run")
    change = _some({key: data[key] for key in BEGINS} if draw.random() < 0.5 else data, draw)
    if change is None:
        return Ending.UNDECIDED
    other = change.of(data)
    if not runs.accepted(other):
        return Ending.REFUSED
    judged = change.place[-1] not in NOT_JUDGED and "unschedulable" not in change.place
    if judged and not runs.right_by_the_core(other):
        raise Fault(Ending.FALSE, f"{change} of the run {records().index(data)}")
    return Ending.RIGHT


@cache
def printed_plan() -> Any:
    """Return the plan of ASTRAEA's example, of which it is known what may change."""
    return schedules.documented(schedules.PRINTED, schedules.example())


def plan(draw: Random) -> Ending:
    """Change a schedule in a place; what is accepted must still be what is said."""
    data = printed_plan()
    if draw.random() < UNCHANGED:
        return must_be_accepted(Ending.REFUSED if schedules.rejected(data) else Ending.RIGHT, "a schedule")
    change = _some(data, draw)
    if change is None:
        return Ending.UNDECIDED
    other = change.of(data)
    if schedules.rejected(other):
        return Ending.REFUSED
    if not schedules.harmless(data, change.place, schedules.at(other, change.place)):
        raise Fault(Ending.FALSE, f"{change} of the printed schedule")
    return Ending.RIGHT


KINDS = [
    Kind("e", "changed certificates", certificate, 20, 12, certificates),
    Kind("e", "made-up certificates", made_up, 20, 3, certificates),
    Kind("e", "changed runs", record, 20, 6, records),
    Kind("e", "changed schedules", plan, 20, 4, printed_plan),
]
