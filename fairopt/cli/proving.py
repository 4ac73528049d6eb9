"""The commands about proofs: ``check`` decides certificates, ``claims`` shows and recomputes the ledger."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from fairopt.certificates import Certificate
from fairopt.cli import tables
from fairopt.cli.exits import Exit
from fairopt.compare import Row
from fairopt.errors import BadInput, FairoptError, NotSolved
from fairopt.evidence import Piece, certify_bound, evidence, evidence_of_verdicts
from fairopt.ledger import Entry, Finding, Ruling, ledger
from fairopt.policy import Formulated, Policy
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs import verify
from fairopt.properties import MechanismProperty, Property, Verdict


def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Certificates (JSON), or folders of them.")],
) -> None:
    """Decide certificates, as `python proofs/verify.py` does: it is the same program.

    Exit status: 0 all accepted, 1 one is rejected, 2 one cannot be read.
    """
    raise typer.Exit(verify.main([str(file) for file in files]))


def claims(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Rows by id; all by default.")] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Recompute, and fail if a stored verdict no longer follows.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on standard output.")] = False,
    paper: Annotated[str | None, typer.Option(help="Only the rows of one paper.")] = None,
    verdict: Annotated[Ruling | None, typer.Option(help="Only the rows with this verdict.")] = None,
) -> None:
    """Show what the papers claim and what a computation says of it.

    With --run, exit status 1 says that a stored verdict no longer follows, 3 that a row could not be recomputed here.
    """
    rows = [row for row in _named(ledger(), ids) if paper in (None, row.paper) and verdict in (None, row.verdict)]
    if not run:
        if json_:
            print(json.dumps([_json(row) for row in rows], indent=2, ensure_ascii=False))
        else:
            tables.claims(rows, in_full=bool(ids))
        return
    if ids:
        for row in rows:
            if not row.run:
                raise BadInput(f"{row.id} is open", place="claims", remedy=f"It waits for {row.waits_for}")
    status, done = Exit.FINE, []
    try:
        for row, finding, seconds, error in _recomputed([row for row in rows if row.run]):
            follows = finding is not None and row.follows(finding)
            status = max(status, Exit.NOT_SOLVED if finding is None else Exit.FINE if follows else Exit.FAILS)
            done.append(_json(row, finding, seconds, follows, error))
            if not json_:
                tables.recomputed(row, finding, seconds, follows=follows, error=error)
    except KeyboardInterrupt:  # what is recomputed is kept, and the status says that it is not all
        status = Exit.INTERRUPTED
    if json_:
        print(json.dumps(done, indent=2, ensure_ascii=False))
    raise typer.Exit(status)


def write(certificate: Certificate, path: Path) -> None:
    """Write one certificate to a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        certificate.write(path)
    except OSError as error:
        raise BadInput(str(error), place=str(path), remedy="Name a place that can be written to") from error


def write_bound(policy: Policy, market: Market, error: NotSolved, path: Path) -> None:
    """Write what a solution short of the optimum proves: a feasible point, a bound, and the gap between them."""
    solution = error.solution
    if solution is None or solution.x is None or not isinstance(policy, Formulated):
        return
    bound = certify_bound(policy, market, solution)
    write(bound, path)
    print(f"written to {path}: a feasible point, and a bound with a gap of {float(bound.gap):g}", file=sys.stderr)


def write_certificates(rows: list[Row], properties: list[Property | MechanismProperty], folder: Path) -> None:
    """Write the evidence of each row as ``folder/POLICY/WHAT.json``, and say what has none, and why."""
    pieces = ((f"{row.policy.name}/{piece.name}", piece) for row in rows for piece in evidence(row, properties))
    _write_pieces(pieces, folder)


def write_verdicts(
    market: Market, shares: Array, verdicts: Mapping[str, Verdict], properties: list[Property], folder: Path
) -> None:
    """Write the evidence of verdicts on anybody's allocation as ``folder/WHAT.json``."""
    pieces = evidence_of_verdicts(market, shares, verdicts, properties)
    _write_pieces(((piece.name, piece) for piece in pieces), folder)


def _write_pieces(pieces: Iterator[tuple[str, Piece]], folder: Path) -> None:
    written = 0
    for name, piece in pieces:
        if piece.certificate is None:
            print(f"no certificate: {name}: {piece.reason}", file=sys.stderr)
        else:
            write(piece.certificate, folder / f"{name}.json")
            written += 1
    print(f"{written} certificates in {folder}; decide them with: fairopt check {folder}", file=sys.stderr)


def _named(rows: list[Entry], ids: list[str] | None) -> list[Entry]:
    by_id = {row.id: row for row in rows}
    for wanted in ids or []:
        if wanted not in by_id:
            near = get_close_matches(wanted, by_id, 3, 0.4)
            remedy = f"Did you mean {' or '.join(near)}?" if near else "`fairopt claims` lists them"
            raise BadInput(f"there is no claim {wanted!r}", place="claims", remedy=remedy)
    return [by_id[wanted] for wanted in ids] if ids else rows


def _recomputed(rows: list[Entry]) -> Iterator[tuple[Entry, Finding | None, float, str]]:
    with tables.progress(len(rows)) as advance:
        for row in rows:
            try:
                finding, seconds = row.recompute()
                yield row, finding, seconds, ""
            except FairoptError as error:  # one that cannot be recomputed here does not stop the others
                yield row, None, 0.0, str(error)
            advance(row.id)


def _json(
    row: Entry,
    finding: Finding | None = None,
    seconds: float | None = None,
    follows: bool | None = None,
    error: str = "",
) -> dict[str, Any]:
    entry = {
        "id": row.id,
        "paper": row.paper,
        "where": row.where,
        "kind": row.kind,
        "says": row.says,
        "verdict": row.verdict.value,
        "evidence": row.evidence,
        "waits_for": row.waits_for or None,
        "run": row.run or None,
        "seconds": seconds,
    }
    if follows is None:
        return entry
    now = None if finding is None else {"verdict": finding.verdict.value, "evidence": finding.evidence}
    return entry | {"follows": follows, "recomputed": now} | ({"error": error} if error else {})
