"""Certificates of exact optima; and what all have of programs: duals by rows, variables beside the shares, floors.

A name is that of a block with a position in it; indices begin at 0. The verifier maximises: duals of a minimisation
change sign.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.certificates.certificate import Certificate
from fairopt.certificates.kinds import BOUND, EXTREME, OPTIMALITY, OUTSIDE_DECISION
from fairopt.problem import Market
from fairopt.problem.floors import floors_of
from fairopt.program import Array, Program, Sense, on_shares


def optimality(market: Market, policy: str, program: Program, solution: Solution) -> Certificate:
    """Return the certificate of an exact optimum of a policy's program, which the verifier writes itself.

    >>> from fairopt import allocate
    >>> from fairopt.datasets import oef_example
    >>> decision = allocate("max-min", oef_example(), "exact")
    >>> print(optimality(oef_example(), "max-min", decision.program, decision.solution).value)
    54/49
    """
    return Certificate(OPTIMALITY, market, policy, **_optimum(program, solution))


def extreme_over(choices: Program, weights: Array, sense: Sense, decision: Certificate, solve: Any) -> Certificate:
    """Return the certificate of an extreme sum of ``weights`` (n, k) times shares over the program of all choices.

    ``decision`` certifies what was decided, and ``solve`` is that of an exact backend.

    >>> from fairopt import allocate
    >>> from fairopt.backends.exact import Exact
    >>> from fairopt.models import MaxMin
    >>> decision = allocate("max-min", Market.of([[1, 2]], [1, 1]), "exact")
    >>> choices, proof = MaxMin().choices(decision), MaxMin().certify(decision)
    >>> print(extreme_over(choices, np.array([[1, 0]]), Sense.MAXIMIZE, proof, Exact().solve).value)
    1
    """
    program = on_shares(choices, weights, sense)
    best = _optimum(program, solve(program).require_optimal())
    return Certificate(EXTREME, decision, sense.value, weights, **best)


def bound_of_optimum(program: Program, solution: Solution) -> Certificate:
    """Return the certificate of an exact optimum of a bare linear program.

    >>> from fairopt.backends.exact import Exact
    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> x = p.variable("x", lower=0, upper=3)
    >>> p.maximize(2 * x)
    >>> print(bound_of_optimum(p.program(), Exact().solve(p.program())).value)
    6
    """
    return Certificate(BOUND, program, **_bare_optimum(program, solution))


def outside_decision(market: Market, policy: str, program: Program, solution: Solution) -> Certificate:
    """Return the certificate of an exact optimum of an outside policy's program, which it holds.

    >>> from fairopt import allocate
    >>> decision = allocate("max-min", Market.of([[1, 2]], [1, 1]), "exact")
    >>> print(outside_decision(decision.market, "mine", decision.program, decision.solution).bound)
    1
    """
    shares = program.variable("share", np.arange(len(program.cost)))
    return Certificate(OUTSIDE_DECISION, market, policy, program, shares=shares, **_bare_optimum(program, solution))


def _optimum(program: Program, solution: Solution) -> dict[str, Any]:
    """Return an exact optimum and its proof as parts."""
    return {
        "allocation": program.variable("share", solution.point),
        "value": Fraction(program.value(solution.point)),
        "duals": row_duals(program, _maximised(program, solution)),
        "variables": other_variables(program, solution.point),
    }


def _bare_optimum(program: Program, solution: Solution) -> dict[str, Any]:
    value = Fraction(program.value(solution.point))
    duals = bare_duals(_maximised(program, solution))
    return {"point": solution.point, "value": value, "bound": value, "gap": Fraction(0), "duals": duals}


def _maximised(program: Program, solution: Solution) -> Array:
    assert solution.dual is not None
    return solution.dual if program.sense is Sense.MAXIMIZE else -solution.dual


def row_duals(program: Program, dual: Array) -> list[list[Any]]:
    """Return the duals that are not zero as entries [block, index..., value].

    >>> import numpy as np
    >>> from fairopt.program import Formulation
    >>> p = Formulation('one')
    >>> x = p.variable('x')
    >>> p.constrain('most', x <= 3)
    >>> p.maximize(x)
    >>> row_duals(p.program(), np.array([Fraction(1)]))
    [['most', Fraction(1, 1)]]
    """
    entries: list[list[Any]] = []
    for block in program.row_blocks:
        for position, value in enumerate(dual[block.span]):
            if value:
                flat = position if block.kept is None else int(block.kept[position])
                index = [int(i) for i in np.unravel_index(flat, block.shape)] if block.shape else []
                entries.append([block.name, *index, value])
    return entries


def floors_told(market: Market) -> dict[str, Array]:
    """Return what a certificate says of entitlements: floors of groups (G, k), and what is lent where some is not.

    >>> from fairopt.problem import Entitlements
    >>> owed = Entitlements.of(["A"], ["H100"], group={"A": "ml"}, guarantee={"ml": [3]})
    >>> floors_told(Market.of([[1]], [4], users=["A"], types=["H100"], entitlements=owed))["floors"].tolist()
    [[Fraction(3, 1)]]
    """
    own = floors_of(market)
    lent = {"lent": own.lendable} if (own.lendable < market.capacity).any() else {}
    return {"floors": own.floor[len(market.users) :], **lent}


def bare_duals(dual: Array) -> list[list[Any]]:
    """Return the duals of a bare program that are not zero as entries ["row", number, value].

    >>> import numpy as np
    >>> bare_duals(np.array([Fraction(0), Fraction(2)]))
    [['row', 1, Fraction(2, 1)]]
    """
    return [["row", r, value] for r, value in enumerate(dual) if value]


def other_variables(program: Program, x: Array) -> dict[str, Fraction] | None:
    """Return the values of the variables beside the shares, by name; None where there are none.

    >>> import numpy as np
    >>> from fairopt.program import Formulation
    >>> p = Formulation('one')
    >>> x = p.variable('x')
    >>> p.maximize(x)
    >>> other_variables(p.program(), np.array([Fraction(1)]))
    {'x': Fraction(1, 1)}
    """
    found = {block.name: x[block.first] for block in program.variable_blocks if block.name != "share"}
    return found or None
