"""Stored counterexamples: accepted by the verifier, cited by a row of the ledger, and what the search finds today."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairopt.errors import BadInput
from fairopt.proofs import verify as verifier
from fairopt.proofs.claims.counterexamples import WANTED, Wanted
from fairopt.proofs.ledger.citing import COUNTEREXAMPLES as FOLDER
from fairopt.proofs.ledger.citing import counterexample
from fairopt.proofs.ledger.entries import Ruling, ledger
from fairopt.proofs.ledger.searching import (
    Domain,
    as_in_oef,
    false_reports,
    in_order_of_ratios,
    least_ratios_first,
    ordered_by_ratios,
)

FILES = sorted(FOLDER.glob("*.json"))
#: These searches ask more markets than a test run has time for.
SLOW = {
    *("oef-table1-max-min-zeros", "oef-thm5.2-cooperative-ordered", "oef-thm5.3-cooperative-two-types"),
    *("oef-lemma3.1-cooperative-ratios", "oef-nonzeros-cooperative", "oef-nonzeros-cooperative-normalised"),
    *("oef-thm5.3-cooperative", "oef-table1-trading-dominated"),
}


def stems(name: str) -> set[str]:
    """Return the files of one counterexample; no other's name goes on where this one ends."""
    longer = [other.name for other in WANTED if other.name.startswith(f"{name}-")]
    return {
        file.stem
        for file in FILES
        if (file.stem == name or file.stem.startswith(f"{name}-"))
        and not any(file.stem == other or file.stem.startswith(f"{other}-") for other in longer)
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_verifier_accepts_it(path: Path) -> None:
    assert verifier.verify(json.loads(path.read_text(encoding="utf-8")))


def test_the_verifier_by_itself_accepts_the_folder() -> None:
    ran = subprocess.run(
        [sys.executable, "-I", str(FOLDER.parent / "verify.py"), str(FOLDER)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.count(": accepted: ") == len(FILES)


def test_there_are_the_files_that_are_wanted_and_no_others() -> None:
    of = {wanted.name: stems(wanted.name) for wanted in WANTED}
    assert all(of.values())
    assert set().union(*of.values()) == {file.stem for file in FILES}


@pytest.mark.parametrize("wanted", WANTED, ids=lambda wanted: wanted.name)
def test_a_row_that_does_not_simply_hold_cites_it(wanted: Wanted) -> None:
    unexpected = (Ruling.REFUTED, Ruling.QUALIFIED, Ruling.PROVED)
    rows = [row for row in ledger() if wanted.name in row.evidence]
    assert any(row.verdict in unexpected for row in rows)


def wanted_searches() -> Iterator[object]:
    for wanted in WANTED:
        yield pytest.param(wanted, id=wanted.name, marks=[pytest.mark.slow] if wanted.name in SLOW else [])


@pytest.mark.parametrize("wanted", list(wanted_searches()))
def test_the_search_finds_what_is_stored(wanted: Wanted) -> None:
    found = wanted.search()
    assert found.keys() == stems(wanted.name)
    for name, certificate in found.items():
        # the duals of a degenerate optimum may be others; what is stated may not
        mine, stored = json.loads(json.dumps(certificate.to_json())), counterexample(name)
        assert verifier.verify(mine) == stored.statement
        for key in ("market", "policy", "user", "report", "gain", "weights", "value", "program"):
            assert mine.get(key) == stored.data.get(key)


def test_a_search_that_finds_nothing_says_so() -> None:
    with pytest.raises(BadInput, match="no candidate is a counterexample"):
        Wanted("none", lambda: [1, 2], lambda _: None).search()


def test_a_counterexample_that_is_not_there() -> None:
    with pytest.raises(BadInput, match="no such counterexample"):
        counterexample("oef-thm9.9")


def test_markets_come_in_order_of_size_and_once() -> None:
    domain = Domain(((2, 2), (2, 3)), 4, normalised=True, rising=True)
    markets = list(domain.markets())
    sizes = [(*m.shape, m.speedup.max(), m.speedup.sum()) for m in markets]
    assert sizes == sorted(sizes)
    assert len({str(sorted(m.speedup.tolist())) for m in markets}) == len(markets)
    # two users with speedups from {2, 3, 4} on the fast type; then pairs of {(2, 3), (2, 4), (3, 4)}
    assert len(markets) == 6 + 6


def test_capacities_and_zeros_are_asked_for() -> None:
    assert len(list(Domain(((1, 2),), 2, capacities=2, normalised=True).markets())) == 1 + 7
    few = list(Domain(((1, 2),), 2, capacities=1, normalised=True).markets())
    assert len(few) == 1 + 3
    assert {market.capacity[1] for market in few} == {1}
    rows = [market.speedup.tolist() for market in Domain(((1, 1), (2, 2)), 1, zeros=True).markets()]
    assert [[0, 1], [1, 0]] in rows
    assert all(any(column) for table in rows for column in zip(*table, strict=True)), "a type that nobody can use"


def test_lies_are_of_their_kind_and_in_order() -> None:
    for kind in ("larger", "smaller"):
        lies = list(false_reports(Domain(((2, 2),), 3, normalised=True), kind))
        assert lies
        for each in lies:
            truth = each.market.speedup[each.user]
            assert (each.report >= truth).all() if kind == "larger" else (each.report <= truth).all()
            assert each.report[0] == 1
            assert tuple(truth) != each.report
        sizes = [max(each.market.speedup.max(), *each.report) for each in lies]
        assert sizes == sorted(sizes)


def test_users_come_in_the_order_that_is_asked_for() -> None:
    markets = list(Domain(((3, 3),), 8, in_order_of_ratios, normalised=True, rising=True).markets())
    assert markets
    for market in markets:
        assert ordered_by_ratios(market)
        assert as_in_oef(market)
        assert not ordered_by_ratios(market.select([1, 0, 2]))
    for market in Domain(((3, 2),), 3, least_ratios_first).markets():
        slowest, *others = (fast / slow for slow, fast in market.speedup)
        assert slowest < min(others)
