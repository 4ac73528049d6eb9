"""Efficient OEF: the largest total throughput that is found among envy-free, Pareto-efficient allocations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from time import perf_counter
from typing import Any

from fairopt.backends import Method, Session
from fairopt.backends.solution import Solution, Status
from fairopt.certificates import EFFICIENT, Certificate, row_duals
from fairopt.deadline import only_a_part
from fairopt.errors import NotCapable
from fairopt.methods.efficient_faces import EfficientFaces, best_efficient, giving_out_all
from fairopt.models.nash.nash_welfare import NashWelfare
from fairopt.models.oef.cooperative import CooperativeOEF
from fairopt.policy import Allocation, Claim, Example, Policy, Seconds, Trait
from fairopt.policy.policy import ManyBundles
from fairopt.problem import Market
from fairopt.program import Array, Program, cast

#: The most users: the program has a row for each pair of them, and is solved many times in Fractions.
MOST_USERS = 100
#: On markets of more speedups the search may take minutes: who does not name this policy need not wait for it.
ASKED_UP_TO = 100


class EfficientOEF(Policy):
    """Cooperative OEF among Pareto-efficient allocations only: envy-free, sharing-incentive and Pareto-efficient.

    Cooperative OEF may leave a trade that hurts nobody. To carry it out is no remedy: its result is envied by somebody,
    or else its larger total would have been cooperative OEF's. So this policy searches efficient faces
    (`fairopt.methods.efficient_faces`), from the competitive equilibrium with equal incomes (`NashWelfare`). On every
    market without demands, with any positive weights and any speedups, zeros included, the following is proved.

    1. Its shares are envy-free and Pareto-efficient, since each face is searched with the rows of Eq. (10c). They give
       everybody its equal share's worth, since all GPUs that somebody can use are given out: with W the sum of weights,
       the rows of user l, times the others' weights, add up to W u_l(x_l) >= pi_l u_l(all).
    2. Its total is at least that of the equilibrium, since the search never forbids all that the equilibrium holds; so
       with equal weights it is more than 2 / (n + 1) of cooperative OEF's, whatever the units.
    3. Where cooperative OEF's optimum, as found with all GPUs given out, is Pareto-efficient, it is that optimum.
    4. It solves at most n k min(n, k) linear programs after the search's first descent, which takes no more than that
       either. With the linear programs solved in polynomial time, so is the whole.
    5. What it may lack is known: the solution's ``upper`` is a bound on the total of all such allocations. Where it is
       the total, the decision is the best possible, and a certificate says so that ``proofs/verify.py`` accepts.

    Decisions are made in Fractions; a market in floats gets them rounded. Demands and entitlements are refused: with
    demands, equal incomes no longer keep envy away, and other trades improve.

    Source: our own; OEF Eq. (10) and Varian 1974.

    >>> from fairopt import allocate
    >>> print(*allocate(EfficientOEF(), Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], capacity=[1, 1, 1])).utilities)
    29/14 12/7 51/14
    """

    name = "oef-efficient"
    source = "Our own; OEF, Middleware 2024, Eq. (10), and Varian, J. Economic Theory 1974"
    #: Branch and bound over efficient faces; a time limit leaves the best that was found, after the first descent.
    methods = (Method("efficient-faces"),)
    traits = frozenset({Trait.EXACT, Trait.NO_DEMANDS})
    claims = (
        Claim("envy_freeness", "by its rows, OEF Eq. (10c)"),
        Claim("sharing_incentive", "envy-freeness, with all GPUs given out"),
        Claim("pareto_efficiency", "no trade in a circle improves it"),
    )
    examples = (
        Example(
            "where cooperative OEF is not Pareto-efficient; by enumeration of all faces",
            Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], capacity=[1, 1, 1]),
            total="52/7",
        ),
        Example("OEF Eq. (6), total 5.25", Market.of([[1, 2], [1, 5]], capacity=[1, 1]), utilities=["3/2", "15/4"]),
    )

    def only_named(self, problem: Any) -> str:
        """Return that the market is large, where it is: there the search may take minutes."""
        if problem.speedup.size <= ASKED_UP_TO:
            return ""
        return f"{self.name} may take minutes on more than {ASKED_UP_TO} speedups; name it, and it is asked"

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        """Search from the equilibrium; the evidence is the tree. Errors: `NotSolved`; `NotCapable` for many users."""
        n, begun = len(problem.users), perf_counter()
        if n > MOST_USERS:
            raise NotCapable(f"{self.name} compares all pairs of users in Fractions, of {MOST_USERS} at most; got {n}")
        market = problem.as_(Fraction)
        program = _first_face(market)
        built = perf_counter()

        def equilibrium() -> Array:
            held = NashWelfare().decide(market, None, solve)
            return held.shares if held.exact else market.speedup * 0

        found = _searched(market, program, equilibrium)
        status = Status.OPTIMAL if found.value == found.bound else Status.LIMIT
        number = problem.arithmetic.number
        return Allocation(
            self.name,
            problem,
            shares=cast(found.shares, number),
            objective=number(found.value),
            status=status,
            solution=Solution(
                status=status,
                raw_status=f"{len(found.nodes)} programs solved",
                backend="auto",
                objective=number(found.value),
                bound=number(found.bound),
                lower=found.value,
                upper=found.bound,
            ),
            evidence=found,
            seconds=Seconds(build=built - begun, solve=perf_counter() - built),
        )

    def bundle(self, user: int, problem: Market, before: Any, solve: Session) -> Array:
        """Return what the search gives a user; on small markets in floats it is made in floats, from the first face."""
        if problem.exact or problem.speedup.size > ASKED_UP_TO:
            return super().bundle(user, problem, before, solve)
        bundle: Array = _searched(problem, _first_face(problem), lambda: problem.speedup * 0).shares[user]
        return bundle

    def many_bundles(self, problem: Market, before: Any) -> ManyBundles | None:
        """Return who searches for many side by side, in floats."""
        # here, since few callers search for misreports
        from fairopt.methods.many_efficient import many_efficient
        from fairopt.policy.many_programs import ManyPrograms

        return ManyPrograms.of(lambda speedup: _first_face(replace(problem, speedup=speedup)), problem, many_efficient)

    def certify(self, decision: Allocation) -> Certificate:
        """Return the search tree, which shows the three properties, and that no shares with them exceed a bound."""
        self._require_exact(decision, "decide on a market in Fractions")
        found: EfficientFaces = decision.evidence
        nodes: list[dict[str, Any]] = [
            {"without": sorted(without), "circle": found.nodes[without].circle} for without in found.branched
        ]
        nodes += [
            {"without": sorted(node.without), "duals": row_duals(found.program, dual)} for node, dual in found.proofs()
        ]
        gap = found.bound - found.value
        return Certificate(
            EFFICIENT, decision.market, decision.shares, found.weights, found.value, found.bound, gap, nodes
        )


def _searched(market: Market, program: Program, held: Callable[[], Array]) -> EfficientFaces:
    with only_a_part():
        return best_efficient(program, market.speedup, held, nodes=market.speedup.size * min(market.shape))


def _first_face(market: Market) -> Program:
    """Return the program of all envy-free allocations that give out all GPUs."""
    return giving_out_all(CooperativeOEF().formulate(market, None), market.speedup)
