"""Hashes of what is exact in the golden master: exit codes, exact utilities and objectives, answers, who ran where.

    .venv/bin/python tests/golden/hashes.py check FOLDER       # against tests/golden/hashes.json; exit status 1
    .venv/bin/python tests/golden/hashes.py write FOLDER       # where behaviour was changed on purpose: see below

Each command of each problem has two hashes, "FIXED:CHOSEN". FIXED is of what no solver's choice can change: the exit
code, the exact objective, utilities that are unique, verdicts on allocations that anybody gave. CHOSEN is of all that
is exact, so that another choice among several optima shows, too.

When a behaviour is changed on purpose: observe into a new folder, look at every difference with `compare.py`, say in
the commit what changed and why, and write the hashes again from the new folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from observe import read

# sums of fractions have more digits than Python reads by default
sys.set_int_max_str_digits(0)
STORED = Path(__file__).with_name("hashes.json")
_FRACTION = re.compile(r"^(-?\d+)/(\d+)$")
#: A fraction of a larger denominator may be a rounded irrational number, whose last digits are the processor's.
LARGE = 10**9


def hashed(data: Mapping[str, Any]) -> str:
    """Return the hashes of a problem's commands, in order, as they are stored."""
    pairs = (exact_parts(each) for each in data["observations"])
    return " ".join(f"{_hash(fixed)}:{_hash(chosen)}" for fixed, chosen in pairs)


def _hash(data: Any) -> str:
    text = json.dumps(_steady(data), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def _steady(data: Any) -> Any:
    """Return data without the digits that a processor may change."""
    if isinstance(data, dict):
        return {key: _steady(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_steady(each) for each in data]
    if isinstance(data, float):
        return _rounded(data)
    found = _FRACTION.match(data) if isinstance(data, str) else None
    if found and int(found[2]) > LARGE:
        return _rounded(float(Fraction(data)))
    return data


def _rounded(number: float) -> str:
    return "0" if abs(number) < 1e-9 else f"{number:.6g}"


def exact_parts(observation: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what is fixed in an observation, and all in it that is exact."""
    words, out = observation["arguments"], observation["out"]
    fixed: dict[str, Any] = {"exit": observation["exit"]}
    chosen = dict(fixed)
    if not isinstance(out, dict):
        if words[:1] == ["check"]:
            chosen["accepted"] = sum(": accepted" in line for line in out)
        return fixed, chosen
    more_fixed, more_chosen = _OF[words[0]](words, out)
    return fixed | more_fixed, chosen | more_fixed | more_chosen


def _of(data: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: data.get(key) for key in keys}


def _solve(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    fixed = _of(out, "status", "users", "types")
    if not {"--exact", "--certificate"} & {*words}:
        return fixed, {}
    fixed |= _of(out, "objective", "unique", "unique_utilities")
    if out.get("unique_utilities") is not False:
        fixed |= _of(out, "utilities")
    if out.get("unique") is not False:
        fixed |= _of(out, "allocation")
    return fixed, _of(out, "utilities", "allocation")


def _compare(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    fixed, chosen = {}, {}
    if "means" in out:
        return {"means": out["means"]}, {}
    if "--cluster" in words:
        return {"measures": {name: _measured(row) for name, row in out["policies"].items()}}, {}
    for name, row in out["policies"].items():
        row = {"properties": {}, **row}
        exact = "--floats" not in words and any(each.get("exact") for each in row["properties"].values())
        answers = {key: _answers(verdict) for key, verdict in row["properties"].items()}
        chosen[name] = {"answers": answers, **(_of(row, "objective", "utilities", "unique") if exact else {})}
        fixed[name] = _of(row, "status", "users", "types") | {
            key: {"every": over["every"]["answer"], "some": over["some"]["answer"]}
            for key, verdict in row["properties"].items()
            if (over := verdict.get("by_optimum"))
        }
        if exact:
            fixed[name] |= _of(row, "objective", "unique", "unique_utilities")
        if exact and row.get("unique_utilities") is not False:
            fixed[name] |= _of(row, "utilities")
        if row.get("unique") is True:
            fixed[name]["answers"] = {key: each for key, each in answers.items() if key != "strategy_proofness"}
    return fixed, {"chosen": chosen}


def _answers(verdict: Mapping[str, Any]) -> Any:
    kinds = verdict.get("by_misreport")
    return {key: each["answer"] for key, each in kinds.items()} if kinds else verdict["answer"]


def _verify(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    if "accepted" in out:
        answers = {key: each["answer"] for key, each in out["properties"].items()}
        return _of(out, "accepted") | {"violations": len(out["violations"]), "properties": answers}, {}
    exact = bool({"--exact", "--certificates"} & {*words})
    asked = ("answer", "exact", "margin") if exact else ("answer", "exact")
    return {key: _of(each, *asked) for key, each in out["properties"].items()}, {}


def _lie(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {}, _of(out, "found") | {"misreport": out.get("misreport")}


def _run(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    exact = "--floats" not in words
    told = ("job", "spots", "types", "completed", "lost", *(("begin", "end", "setup", "progress") if exact else ()))
    rounds = [
        _of(each, "index", "waiting", "down")
        | {"ran": [_of(ran, *told) for ran in each["ran"]], "misfits": each["unschedulable"]}
        for each in out["rounds"]
    ]
    return {}, {"rounds": rounds, "outcome": _of(out["outcome"], "complete")}


def _schedule(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    optimal = {"offline-optimum", "packing"} & {*words}
    told = _of(out, "schedules", "revenue", "gains", "unscheduled", "payments", "admissions")
    if not optimal:
        return {}, told
    # a bound and a revenue within a solver's tolerance of each other: the plan among equal ones is its choice
    return _of(out, "revenue"), told


def differing(found: Mapping[str, Mapping[str, Any]], stored: Mapping[str, str]) -> list[str]:
    """Return a line for each command whose exact parts are not what the stored hashes say."""
    lines = []
    for name, data in found.items():
        ours, theirs = hashed(data).split(), stored.get(name, "").split()
        if len(ours) != len(theirs):
            lines.append(f"{name}: {len(ours)} commands, and {len(theirs)} are stored")
            continue
        for each, now, before in zip(data["observations"], ours, theirs, strict=True):
            if now != before:
                kept = now.split(":")[0] == before.split(":")[0]
                what = "another choice among optima, or of a heuristic" if kept else "what no choice can change"
                lines.append(f"{name}: fairopt {' '.join(each['arguments'])}: {what}")
    return lines


def _measured(row: Any) -> Any:
    """Return what a row says of a run, without what deciding took."""
    if isinstance(row, dict):
        return {key: _measured(value) for key, value in row.items() if "seconds" not in key and "second" not in key}
    return row


def _audit(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    said = ("name", "footing", "weight", "priority", "types", "goods")
    stands = {kind: [_of(each, *said) for each in out[kind]] for kind in ("users", "groups")}
    fixed = _of(out, "owed_by", "types", "gangs", "counts", "violated") | stands
    fixed |= {key: len(out[key]) for key in ("reasons", "broken_guarantees", "broken_caps")}
    verdicts = out.get("verdicts", {})
    return fixed | {"answers": {key: _of(each, "answer", "margin") for key, each in verdicts.items()}}, {}


def _explain(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return _of(out, "name", "kind", "group", "footing", "types", "goods") | {"mends": len(out["mends"])}, {}


def _whatif(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    if "before" not in out:  # --emit: objects of the scheduler
        return {"emitted": out}, {}
    fixed = {moment: _audit(words, out[moment])[0] for moment in ("before", "after")}
    sides = {key: {side: each[side]["answer"] for side in each} for key, each in out["verdicts"].items()}
    return fixed | _of(out, "settings", "implied") | {"answers": sides}, {"given": out["given"]}


def _import(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return _of(out, "kind", "holds"), {}


def _frontier(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    ends = [_of(each, "goal", "property", "exact") for each in out["curves"]]
    rows = {each["policy"]: _of(each, "values", "epsilons") for each in out["policies"] if each["exact"]}
    return {"curves": ends}, {"policies": rows}


def _incentives(words: list[str], out: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"policies": sorted(out["policies"])}, {}


#: What is exact in the JSON of each command.
_OF = {
    "solve": _solve, "compare": _compare, "verify": _verify, "lie": _lie, "run": _run, "schedule": _schedule,
    "audit": _audit, "explain": _explain, "whatif": _whatif, "import": _import, "frontier": _frontier,
    "incentives": _incentives,
}  # fmt: skip


def main() -> None:
    """Check a folder against the stored hashes, or store its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["check", "write"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the stored hashes of problems that are not there")
    asked = parser.parse_args()
    found = read(asked.folder)
    if asked.what == "write":
        stored = json.loads(STORED.read_text(encoding="utf-8")) if asked.keep else {}
        stored = dict(sorted({**stored, **{name: hashed(found[name]) for name in found}}.items()))
        STORED.write_text(json.dumps(stored, indent=0) + "\n", encoding="utf-8")
        print(f"{len(stored)} problems in {STORED}")
        return
    lines = differing(found, json.loads(STORED.read_text(encoding="utf-8")))
    print("\n".join([*lines, f"{len(lines)} commands of {len(found)} problems differ"]))
    raise SystemExit(bool(lines))


if __name__ == "__main__":
    main()
