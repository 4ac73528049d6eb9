"""Both verifiers on an optimum of cooperative OEF with 1,000 users and 10 types: a million comparisons of bundles."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from differential import PROGRAM, Proved

from fairopt import allocate
from fairopt.models import CooperativeOEF
from fairopt.problem import Market
from fairopt.proofs.verify import verify

USERS, SPEEDUP, CAPACITY = 1_000, list(range(1, 11)), [8, 16, 24, 8, 16, 24, 8, 16, 24, 8]


@pytest.mark.skipif(not PROGRAM.exists(), reason="it is not built: make verified")
def test_a_large_optimum_is_accepted_and_a_dearer_one_is_not(tmp_path: Path) -> None:
    policy, path = CooperativeOEF(), tmp_path / "optimum.json"
    two = allocate(policy, Market.of([SPEEDUP] * 2, CAPACITY), exact=True)
    data = policy.certify(two).to_json()
    data["market"]["user"] = [data["market"]["user"][0] | {"name": f"u{each}"} for each in range(USERS)]
    data["allocation"] = [[str(Fraction(gpus, USERS)) for gpus in CAPACITY] for _ in range(USERS)]
    path.write_text(json.dumps(data))
    with Proved() as proved:
        assert proved.report(path) == (0, f"accepted: {verify(data)}")
        path.write_text(json.dumps(data | {"value": "849"}))
        assert proved.report(path)[0] == 1
