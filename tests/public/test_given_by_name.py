"""Who takes a policy, a property, a solver or a kind takes its name and class too; what lies deeper says who does."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

import fairopt
from fairopt import BadInput, Market, discovery, plot
from fairopt import evidence as proofs
from fairopt.audit import explain, plan, whatif
from fairopt.backends import Highs
from fairopt.compare import answered, asked_of, left_out
from fairopt.compare.incentives import at_most, best_misreport, incentives
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.frontier import GOALS, RELAXED
from fairopt.models import Kai, MaxMin
from fairopt.models import ShortestRemainingTimeFirst as Srtf
from fairopt.policy import chosen, decide_each, follow, session, unsupported
from fairopt.policy import decide as decide_with
from fairopt.policy import uniqueness as uniqueness_with
from fairopt.problem import Entitlements, Gangs
from fairopt.program import Sense
from fairopt.properties import (
    Effort,
    EnvyFreeness,
    StrategyProofness,
    over_optima,
    shrink,
    shrinking_misreports,
    worst_share,
)
from fairopt.properties.misreports.kinds import WEIGHT, kind_of
from fairopt.simulation import run as run_with

#: Where functions are looked for, and what is in an annotation of one that takes such a thing.
PACKAGES = ("", "audit", "compare", "compare.incentives", "discovery", "evidence", "experiment.bench")
PACKAGES += ("experiment.plot", "experiment.studies", "frontier", "policy", "properties")
PACKAGES += ("proofs.findings.liars.bounds", "properties.misreports.kinds", "simulation", "workloads")
TAKEN = re.compile(
    r"\b(Any)?(Policy|Property|AllocationProperty|Solver|Chosen|Goal|Relaxed|MisreportKind|Formulated)\b"
)
#: What makes evidence of a decision has its policy from there; it is asked by our own commands only.
INSIDE = {"fairopt.evidence.certify_bound", "fairopt.evidence.evidence_of_verdicts"}


@cache
def _throughputs() -> Path:
    path = Path(mkdtemp(), "throughput.csv")
    path.write_text("user,H100\nA,1\nB,2\n")
    return path


MARKET = Market.of([[1, 2], [1, 5], [2, 3]], [1, 1])
TRACE, CLUSTER = philly_trace(), philly_cluster()
GANGS = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"], names=["a", "b"], on=[None, "H100"])
OWED = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]}, gangs=GANGS)
BOOKS = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=OWED)
DECIDED = fairopt.allocate("max-min", MARKET, exact=True)
LITTLE = Effort(evaluations=6)
LIE = StrategyProofness().search(MaxMin(), MARKET, effort=LITTLE)
(ROW,) = fairopt.compare(MARKET, MaxMin(), EnvyFreeness())
FEASIBLE = ["feasibility"]

Asked = tuple[Callable[[Any], Any], Any]
#: How each is asked, and of which class a name, the class and an object are given.
ASKED: dict[str, list[Asked]] = {
    "fairopt.allocate": [
        (lambda it: fairopt.allocate(it, MARKET), MaxMin),
        (lambda it: fairopt.allocate("max-min", MARKET, it), Highs),
    ],
    "fairopt.decide": [
        (lambda it: fairopt.decide(it, MARKET), MaxMin),
        (lambda it: fairopt.decide("max-min", MARKET, it), Highs),
    ],
    "fairopt.uniqueness": [(lambda it: fairopt.uniqueness(it, DECIDED), MaxMin)],
    "fairopt.run": [
        (lambda it: next(fairopt.run(it, TRACE, CLUSTER, length=300)), Srtf),
        (lambda it: next(fairopt.run("gavel-rounds", TRACE, CLUSTER, length=300, backend=it)), Highs),
    ],
    "fairopt.compare.side_by_side.compare": [
        (lambda it: fairopt.compare(MARKET, it, FEASIBLE).rows, MaxMin),
        (lambda it: fairopt.compare(MARKET, "max-min", it).rows, EnvyFreeness),
        (lambda it: fairopt.compare(MARKET, "max-min", FEASIBLE, backend=it).rows, Highs),
    ],
    "fairopt.compare.verifying.verify": [(lambda it: fairopt.verify(MARKET, DECIDED, it), EnvyFreeness)],
    "fairopt.compare.side_by_side.answered": [
        (lambda it: answered(MARKET, it), MaxMin),
        (lambda it: answered(MARKET, "max-min", backend=it), Highs),
    ],
    "fairopt.compare.side_by_side.asked_of": [(lambda it: asked_of(it, MARKET), MaxMin)],
    "fairopt.compare.side_by_side.left_out": [(lambda it: left_out(it, MARKET), MaxMin)],
    "fairopt.audit.auditing.audit": [
        (lambda it: fairopt.audit(BOOKS, policies=it).to_json(), Kai),
        (lambda it: fairopt.audit(BOOKS, policies=[], properties=it).to_json(), EnvyFreeness),
    ],
    "fairopt.audit.explaining.explain": [(lambda it: explain(BOOKS, "A", policies=it).to_json(), Kai)],
    "fairopt.audit.whatif.whatif": [(lambda it: whatif(BOOKS, ["A.H100.quota=5"], policies=it).to_json(), Kai)],
    "fairopt.audit.planning.plan": [
        (lambda it: plan(BOOKS, it, _throughputs(), "kueue").to_json(), MaxMin),
        (lambda it: plan(BOOKS, "max-min", _throughputs(), "kueue", properties=it).to_json(), EnvyFreeness),
    ],
    "fairopt.frontier.frontiers.frontier": [
        (lambda it: fairopt.frontier(MARKET, it, "envy_freeness", policies=[]).to_json(), GOALS[0]),
        (lambda it: fairopt.frontier(MARKET, "total_efficiency", it, policies=[]).to_json(), RELAXED[0]),
        (lambda it: fairopt.frontier(MARKET, "total_efficiency", "envy_freeness", policies=it).to_json(), MaxMin),
    ],
    "fairopt.compare.incentives.incentives": [
        (lambda it: incentives(it, MARKET, "smaller", LITTLE).bounds, MaxMin),
        (lambda it: list(incentives("max-min", MARKET, it, LITTLE).misreports), WEIGHT),
    ],
    "fairopt.compare.incentives.best_misreport": [
        (lambda it: str(best_misreport(it, MARKET, "weight", LITTLE)), MaxMin),
        (lambda it: best_misreport("equal-split", MARKET, it, LITTLE).factor, WEIGHT),  # type: ignore[union-attr]
    ],
    "fairopt.compare.incentives.at_most": [(lambda it: at_most(it, MARKET, DECIDED), MaxMin)],
    "fairopt.properties.misreports.kinds.kind_of": [(lambda it: kind_of(it, MARKET).name, WEIGHT)],
    "fairopt.experiment.plot.allocations.misreport": [
        (lambda it: len(plot.misreport(it, MARKET, 0, "T1", [1, 2]).axes), MaxMin),
        (lambda it: len(plot.misreport("max-min", MARKET, 0, "T1", [1, 2], it).axes), Highs),
    ],
    "fairopt.evidence.evidence": [(lambda it: [each.name for each in proofs.evidence(ROW, it)], EnvyFreeness)],
    "fairopt.evidence.certify_search": [(lambda it: proofs.certify_search(it, MARKET, LIE).to_json(), MaxMin)],
    "fairopt.evidence.certify_misreport": [
        (lambda it: proofs.certify_misreport(it, MARKET, LIE.witness).to_json(), MaxMin)
    ],
    "fairopt.evidence.extreme": [
        (lambda it: proofs.extreme(it, DECIDED, proofs.throughput_of(MARKET, 0), Sense.MAXIMIZE).value, MaxMin)
    ],
    "fairopt.discovery.policy_of": [(lambda it: discovery.policy_of(it, Market), MaxMin)],
    "fairopt.discovery.policies_of": [
        (discovery.policies_of, MaxMin),
        (lambda it: discovery.policies_of([it, it]), MaxMin),
    ],
    "fairopt.discovery.property_of": [(lambda it: discovery.property_of(it).name, EnvyFreeness)],
    "fairopt.discovery.properties_of": [(lambda it: discovery.properties_of(it)[0].name, EnvyFreeness)],
    "fairopt.discovery.solver": [(lambda it: discovery.solver(it, "prices"), MaxMin)],
    "fairopt.discovery.solver_of": [
        (lambda it: discovery.solver_of(it, "prices"), MaxMin),
        (lambda it: discovery.solver_of("max-min", it), Highs),
    ],
}

#: What policies, properties and runs are made with: it cannot know what is installed, and says who does.
DEEPER: dict[str, list[Callable[[Any], Any]]] = {
    "fairopt.policy.decide.chosen": [chosen, lambda it: chosen(MaxMin(), it)],
    "fairopt.policy.decide.decide": [lambda it: decide_with(it, MARKET), lambda it: decide_with(MaxMin(), MARKET, it)],
    "fairopt.policy.decide.decide_each": [lambda it: next(decide_each(it, [MARKET]))],
    "fairopt.policy.decide.follow": [lambda it: follow(it)(MARKET)],
    "fairopt.policy.decide.session": [session],
    "fairopt.policy.decide.unsupported": [lambda it: unsupported(it, MARKET)],
    "fairopt.policy.optima.uniqueness": [lambda it: uniqueness_with(it, DECIDED)],
    "fairopt.properties.over_optima.over_optima": [
        lambda it: over_optima(it, DECIDED, EnvyFreeness()),
        lambda it: over_optima(MaxMin(), DECIDED, it),
    ],
    "fairopt.properties.misreports.shrinking.shrink": [lambda it: shrink(it, MARKET, LIE.witness)],
    "fairopt.properties.misreports.shrinking.shrinking_misreports": [
        lambda it: next(shrinking_misreports(it, MARKET, LIE.witness))
    ],
    "fairopt.properties.worst_reports.worst_share": [lambda it: worst_share(it, MARKET, MARKET.users[0])],
    "fairopt.simulation.playing.run": [lambda it: next(run_with(it, TRACE, CLUSTER, length=300))],
}


def takers() -> Iterator[str]:
    """Yield the public functions that take a policy, a property, a solver or a kind."""
    for package in PACKAGES:
        module = import_module(f"fairopt.{package}".rstrip("."))
        for name in getattr(module, "__all__", None) or vars(module):
            found = getattr(module, name)
            if not inspect.isfunction(found) or not found.__module__.startswith(f"fairopt.{package}".rstrip(".")):
                continue
            asked = [str(each.annotation) for each in inspect.signature(found).parameters.values()]
            if name[0] != "_" and any(TAKEN.search(re.sub(r"Callable\[.*\]", "", each)) for each in asked):
                yield (f"{found.__module__}.{name}").replace("fairopt.by_name.", "fairopt.")


def test_every_function_that_takes_one_is_asked_here() -> None:
    assert set(takers()) == (ASKED.keys() | DEEPER.keys() | INSIDE)


@pytest.mark.parametrize(
    ("ask", "kind"), [pytest.param(*each, id=name) for name, all_ in ASKED.items() for each in all_]
)
def test_a_name_and_a_class_are_what_an_object_is(ask: Callable[[Any], Any], kind: Any) -> None:
    ways = (kind(), kind, kind.name) if isinstance(kind, type) else (kind, kind.name)
    assert len({re.sub("0x[0-9a-f]+", "", str(ask(each))) for each in ways}) == 1


@pytest.mark.parametrize("ask", [each[0] for all_ in ASKED.values() for each in all_])
def test_what_is_none_is_refused_with_what_there_is(ask: Callable[[Any], Any]) -> None:
    for wrong in ("no-such-thing", 3):
        with pytest.raises(BadInput) as refused:
            ask(wrong)
        assert re.search(r"Installed: |Give |Here: ", str(refused.value))


@pytest.mark.parametrize("ask", [pytest.param(each, id=name) for name, all_ in DEEPER.items() for each in all_])
def test_what_lies_deeper_says_who_takes_names(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(BadInput, match=r"got the name 'max-min'\. Give a .*discovery"):
        ask("max-min")
