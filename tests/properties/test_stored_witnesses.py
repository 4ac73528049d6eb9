"""The search finds no fewer misreports that pay than it did, on the markets that are stored.

`stored_witnesses.json` holds what was found before misreports were decided many at once: by policy and market, the
first letters of the kinds that pay (larger, smaller, any).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairopt import discovery
from fairopt.datasets import gavel_example, oef_example
from fairopt.problem import Market, market_from_dict
from fairopt.properties import Effort, StrategyProofness

ROOT = Path(__file__).parents[2]
STORED: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("stored_witnesses.json").read_text())
EFFORT = Effort(evaluations=90)
#: A few markets of each policy are tried on every run.
QUICK = 4


def stored_markets() -> dict[str, Market]:
    """Return the examples, and the markets of all counterexamples, by name; each once."""
    found = {"oef-example": oef_example(), "gavel-example": gavel_example()}
    for file in sorted((ROOT / "proofs" / "counterexamples").glob("*.json")):
        for number, market in enumerate(_markets(json.loads(file.read_text()))):
            if market not in found.values():
                found[f"{file.stem} {number}"] = market
    return found


def _markets(data: Any) -> Iterator[Market]:
    if isinstance(data, dict):
        if {"types", "capacity", "user"} <= data.keys():
            yield market_from_dict(data)
        for value in data.values():
            yield from _markets(value)


def paying(policy: str, market: Market) -> str:
    """Return the first letters of the kinds of misreport that are found to pay."""
    verdict = StrategyProofness().search(discovery.policy(policy), market, effort=EFFORT)
    return "".join(kind[0] for kind, each in verdict.by_misreport.items() if each.holds is False)


def none_is_lost(policy: str, names: list[str]) -> None:
    markets = stored_markets()
    lost = {name: paying(policy, markets[name]) for name in names}
    assert {name: found for name, found in lost.items() if not set(STORED[policy][name]) <= set(found)} == {}


@pytest.mark.parametrize("policy", STORED)
def test_no_witness_is_lost(policy: str) -> None:
    """On the markets on which most kinds pay."""
    most = sorted(STORED[policy], key=lambda name: -len(STORED[policy][name]))
    none_is_lost(policy, most[:QUICK])


@pytest.mark.slow
@pytest.mark.parametrize("policy", STORED)
def test_no_witness_is_lost_on_any_stored_market(policy: str) -> None:
    none_is_lost(policy, list(STORED[policy]))
