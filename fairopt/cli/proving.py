"""The commands about proofs: ``check`` decides certificates, ``claims`` shows and recomputes the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Annotated, Any, Literal

import typer

from fairopt.cli import claim_tables, tables, verified
from fairopt.cli.exits import Exit
from fairopt.cli.given import input_file
from fairopt.cli.listing import AsJson, print_json
from fairopt.errors import BadInput, FairoptError, NotInstalled, require
from fairopt.problem import exact
from fairopt.proofs import verify
from fairopt.proofs.ledger.entries import Entry, Finding, Ruling, ledger
from fairopt.proofs.verifier import front
from fairopt.report import SCHEMA_KEY, Key, ResultForm, keys_of, listed

CHECKED = ResultForm(
    "What was decided of a file.",
    Key("file", str, "The file."),
    Key(
        "status",
        Literal["accepted", "rejected", "unreadable", "not covered"],
        "The decision; not covered is a kind that the verified program does not know.",
    ),
    Key("said", list[str], "What was checked, or what is wrong."),
    name="checked",
)
DECIDED = ResultForm("What was decided.", SCHEMA_KEY, Key("files", listed(CHECKED), "Of each file."))
CLAIM = ResultForm(
    "A paper's claim.",
    SCHEMA_KEY,
    *keys_of(str, "id paper where kind says evidence", "As in the ledger."),
    Key(
        "table",
        listed(dict),
        "What is printed beside what a study found: claimed, found, interval, holds.",
        lambda row: [each._asdict() for each in row.table],
    ),
    Key("verdict", Ruling, "What a computation says of it."),
    Key("waits_for", str | None, "What is missing for a verdict.", lambda row: row.waits_for or None),
    Key(
        "run",
        str | None,
        "The function that computes it.",
        lambda row: f"{row.package}.{row.run}" if row.run else None,
    ),
    Key("seconds", float | None, "With --run: what it took.", lambda _: None),
    beside=[
        Key("follows", bool, "With --run: whether the stored verdict follows."),
        Key("recomputed", dict | None, "With --run: what was computed."),
        Key("error", str, "With --run: what stopped it."),
    ],
    name="claim",
)


def check(
    files: Annotated[list[Path], input_file("FILE", "Certificates, runs or schedules (JSON), or folders of them.")],
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="Error allowed for numbers in floats; by default 0 in runs, 1e-9 in schedules."
        ),
    ] = None,
    verified_: Annotated[
        bool, typer.Option("--verified", help="Ask the verifier that Coq proves, which `make verified` builds.")
    ] = False,
    json_: AsJson = False,
) -> None:
    """Check certificates, recorded runs and schedules with the program `proofs/verify.py`.

    The contents of a file say which of the three it is. Exit status: 0 all accepted, 1 one rejected, 2 one cannot be
    read. With --verified also 4: none of these, and one is of a kind that this program does not know; and 3: it is
    not built.
    """
    if verified_:
        verified.refuse_tolerance(tolerance)
        _check_verified(files, as_json=json_)
    slack = None if tolerance is None else exact(tolerance, "--tolerance")
    require(slack is None or slack >= 0, tolerance, "--tolerance", "Give a number like 1e-6, at least 0")
    worst, found = front.FINE, []
    for given, path in ((named, each) for named in files for each in front.files(named)):
        with tables.working(f"checking {path}"):
            status, said = front.report(path, slack, given)
        worst = max(worst, status)
        found.append({"file": str(path), "status": _STATUSES[status], "said": said})
        for line in () if json_ else said:
            print(front.printed(path, line), flush=True)
    if json_:
        print_json(DECIDED.json({}, files=found))
    raise typer.Exit(worst)


def _check_verified(files: list[Path], *, as_json: bool) -> None:
    """Print what the verifier that Coq proves says of files, of folders all that end like certificates, and exit."""
    paths = [(path, given, front.opens(path, given)) for given in files for path in front.files(given)]
    answers = verified.decide([path for path, _, opens in paths if opens])
    statuses, found = [], []
    for path, given, opens in paths:
        status, said = next(answers) if opens else front.report(path, given=given)
        statuses.append(status)
        found.append({"file": str(path), "status": _STATUSES[status], "said": said})
        for line in () if as_json else said:
            print(front.printed(path, line), flush=True)
    if as_json:
        print_json(DECIDED.json({}, files=found))
    raise typer.Exit(verified.worst(statuses))


_STATUSES: Mapping[int, str] = MappingProxyType(
    {front.FINE: "accepted", front.REJECTED: "rejected", front.UNREADABLE: "unreadable", 4: "not covered"}
)


def claims(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Rows by id; all by default.")] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Compute again, and fail if a stored verdict is not confirmed.")
    ] = False,
    json_: AsJson = False,
    paper: Annotated[
        str | None, typer.Option(metavar="PAPER", help="Only the rows of one paper, by its short name: oef, fft ...")
    ] = None,
    verdict: Annotated[
        Ruling | None,
        typer.Option(
            metavar="VERDICT", help=f"Only the rows with this verdict: {', '.join(each.value for each in Ruling)}."
        ),
    ] = None,
) -> None:
    """Show claims of papers, and findings of our own (--paper own), with the verdict that a computation gives.

    With --run, exit status 1: a stored verdict is not confirmed; 3: a row could not be computed here.
    """
    rows = _asked(ledger(), ids, paper, verdict, to_run=run)
    if not run:
        if json_:
            print_json(CLAIM.list(rows))
        else:
            claim_tables.claims(rows, in_full=bool(ids))
        return
    status, done = Exit.FINE, []
    try:
        for row, outcome, seconds in _recomputed(rows):
            follows = isinstance(outcome, Finding) and row.follows(outcome)
            failed = Exit.NOT_SOLVED if isinstance(outcome, NotInstalled) else Exit.FAILS
            status = status if follows else max(status, failed)
            done.append(CLAIM.json(row, seconds=seconds, follows=follows, **_recomputed_json(outcome)))
            if not json_:
                claim_tables.recomputed(row, outcome, seconds, follows=follows)
    except KeyboardInterrupt:  # results so far are kept; the exit status says that they are not complete
        status = Exit.INTERRUPTED
    if json_:
        print_json(done)
    raise typer.Exit(status)


def _asked(
    rows: list[Entry], ids: list[str] | None, paper: str | None, verdict: Ruling | None, *, to_run: bool
) -> list[Entry]:
    """Return the requested rows, each once; `BadInput` if there are none, or one that is to run is open."""
    by_id = {row.id: row for row in rows}
    for wanted in ids or []:
        if wanted not in by_id:
            near = get_close_matches(wanted, by_id, 3, 0.4)
            remedy = f"Did you mean {' or '.join(near)}?" if near else "`fairopt claims` lists them"
            raise BadInput(f"there is no claim {wanted!r}", place="claims", remedy=remedy)
        if to_run and not by_id[wanted].run:
            raise BadInput(f"{wanted} is open", place="claims", remedy=f"It waits for {by_id[wanted].waits_for}")
    papers = list(dict.fromkeys(row.paper for row in rows))
    if paper is not None and paper not in papers:
        raise BadInput(f"got {paper!r}", place="--paper", remedy=f"The papers are {', '.join(papers)}")
    chosen = [by_id[wanted] for wanted in dict.fromkeys(ids)] if ids else rows
    fit = [row for row in chosen if paper in (None, row.paper) and verdict in (None, row.verdict)]
    fit = [row for row in fit if row.run] if to_run else fit
    if not fit:
        remedy = "Leave an id, --paper or --verdict out"
        raise BadInput("no claim fits" + (" that could be recomputed" if to_run else ""), place="claims", remedy=remedy)
    return fit


def _recomputed(rows: list[Entry]) -> Iterator[tuple[Entry, Finding | Exception, float]]:
    with tables.progress(len(rows)) as advance:
        for row in rows:
            advance(row.id)
            begun = perf_counter()
            try:
                yield row, *row.recompute()
            except (FairoptError, verify.Rejected) as error:  # an error in one row does not stop the others
                yield row, error, perf_counter() - begun


def _recomputed_json(outcome: Finding | Exception) -> dict[str, Any]:
    if isinstance(outcome, Finding):
        return {"recomputed": {"verdict": outcome.verdict.value, "evidence": outcome.evidence}}
    return {"recomputed": None, "error": str(outcome)}
