"""`verify`: which properties anybody's outcome of a problem has.

Nothing here plays rounds, so that who checks an allocation loads no simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairopt import discovery
from fairopt.discovery import AnyProperty
from fairopt.errors import BadInput, FairoptError, require, type_of
from fairopt.problem import Market
from fairopt.problem.ranges import with_error
from fairopt.program import Number
from fairopt.properties import MechanismProperty, Property, Verdict

if TYPE_CHECKING:
    from fairopt.problem.batch import Batch
    from fairopt.simulation import Setting


def verify(
    problem: Market | Setting | Batch,
    outcome: Any,
    properties: AnyProperty | Sequence[AnyProperty] | None = None,
    *,
    tolerance: Number | None = None,
    error: object = None,
) -> dict[str, Verdict]:
    """Return the verdicts on anybody's outcome, by property name; ``properties`` as `compare` takes them.

    It is an allocation of a `Market` (or shares (n, k): an array, lists, a pandas table), a `History` of a `Setting`, a
    `Plan` of a `Batch`. ``error`` is that of a `Market`'s speedups, as `compare` takes it: verdicts are then for all
    speedups within the ranges. Errors: `BadInput` for an outcome that is none of this problem. Source: those of the
    properties.

    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> verify(market, [[1, 0], [0, 1]], ["pareto_efficiency"])["pareto_efficiency"].holds
    True
    """
    if not isinstance(problem, Market):
        _require_outcome(problem, outcome)
    verdicts, problem = {}, measured(problem, error)
    for each in asked_properties(problem, properties):
        if isinstance(each, MechanismProperty):
            if properties is None:
                continue
            remedy = "Leave it out; `compare` asks it of a policy"
            raise BadInput(f"{each.name} is a property of a {each.of}", place="properties", remedy=remedy)
        try:
            verdicts[each.name] = each.verify(problem, outcome, tolerance=tolerance)
        except BadInput:  # the outcome is at fault, not the property
            raise
        except FairoptError as error:
            verdicts[each.name] = Verdict.undecided(each.name, str(error))
    return verdicts


def _require_outcome(problem: Any, outcome: Any) -> None:
    from fairopt.policy import Plan  # here, since who has a market needs none of these
    from fairopt.problem.batch import Batch
    from fairopt.simulation import History, Setting

    for kind, made in ((Setting, History), (Batch, Plan)):
        fits = not isinstance(problem, kind) or isinstance(outcome, made)
        require(fits, type_of(outcome), "outcome", f"Of a {kind.__name__}, give a {made.__name__}")


def measured(problem: Any, error: object) -> Any:
    """Return the problem with its speedups known up to a relative error, where one is given."""
    if error is None:
        return problem
    kind = f"a {type(problem).__name__}"
    require(isinstance(problem, Market), kind, "error", "Leave it out; only a Market's speedups have errors")
    return with_error(problem, error)


def asked_properties(problem: object, given: AnyProperty | Sequence[AnyProperty] | None) -> list[Property]:
    """Return the properties that are asked for: all on such a problem where none is given."""
    if given is None:
        if known := discovery.properties(type(problem)):
            return [each for each in known if each.asked_of(problem)]
        remedy = "Give a Market, a Setting or a Batch"
        raise BadInput(f"got {type_of(problem)}", place="problem", remedy=remedy)
    asked = discovery.properties_of(given)
    for each in asked:
        if not isinstance(problem, each.problem):
            kind = each.problem.__name__
            wrong = f"{each.name} is a property on a {kind}, not on a {type(problem).__name__}"
            raise BadInput(wrong, place="properties", remedy=f"Leave it out, or give a {kind}")
    return asked
