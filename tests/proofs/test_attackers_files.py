"""Small files that are made to take long, or much memory: both verifiers end within 5 s and 500 MB, and say something.

Where the verifier that Coq proves is built (`make verified`), it is asked too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
VERIFIERS = {
    "python": [sys.executable, str(TOP / "proofs" / "verify.py")],
    "coq": [str(TOP / "proofs" / "verified" / "build" / "verify")],
}
MOST_BYTES, MOST_SECONDS, MOST_KILOBYTES = 100_000, 5.0, 500_000
POLICIES = {
    "oef-cooperative": {},
    "max-efficiency": {},
    "oef-noncooperative": {"level": 0},
    "max-min": {"least_ratio": 0},
}
PROPERTIES = ["feasibility", "sharing_incentive", "envy_freeness", "work_conservation", "adjacent_types"]


class Numbers:
    """Numbers of chance of so many digits, and fractions of two."""

    def __init__(self, digits: int) -> None:
        self.draw, self.digits = Random(digits), digits

    def __call__(self) -> str:
        return "".join(self.draw.choices("123456789", k=self.digits))

    def ratio(self) -> str:
        return f"{self()}/{self()}"


def certificate(kind: str, rows: list[list[Any]], capacity: list[Any], *columns: Any, **body: Any) -> dict[str, Any]:
    """Return a certificate on a market; ``columns`` are pairs of a key of users and a function that gives its value."""
    users = [{"name": f"{i}", "speedup": row} | {key: value() for key, value in columns} for i, row in enumerate(rows)]
    market = {"schema": 1, "types": [f"{j}" for j in range(len(capacity))], "capacity": capacity, "user": users}
    return {"schema": 1, "certificate": kind, "market": market} | body


def largest(make: Callable[[int], Any]) -> bytes:
    """Return the largest file below the limit that is made of so many users, or variables."""
    low, high, best = 1, 4096, b""
    while low <= high:
        middle = (low + high) // 2
        data = json.dumps(make(middle), separators=(",", ":")).encode()
        if len(data) < MOST_BYTES:
            low, best = middle + 1, data
        else:
            high = middle - 1
    return best


def of_policy(policy: str, digits: int) -> bytes:
    n = Numbers(digits)
    return largest(
        lambda users: certificate(
            "optimality",
            [[n.ratio(), n.ratio()] for _ in range(users)],
            [n.ratio(), n.ratio()],
            ("weight", n.ratio),
            policy=policy,
            allocation=[[0, 0]] * users,
            value=0,
            duals=[],
            variables=POLICIES[policy],
        )
    )


def of_one_long_weight(policy: str) -> bytes:
    """Many users of short numbers, and one whose weight goes into everybody's."""
    long = Numbers(9_000).ratio()

    def make(users: int) -> Any:
        body = {"allocation": [[0, 0]] * users, "value": 0, "duals": [], "variables": POLICIES[policy]}
        made = certificate("optimality", [[1, 2]] * users, [1, long], policy=policy, **body)
        made["market"]["user"][0]["weight"] = long
        return made

    return largest(make)


def of_property(name: str, digits: int) -> bytes:
    n = Numbers(digits)
    return largest(
        lambda users: certificate(
            "property",
            [[n.ratio(), n.ratio()] for _ in range(users)],
            [n.ratio(), n.ratio()],
            ("demand", n.ratio),
            ("weight", n.ratio),
            property=name,
            answer="HOLDS",
            allocation=[[n.ratio(), n.ratio()] for _ in range(users)],
        )
    )


def of_program(digits: int) -> bytes:
    n = Numbers(digits)

    def make(size: int) -> Any:
        variables = [{"cost": n.ratio(), "lower": 0, "upper": 1, "integer": False} for _ in range(size)]
        rows = [{"terms": [[j, n.ratio()] for j in range(size)], "lower": None, "upper": 1}] * 3
        program = {"sense": "maximize", "offset": 0, "variables": variables, "rows": rows}
        told = {"point": [f"1/{n()}"] * size, "value": 0, "bound": 0, "gap": 0, "duals": [["row", 0, n.ratio()]]}
        return {"schema": 1, "certificate": "bound", "program": program} | told

    return largest(make)


def of_equilibrium(digits: int) -> bytes:
    n = Numbers(digits)
    return largest(
        lambda users: certificate(
            "equilibrium",
            [[n.ratio()] for _ in range(users)],
            [1],
            ("weight", n.ratio),
            allocation=[[f"1/9999{n()}"] for _ in range(users)],
            prices=[1],
        )
    )


def of_frontier(goal: str) -> bytes:
    def make(users: int) -> Any:
        point = {"epsilon": 0, "value": 0, "allocation": [[0]] * users, "variables": {}}
        line = {"constant": 0, "slope": 0, "duals": [], "factors": [1] * users}
        body = {"goal": goal, "property": "envy_freeness", "points": [point] * 2, "lines": [line] * 2, "gap": 0}
        return certificate("frontier", [[1]] * users, [1], **body)

    return largest(make)


def of_powers() -> bytes:
    """A product of two long numbers to high powers; a common divisor of it would be looked for without a stop."""
    n = Numbers(19_000)
    line = {"constant": 0, "slope": 0, "duals": [], "factors": ["9" + n.ratio(), "9" + n.ratio()]}
    point = {"epsilon": 0, "value": 0, "allocation": [[0], [0]], "variables": {}}
    body = {"goal": "nash_welfare", "property": "envy_freeness", "points": [point], "lines": [line], "gap": 0}
    weights = iter((32, 31))
    made = certificate("frontier", [[1]] * 2, [1], ("weight", lambda: next(weights)), **body)
    return json.dumps(made).encode()


def of_tree(types: int) -> bytes:
    """Ends of a tree, and nothing that leads to them; the allocation is efficient and envy-free."""
    own = [[10 if i == j else 1 for j in range(types)] for i in range(types)]
    told = {"allocation": [[int(i == j) for j in range(types)] for i in range(types)], "weights": [1] * types}

    def make(nodes: int) -> Any:
        ends = [{"without": [[i % types, i // types % types]], "duals": [["capacity", 0, 1]]} for i in range(nodes)]
        return certificate("efficient", own, [1] * types, **told, value=10 * types, bound=10 * types, gap=0, nodes=ends)

    return largest(make)


def of_range() -> bytes:
    def make(users: int) -> Any:
        same = {"allocation": [[0]] * users, "value": 0, "duals": []}
        decision = certificate("optimality", [[1]] * users, [1], policy="oef-cooperative", **same)
        more = {"of": decision, "sense": "maximize", "weights": [[1]] * users}
        return {"schema": 1, "certificate": "extreme"} | more | same

    return largest(make)


def of_entitlements(name: str, users: int | None, groups: int | None, gangs: int | None) -> bytes:
    """Users below a chain of groups, and gangs that may run on several of four types; None: as many as fit."""

    def make(many: int) -> Any:
        n, over, waits = (many if each is None else each for each in (users, groups, gangs))
        types, k = [f"{j}" for j in range(4 if waits else 1)], 4 if waits else 1
        chain = [f"g{i + 1}" if i + 1 < over and (i + 1) % 50 else None for i in range(over)]
        pending = [{"user": f"{i % n}", "gpus": i % 7 + 1, "types": types[i % k :]} for i in range(waits)]
        held = [[i % 3 + 1] * k for i in range(n)]
        owed = {
            "groups": [f"g{i}" for i in range(over)],
            "in": [f"g{i % over}" if over else None for i in range(n)] + chain,
            "goods": [],
            "stock": [],
            "guarantee": [[2] * k] * (n + over),
            "cap": [[9] * k] * (n + over),
            "borrow_weight": [1] * (n + over),
            "tier": [0] * (n + over),
            "held": held,
            "fixed": [[0] * k] * n,
            "pending": pending,
        }
        made = certificate("property", [[1] * k] * n, [9 * n] * k, property=name, answer="HOLDS", allocation=held)
        made["market"]["entitlements"] = owed
        return made

    return largest(make)


#: So many users, groups and gangs.
ENTITLED = {"users": (None, 49, 0), "groups": (2, None, 0), "gangs": (None, 0, None), "gangs of one": (1, 0, None)}
OWED = [
    "guarantee_kept",
    "nobody_starves_while_lent",
    "group_fairness",
    "whole_gpu_conservation",
    "guarantee_incentive",
]
FILES: dict[str, Callable[[], bytes]] = {
    "nobody_starves_while_lent, many users": lambda: of_entitlements(OWED[1], *ENTITLED["users"]),
    "lists in lists": lambda: b"[" * 99_000,
    "closed lists in lists": lambda: b"[" * 49_000 + b"]" * 49_000,
    "objects in objects": lambda: b'{"a":' * 19_000,
    "a long integer": lambda: b'{"schema":1,"certificate":' + b"9" * 90_000 + b"}",
    "a power of ten": lambda: b'{"schema":1e1000000000,"certificate":"bound"}',
    "a power of ten in a string": lambda: json.dumps(certificate("envy", [["10e1000000000"]], [1])).encode(),
    "long integers in strings": lambda: json.dumps(certificate("envy", [["9" * 20_000]], ["7" * 20_000] * 3)).encode(),
    "a long float": lambda: b'{"schema":1.' + b"1" * 90_000 + b',"certificate":"bound"}',
    "many keys": lambda: json.dumps({str(i): 0 for i in range(9_000)}).encode(),
    "a long name": lambda: json.dumps(certificate("envy", [[1]], [1]) | {"certificate": "x" * 90_000}).encode(),
    "no UTF-8": lambda: b'{"schema":1,"certificate":"\xff\xfe"}',
    "cut off": lambda: b'{"schema":1,"certificate":"bo',
    "nothing": lambda: b"",
    "zeros": lambda: b"\0" * 50_000,
    "halves of pairs": lambda: json.dumps(["\ud83d" * 6] * 1_500).encode(),
    "range": of_range,
    **{f"frontier of {goal}": (lambda goal=goal: of_frontier(goal)) for goal in ("total_efficiency", "nash_welfare")},
    "powers of long numbers": of_powers,
    **{f"tree of {types} types": (lambda types=types: of_tree(types)) for types in (3, 40)},
    "oef-cooperative, one long weight": lambda: of_one_long_weight("oef-cooperative"),
}
SLOW: dict[str, Callable[[], bytes]] = {
    **{f"{name}, one long weight": (lambda name=name: of_one_long_weight(name)) for name in [*POLICIES][1:]},
    **{f"{p}, {d} digits": (lambda p=p, d=d: of_policy(p, d)) for p in POLICIES for d in (1, 20, 200, 2_000)},
    **{f"{p}, {d} digits": (lambda p=p, d=d: of_property(p, d)) for p in PROPERTIES for d in (1, 20, 200, 2_000)},
    **{f"{p}, {w}": (lambda p=p, w=w: of_entitlements(p, *ENTITLED[w])) for p in OWED for w in ENTITLED},
    **{f"program, {d} digits": (lambda d=d: of_program(d)) for d in (5, 50, 500)},
    **{f"equilibrium, {d} digits": (lambda d=d: of_equilibrium(d)) for d in (5, 50, 500)},
}


#: Runs a command, and prints its exit status, the seconds of the processor and the most memory that it took.
MEASURED = """
import json, resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stderr=subprocess.STDOUT).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss]), file=sys.stderr)
"""


@cache
def written(name: str) -> bytes:
    """Return a file of an attacker, by its name."""
    return (FILES | SLOW)[name]()


def hold(verifier: str, name: str, folder: Path) -> None:
    """Ask a verifier about a file, and hold it to its limits. Seconds are those of the processor."""
    command = VERIFIERS[verifier]
    if not Path(command[-1]).exists():
        pytest.skip("it is not built: make verified")
    path, out = folder / "file.json", folder / "out"
    path.write_bytes(written(name))
    assert path.stat().st_size < MOST_BYTES
    with out.open("wb") as stream:
        # a process begins with the memory of who starts it, and that counts: a small one starts it
        asked = [sys.executable, "-c", MEASURED, *command, str(path)]
        measured = subprocess.run(asked, stdout=stream, stderr=subprocess.PIPE, check=True, text=True)
    code, seconds, kilobytes = json.loads(measured.stderr.splitlines()[-1])
    said = out.read_text()
    # what a market says of entitlements may be so, however long it takes, and so may a property of shares that are said
    # to be more than there is; all other files state what is false
    kind = name.partition(", ")[0]
    may_hold = kind in OWED or (kind in PROPERTIES and "which gives out what is not there" in said)
    assert code in ((0, 1, 2, 4) if may_hold else (1, 2, 4)), said
    assert said.startswith(f"{path}: ")
    assert "Traceback" not in said
    assert seconds <= MOST_SECONDS
    assert kilobytes <= MOST_KILOBYTES


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="processes are not measured here")
@pytest.mark.parametrize("verifier", VERIFIERS)
@pytest.mark.parametrize("name", FILES)
def test_a_small_file_takes_little_whoever_made_it(name: str, verifier: str, tmp_path: Path) -> None:
    hold(verifier, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("verifier", VERIFIERS)
@pytest.mark.parametrize("name", SLOW)
def test_a_small_file_of_long_numbers_takes_little(name: str, verifier: str, tmp_path: Path) -> None:
    hold(verifier, name, tmp_path)
