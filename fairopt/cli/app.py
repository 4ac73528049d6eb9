"""The commands of ``fairopt``.

Exit status: 0 fine; 1 a checked property fails (``verify``); 2 bad input; 3 not solved, not installed or not capable.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fairopt import discovery
from fairopt.cli import as_json, benching, lying, proving, round_tables, running, scheduling, tables
from fairopt.cli.exits import Exit
from fairopt.compare import Row, compare, verify
from fairopt.errors import BadInput, FairoptError, NotCapable, NotSolved
from fairopt.metrics import metrics
from fairopt.policy import Policy, allocate, uniqueness
from fairopt.problem import Market, Queue
from fairopt.problem import exact as rational
from fairopt.problem.batch import Batch
from fairopt.problem.files.allocation import read_allocation
from fairopt.problem.files.market import read_market
from fairopt.properties import TOLERANCE, Answer, Effort, Feasibility, MechanismProperty, Property

T = TypeVar("T")

app = typer.Typer(
    name="fairopt",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


MarketFile = Annotated[Path, typer.Argument(metavar="MARKET", help="A market file: .toml, .json or .csv.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on standard output.")]
Normalise = Annotated[
    bool, typer.Option("--normalise", help="Measure each user in its throughput on the slowest type first.")
]
Seed = Annotated[int, typer.Option(help="Seed of the search for misreports that pay.", min=0)]


def _version(asked: bool) -> None:
    if asked:
        print(f"fairopt {version('fairopt')}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Share GPUs of several types among users, and say which fairness properties the sharing has."""


@app.command("solve")
def solve_command(
    market: MarketFile,
    policy: Annotated[str, typer.Option(help="A policy by name; `fairopt policies` lists them.")],
    backend: Annotated[str, typer.Option(help="A back end, or a method of the policy, by name; or auto.")] = "auto",
    json_: AsJson = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Decide in rational arithmetic; numbers print as p/q.")
    ] = False,
    canonical: Annotated[
        bool, typer.Option("--canonical", help="Where optima differ, take the lexicographic one.")
    ] = False,
    normalise: Normalise = False,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for the solver.")] = None,
    tolerance: Annotated[float | None, typer.Option(help="The solver's feasibility tolerance.")] = None,
    seed: Annotated[int | None, typer.Option(help="The solver's random seed.")] = None,
    threads: Annotated[int | None, typer.Option(help="Most threads for the solver.")] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the proof here, for `fairopt check FILE`; implies --exact."),
    ] = None,
) -> None:
    """Compute one policy's allocation."""
    exact = exact or certificate is not None
    proving.require_place(certificate)
    problem = _read(market, normalise)
    rule = discovery.policy(policy, Market)
    solver = discovery.solver(rule, backend)
    if exact and solver is not None and solver.number is float:
        raise NotCapable(
            f"--{'exact' if certificate is None else 'certificate'} asks for rational numbers, which {backend!r} does "
            "not compute in; leave --backend out, or name exact"
        )
    try:
        decision = allocate(
            rule,
            problem,
            solver,
            canonical=canonical,
            exact=exact,
            time_limit=time_limit,
            tolerance=tolerance,
            seed=seed,
            threads=threads,
        )
    except NotSolved as error:
        if json_:
            _print_json(as_json.unsolved(rule, problem, error))
        if certificate is not None:
            proving.write_bound(rule, problem, error, certificate)
        raise
    if exact and not decision.exact:
        asked = "--exact" if certificate is None else "--certificate"
        raise NotCapable(f"{policy} has no exact allocation on this market; leave {asked} out for one in floats")
    unique = uniqueness(rule, decision)
    if json_:
        _print_json(as_json.decision(decision, unique, exact=exact))
    else:
        tables.decision(decision, unique)
    if certificate is not None:
        proving.write(rule.certify(decision), certificate)


@app.command("verify")
def verify_command(
    market: Annotated[Path, typer.Argument(metavar="MARKET", help="A market file; or a batch file, .toml or .json.")],
    allocation: Annotated[
        Path,
        typer.Argument(
            metavar="ALLOCATION",
            help="An allocation by anyone, .csv or .json; of a batch, a schedule by anyone, .json.",
        ),
    ],
    property_names: Annotated[
        list[str] | None, typer.Option("--property", help="A property by name; all by default. May be repeated.")
    ] = None,
    json_: AsJson = False,
    tolerance: Annotated[float, typer.Option(help="Relative slack that counts as none.", min=0)] = TOLERANCE,
    exact: Annotated[bool, typer.Option("--exact", help="No tolerance, and numbers print as p/q.")] = False,
    certificates: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the evidence here, for `fairopt check DIR`; implies --exact."),
    ] = None,
) -> None:
    """Check an allocation, or a schedule, made by anyone; exit status 1 if a property fails, or a constraint."""
    slack = Fraction(0) if exact or certificates is not None else rational(tolerance, "--tolerance")
    if scheduling.is_batch(market):
        refused = {"--property": property_names, "--certificates": certificates}
        return scheduling.verify(market, allocation, json_=json_, tolerance=slack, refused=refused)
    problem = _read(market, False)
    shares = read_allocation(allocation, problem)
    chosen = _properties(property_names)
    for each in chosen if property_names else ():
        if isinstance(each, MechanismProperty):
            raise BadInput(
                f"{each.name} is a property of a policy, not of one allocation",
                place="--property",
                remedy="Ask `fairopt compare MARKET --policy NAME`, which searches for misreports",
            )
    of_allocations = [each for each in chosen if isinstance(each, Property)]
    exact = exact or certificates is not None
    proving.require_empty(certificates)
    verdicts = verify(problem, shares, of_allocations, tolerance=slack)
    fits = Feasibility().check(problem, shares, tolerance=slack)
    if fits.answer is Answer.FAILS:  # nothing else means anything if GPUs are given out twice
        verdicts = {Feasibility.name: fits, **verdicts}
    numbers = metrics(problem, shares)
    if json_:
        _print_json(as_json.verdicts(verdicts, numbers, problem, exact=exact))
    else:
        tables.verdicts(verdicts, numbers, problem)
    if certificates is not None:
        proving.write_verdicts(problem, shares, verdicts, [*of_allocations, Feasibility()], certificates)
    if any(verdict.answer is Answer.FAILS for verdict in verdicts.values()):
        raise typer.Exit(Exit.FAILS)


@app.command("compare")
def compare_command(
    market: MarketFile,
    policy_names: Annotated[
        list[str] | None, typer.Option("--policy", help="A policy by name; all by default. May be repeated.")
    ] = None,
    property_names: Annotated[
        list[str] | None, typer.Option("--property", help="A property by name; all by default. May be repeated.")
    ] = None,
    json_: AsJson = False,
    normalise: Normalise = False,
    evaluations: Annotated[int, typer.Option(help="Misreports to try for each policy.", min=1)] = Effort.evaluations,
    seed: Seed = 0,
    seconds: Annotated[float, typer.Option(help="Most seconds to search for misreports, for each policy.")] = 60.0,
    every_optimum: Annotated[
        bool, typer.Option("--every-optimum", help="Where optima differ, say what holds for some and for every one.")
    ] = False,
    floats: Annotated[bool, typer.Option("--floats", help="Decide in floats, within a tolerance: faster.")] = False,
    certificates: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the evidence here, for `fairopt check DIR`.")
    ] = None,
) -> None:
    """Compute every policy's allocation and say which properties hold, by how much, and what shows it.

    The table is the answer, whatever it says: the exit status is 3 if a policy could not be computed, else 0.
    """
    problem = _read(market, normalise)
    proving.require_empty(certificates)
    policies = _policies(policy_names, Market)
    properties = _properties(property_names)
    effort = Effort(evaluations=evaluations, seed=seed, seconds=seconds)
    rows: list[Row] = []
    interrupted = False
    try:
        with tables.progress(len(policies)) as advance:
            for row in compare(
                problem, policies, properties, effort=effort, exact=not floats, every_optimum=every_optimum
            ):
                rows.append(row)
                advance(row.policy.name)
    except KeyboardInterrupt:  # what is computed is kept, and the status says that it is not all
        interrupted = True
    if json_:
        _print_json(as_json.table(rows, problem))
    else:
        tables.table(rows, problem, properties)
    if certificates is not None:
        proving.write_certificates(rows, properties, certificates)
    if interrupted:
        print(f"interrupted: {len(rows)} of {len(policies)} policies done", file=sys.stderr)
        raise typer.Exit(Exit.INTERRUPTED)
    if any(row.error is not None for row in rows):
        raise typer.Exit(Exit.NOT_SOLVED)


@app.command("policies")
def policies_command(json_: AsJson = False) -> None:
    """List the policies that are installed and what each claims: of shares (`solve`), rounds (`run`), `schedule`s."""
    listed, rounds, schedules = (_policies(None, problem) for problem in (Market, Queue, Batch))
    if json_:
        _print_json(as_json.policies([*listed, *rounds, *schedules]))
    else:
        tables.policies(listed)
        round_tables.policies(rounds, "rounds")
        round_tables.policies(schedules, "schedules")


@app.command("backends")
def backends_command(json_: AsJson = False) -> None:
    """List the back ends, what each can do, and whether it is available here."""
    listed = _chosen(None, discovery.BACKENDS, lambda name: discovery.load(discovery.BACKENDS, name))
    _list(json_, as_json.backends(listed), lambda: tables.backends(listed))


@app.command("properties")
def properties_command(json_: AsJson = False) -> None:
    """List the properties that can be checked, with their definitions."""
    listed = _properties(None)
    _list(json_, as_json.properties(listed), lambda: tables.properties(listed))


app.command("check")(proving.check)
app.command("claims")(proving.claims)
app.command("lie")(lying.lie)
app.command("run")(running.run_command)
app.command("schedule")(scheduling.schedule_command)
app.add_typer(benching.app, name="bench")


def main() -> None:
    """Run the command line; errors that fairopt raises on purpose become one line and an exit status."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as error:  # the output cannot be written: a full disk, a reader that went away
        print(f"fairopt: cannot write the output: {error}", file=sys.stderr)
        sys.stdout = None  # or Python would try once more on its way out
        raise SystemExit(Exit.NOT_SOLVED) from None
    except KeyboardInterrupt:
        print("fairopt: interrupted", file=sys.stderr)
        raise SystemExit(Exit.INTERRUPTED) from None
    except BadInput as error:
        print(f"fairopt: {error}", file=sys.stderr)
        raise SystemExit(Exit.BAD_INPUT) from None
    except FairoptError as error:
        print(f"fairopt: {error}", file=sys.stderr)
        raise SystemExit(Exit.NOT_SOLVED) from None


def _read(path: Path, normalise: bool) -> Market:
    market = read_market(path)
    return market.normalised() if normalise else market


def _policies(names: list[str] | None, problem: type) -> list[Policy]:
    """Return the named policies, or all that decide on ``problem``."""
    if names:
        return [discovery.policy(name, problem) for name in dict.fromkeys(names)]
    listed = _chosen(None, discovery.POLICIES, discovery.policy)
    return [each for each in listed if issubclass(each.problem, problem)]


def _properties(names: list[str] | None) -> list[Property | MechanismProperty]:
    return _chosen(names, discovery.PROPERTIES, discovery.property_)


def _chosen(given: list[str] | None, group: str, make: Callable[[str], T]) -> list[T]:
    """Return what was named, or else all that is installed; of all, a broken plug-in is left out with a warning."""
    if given:
        return [make(name) for name in dict.fromkeys(given)]
    made = []
    for name in discovery.names(group):
        try:
            made.append(make(name))
        except FairoptError as error:
            print(f"fairopt: left out: {error}", file=sys.stderr)
    return made


def _list(json_: bool, data: Any, print_table: Any) -> None:
    if json_:
        _print_json(data)
    else:
        print_table()


def _print_json(data: Mapping[str, Any] | list[Any]) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
