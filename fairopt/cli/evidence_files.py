"""Evidence as files, for `fairopt check`; programs as files, for any solver; and graphs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairopt import discovery
from fairopt.cli import tables
from fairopt.cli.data import WRITTEN
from fairopt.cli.listing import print_json
from fairopt.errors import BadInput, NotCapable, NotInstalled, NotSolved
from fairopt.policy import Formulated, Policy
from fairopt.problem import Market
from fairopt.problem.files.storage import naming, require_place, write_text
from fairopt.program import Array
from fairopt.properties import AllocationProperty, Property, Verdict
from fairopt.replacing import writable

if TYPE_CHECKING:
    from fairopt.certificates import Certificate
    from fairopt.compare import Row
    from fairopt.policy import Allocation
    from fairopt.report import Statement


def require_empty(folder: Path | None) -> None:
    """Refuse a folder that is not empty, before anything is computed: old evidence could be taken for new."""
    if folder is None or not folder.exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        kind = "is not empty" if folder.is_dir() else "is no folder"
        raise BadInput(f"{folder} {kind}", place="--certificates", remedy="Name a new folder, or an empty one")


def write(certificate: Certificate, path: Path) -> None:
    """Write one certificate to a file."""
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    certificate.write(path)


def write_bound(policy: Policy, market: Market, error: NotSolved, path: Path) -> None:
    """Write the certificate of a solution that is not optimal: a feasible point and a bound, or that there is none."""
    solution = error.solution
    nothing = solution is None or (solution.x is None and solution.farkas is None)
    if solution is None or nothing or not isinstance(policy, Formulated):
        return
    from fairopt.certificates import INFEASIBILITY
    from fairopt.evidence import certify_bound  # here, so that help comes sooner

    found = certify_bound(policy, market, solution)
    write(found, path)
    says = "that no point satisfies all constraints"
    if found.kind != INFEASIBILITY:
        says = f"a feasible point, and a bound with a gap of {float(found.gap):g}"
    print(f"written to {path}: {says}", file=sys.stderr)


def write_certificates(rows: list[Row[Allocation]], properties: list[Property], folder: Path) -> None:
    """Write the evidence of each row as ``folder/POLICY/WHAT.json``, and say what has none, and why."""
    from fairopt.evidence import evidence  # here, so that help comes sooner

    items = ((f"{row.policy.name}/{item.name}", item) for row in rows for item in evidence(row, properties))
    write_items(items, folder)


def write_verdicts(
    market: Market, shares: Array, verdicts: Mapping[str, Verdict], properties: list[AllocationProperty], folder: Path
) -> None:
    """Write the evidence of verdicts on an allocation as ``folder/WHAT.json``."""
    from fairopt.evidence import evidence_of_verdicts  # here, so that help comes sooner

    items = evidence_of_verdicts(market, shares, verdicts, properties)
    write_items(((item.name, item) for item in items), folder)


def write_items(items: Iterator[tuple[str, Statement]], folder: Path) -> None:
    """Write items as ``folder/NAME.json``, and say what has none, and why."""
    written = 0
    for name, item in items:
        if item.certificate is None:
            print(f"no certificate: {name}: {item.reason}", file=sys.stderr)
        else:
            write(item.certificate, folder / f"{name}.json")
            written += 1
    then = f" in {folder}; decide them with: fairopt check {folder}" if written else ": nothing was written"
    print(f"{written} certificates{then}", file=sys.stderr)


# -- graphs ----------------------------------------------------------------------------------------------------------
GraphML = Annotated[
    Path | None, typer.Option("--graphml", metavar="FILE", help="Write here who envies whom, and who could trade.")
]


def write_graphs(market: Market, shares: Array, path: Path) -> None:
    """Write who envies whom and who could trade with whom as GraphML."""
    from fairopt.properties.graphs import as_graphml, envy_graph, trade_graph  # here, so that help comes sooner

    with tables.working(f"writing {path}"), naming(place="--graphml"):
        graphs = {"envy": envy_graph(market, shares), "trade": trade_graph(market, shares)}
        write_text(path, as_graphml(graphs))


def trades_in_words(market: Market, shares: Array) -> str:
    """Return a cycle of trades by which all gain that take part; "" where none is found, or networkx is missing."""
    from fairopt.properties.graphs import trade_cycle  # here, so that help comes sooner

    with suppress(NotInstalled):
        return ", and ".join(map(str, trade_cycle(market, shares)))
    return ""


# -- programs --------------------------------------------------------------------------------------------------------
Write = Annotated[
    Path | None,
    typer.Option(
        "--write",
        metavar="FILE",
        help="Write the program that a solver would get to this file, .mps or .lp, and solve nothing.",
    ),
]


def write_program(policy: Policy, decide: Callable[[Any], object], path: Path, json_: bool) -> None:
    """Write the first program that a policy asks the solver that ``decide`` takes, and say what the file holds.

    Errors: `NotCapable` for a policy that is a rule and asks none.
    """
    from fairopt.backends.first_program import FirstProgram, written  # here, since few ask for it

    require_place(path, "--write", (".lp", ".mps"))
    if not policy.has_program:
        others = [each.name for each in discovery.policies(policy.problem) if each.has_program]
        remedy = f"These ask a solver for one: {', '.join(others)}"
        raise NotCapable(f"{policy.name} is a rule and not a program, so --write has nothing to write. {remedy}")
    with tables.working(f"writing {path}"):
        program = FirstProgram.of(decide, policy.name)
        holds = written(program, path)
    only = type(policy).decide is Formulated.decide
    kind = f"the {'' if only else 'first '}program that {policy.name} asks a solver"
    if json_:
        return print_json(WRITTEN.json({}, file=str(path), kind="program", holds=holds))
    tables.say(f"{path}: {kind}: {holds}.")
