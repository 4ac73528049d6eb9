"""Certificates of properties of entitlements, worked out by hand; `decisions` says when they are true."""

from __future__ import annotations

from typing import Any

from certificate_kinds.examples import Json, Truth, certificate, market

#: A and B are of one group. A holds 1 of the 3 that it is owed and waits for 2, B holds 5 and is owed 2, of which it
#: can lose all but 2. C waits for 4 on either type, of which there is 1; it is alone, and may hold 2 of the first type.
OWED: Json = {
    "groups": ["G"],
    "in": ["G", "G", None, None],
    "goods": [{"resource": "cpu", "flavor": "all"}],
    "stock": [8],
    "guarantee": [[3, 0, 0], [2, 0, 4], [0, 1, 0], [5, 0, 4]],
    "cap": [[None, None, None], [5, None, None], [2, None, None], [None, None, 6]],
    "borrow_weight": [1, 2, 1, 1],
    "tier": [0, 0, 0, 0],
    "held": [[1, 0, 1], [5, 0, 2], [0, 0, 0]],
    "fixed": [[0, 0, 0], [2, 0, 0], [0, 0, 0]],
    "pending": [
        {"user": "A", "gpus": 2, "types": ["T0"], "other": {"cpu": 2}},
        {"user": "C", "gpus": 4, "types": ["T0", "T1"], "other": {}},
    ],
}
NOW, MENDED = [[1, 0], [5, 0], [0, 0]], [[3, 0], [3, 0], [0, 1]]


def of(name: str, allocation: Any, answer: str, **changes: Any) -> Json:
    """Return the certificate that a property holds or fails for the three users; ``changes`` are to what is owed."""
    told = market({"A": [1, 1], "B": [1, 2], "C": [1, 3]}, [6, 1]) | {"entitlements": OWED | changes}
    return certificate("property", market=told, allocation=allocation, property=name, answer=answer)


KEPT, SHORT = of("guarantee_kept", MENDED, "HOLDS"), of("guarantee_kept", NOW, "FAILS")
LENT, RECLAIMED = of("nobody_starves_while_lent", NOW, "FAILS"), of("nobody_starves_while_lent", MENDED, "HOLDS")
CAPPED, OVER = of("cap_kept", NOW, "HOLDS"), of("cap_kept", [[0, 0], [0, 0], [3, 0]], "FAILS")
WORTH, LESS = of("guarantee_incentive", MENDED, "HOLDS"), of("guarantee_incentive", NOW, "FAILS")
#: C's gang of 4 does not fit the 1 that is free; of 1 it would.
ONE = [OWED["pending"][0], {"user": "C", "gpus": 1, "types": ["T0", "T1"]}]
FULL, FITS = of("whole_gpu_conservation", NOW, "HOLDS"), of("whole_gpu_conservation", NOW, "FAILS", pending=ONE)
#: B borrows 3 and A, which wants two more, nothing; with nothing guaranteed to A and two given it, it is fair enough.
LOANS = of("group_fairness", NOW, "FAILS")
SHARED_OUT = of("group_fairness", MENDED, "HOLDS")
#: B has more than A, which is of its group; A's tier is its own, or it is not.
PEERS, APART = of("envy_within_peers", NOW, "FAILS"), of("envy_within_peers", NOW, "HOLDS", tier=[1, 0, 0, 0])

TRUTH: dict[str, Truth] = {}
