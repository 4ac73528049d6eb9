"""``python -m fairopt.proofs.bounded``: decide, print a line for each decision, and keep what is done."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from fairopt.proofs.bounded.catalogue import CLAIMS, BoundedClaim, Size
from fairopt.proofs.bounded.decisions import BoundedDecision
from fairopt.proofs.bounded.solver import Limits
from fairopt.proofs.bounded.store import as_json, size_name, stored, table, write

HERE = Path(__file__).parent


def main() -> None:
    """Decide the claims that were asked for, one after another; Ctrl-C keeps those that are decided."""
    ask = argparse.ArgumentParser(prog="python -m fairopt.proofs.bounded", description=__doc__)
    ask.add_argument("pattern", nargs="?", default="", help="part of the name of the claims to decide")
    ask.add_argument("--slow", action="store_true", help="also the sizes that take long")
    ask.add_argument("--size", help="only this size, such as 3x2 or 2xk, quick or slow")
    ask.add_argument("--seconds", type=float, default=60, help="for one decision (default 60)")
    ask.add_argument("--write", action="store_true", help="store the outcomes in decisions.json and README.md")
    given = ask.parse_args()
    limits = Limits(total=given.seconds)
    jobs = [(claim, size) for claim in CLAIMS if given.pattern in claim.name for size in _sizes(claim, given)]
    for number, (claim, size) in enumerate(jobs, start=1):
        print(f"[{number}/{len(jobs)}] {claim.name} {size_name(size)} ...", end=" ", flush=True)
        decision = claim.run(*size, limits)
        print(_line(decision), flush=True)
        if given.write:
            write(HERE, claim, size, decision)
    if given.write:
        print(table(stored(HERE)))


def _sizes(claim: BoundedClaim, given: argparse.Namespace) -> tuple[Size, ...]:
    if given.size:
        return tuple(size for size in (*claim.quick, *claim.slow) if size_name(size) == given.size)
    return (*claim.quick, *claim.slow) if given.slow else claim.quick


def _line(decision: BoundedDecision) -> str:
    market = "" if decision.counterexample is None else json.dumps(as_json(decision)["counterexample"]["speedup"])
    left = f", {decision.open} open" if decision.open else ""
    effort = f"({decision.queries} queries{left}, {decision.seconds:.1f} s)"
    return " ".join(part for part in (decision.answer, effort, market, decision.evidence) if part)


if __name__ == "__main__":
    main()
