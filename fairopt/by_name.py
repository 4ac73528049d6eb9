"""`allocate` and `decide` for people: policies and solvers by name, as a class, or as an object."""

from __future__ import annotations

from typing import Any

from fairopt import discovery
from fairopt.policy import Allocation, Decision, Policy
from fairopt.policy import allocate as allocate_with
from fairopt.policy import decide as decide_with
from fairopt.problem import Market


def allocate(policy: str | type[Policy] | Policy, problem: Market, backend: Any = None, **how: Any) -> Allocation:
    """Return what a share policy decides on a market; see `fairopt.policy.allocate`, which takes objects only.

    ``policy`` and ``backend`` may be names, as `fairopt policies` and `fairopt backends` list them.

    >>> from fairopt import Market, allocate
    >>> allocate("oef-cooperative", Market.of([[1, 2], [1, 5]], capacity=[1, 1]), exact=True).utilities.tolist()
    [Fraction(3, 2), Fraction(15, 4)]
    """
    chosen = discovery.policy_of(policy, Market)
    return allocate_with(chosen, problem, discovery.solver_of(chosen, backend), **how)


def decide(
    policy: str | type[Policy] | Policy, problem: Any, solver: Any = None, state: Any = None, **how: Any
) -> Decision:
    """Return what a policy decides on a market, a queue or a batch; see `fairopt.policy.decide`.

    ``policy`` and ``solver`` may be names.
    """
    chosen = discovery.policy_of(policy)
    found: Decision = decide_with(chosen, problem, discovery.solver_of(chosen, solver), state, **how)
    return found
