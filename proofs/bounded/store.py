"""Decisions in ``decisions.json``, and the table in ``README.md`` that is written from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairopt.problem.files.storage import write_text
from fairopt.proofs.bounded.catalogue import CLAIMS, BoundedClaim, Size
from fairopt.proofs.bounded.decisions import UNKNOWN, BoundedDecision

BEGIN, END = "<!-- begin: written by python -m fairopt.proofs.bounded --write -->", "<!-- end -->"
SCHEMA = 1


def size_name(size: Size) -> str:
    """Return "n x k" as it is stored; k is a letter where the decision is for any number of types."""
    return f"{size[0]}x{size[1] or 'k'}"


def as_json(decision: BoundedDecision) -> dict[str, Any]:
    """Return what is stored of a decision; numbers of the counterexample are strings, exact."""
    market = decision.counterexample
    return {
        "claim": decision.claim,
        "size": decision.size,
        "answer": decision.answer,
        "counterexample": market
        and {
            "speedup": [[str(value) for value in row] for row in market.speedup],
            "capacity": [str(value) for value in market.capacity],
        },
        "evidence": decision.evidence,
        "seconds": decision.seconds,
        "queries": decision.queries,
        "open": decision.open,
    }


def stored(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the stored decisions by claim and size."""
    path = folder / "decisions.json"
    if not path.exists():
        return {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["schema"] == SCHEMA
    return {(entry["claim"], entry["size"]): entry for entry in kept["decisions"]}


def write(folder: Path, claim: BoundedClaim, size: Size, decision: BoundedDecision) -> None:
    """Store one decision, and write the table of the README again."""
    kept = stored(folder)
    kept[claim.name, size_name(size)] = as_json(decision) | {"says": claim.says}
    order = [(claim.name, size_name(size)) for claim in CLAIMS for size in (*claim.quick, *claim.slow)]
    ordered = [kept[key] for key in order if key in kept]  # what the catalogue no longer has is dropped
    text = json.dumps({"schema": SCHEMA, "decisions": ordered}, indent=1)
    write_text(folder / "decisions.json", text + "\n")
    readme = folder / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    write_text(readme, f"{before}{BEGIN}\n{table(stored(folder))}\n{END}{after}")


def table(kept: dict[tuple[str, str], dict[str, Any]]) -> str:
    """Return the decisions as a table in Markdown."""
    lines = ["| claim | size | answer | seconds | counterexample (one GPU of each type) |", "|---|---|---|---|---|"]
    for claim in CLAIMS:
        for size in (*claim.quick, *claim.slow):
            entry = kept.get((claim.name, size_name(size)))
            if entry is None:
                continue
            market = entry["counterexample"]
            rows = ", ".join(f"({', '.join(row)})" for row in market["speedup"]) if market else ""
            shown = ": ".join(part for part in (rows, entry["evidence"]) if part)
            answer = f"{entry['answer']} ({entry['open']} open)" if entry["open"] else entry["answer"]
            if entry["answer"] == UNKNOWN and size in claim.proved:
                answer += f"; Coq: `{claim.proved[size]}`"
            lines.append(f"| `{claim.name}` | {entry['size']} | {answer} | {entry['seconds']:.1f} | {shown} |")
    return "\n".join(lines)
