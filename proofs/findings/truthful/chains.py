"""The fewest markets at which what is asked of a truthful rule is impossible, and the certificates that say so.

They were found among all profiles of a grid of reports: `fewest` leaves out one after the other, in several orders;
then the same pattern was sought with smaller numbers. Each user's speedups are on one GPU of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairopt.backends.exact import Exact
from fairopt.certificates import Certificate, bound_of_optimum
from fairopt.proofs.findings.truthful.design import Design
from fairopt.proofs.findings.truthful.efficient_rules import Contradiction, refute
from fairopt.proofs.findings.truthful.profiles import Profiles
from fairopt.proofs.ledger.checking import found

#: Two users, two types: first user 2 lies, then user 1.
TWO_USERS = Profiles.of([[[2, 1], [1, 1]], [[2, 1], [1, 3]], [[1, 2], [1, 3]]])
#: Three users, two types: users 2 and 3 say (1, 2) or (1, 4) where user 1 says (1, 1); then user 1 says (1, 3).
THREE_USERS = Profiles.of(
    [
        [[1, 1], [1, 2], [1, 2]],
        [[1, 1], [1, 4], [1, 2]],
        [[1, 1], [1, 2], [1, 4]],
        [[1, 1], [1, 4], [1, 4]],
        [[1, 3], [1, 4], [1, 4]],
    ]
)
#: Where already one liar keeps a rule from being proportionally fair, and three markets from the largest total.
UNFAIR = Profiles.of([[[1, 0], ["1/2", "1/2"]], [[1, 0], ["3/4", "1/4"]]])
SMALL_TOTAL = Profiles.of(
    [[["3/4", "1/4"], ["3/4", "1/4"]], [["3/4", "1/4"], [1, 0]], [[1, 0], ["3/4", "1/4"]]],
)


def truthful_and_fair(design: Design) -> None:
    """Ask for strategy-proofness and sharing incentive."""
    design.strategy_proof()
    design.sharing_incentive()


def no_efficient_rule(profiles: Profiles) -> tuple[Contradiction, ...]:
    """Return the proof that no Pareto-efficient rule at the profiles is strategy-proof and sharing-incentive."""
    return found(refute(profiles, truthful_and_fair), "no efficient rule is truthful and sharing-incentive")


def case_by_case(profiles: Profiles) -> Mapping[str, Certificate]:
    """Return the certificates of the proof, "case1" and so on."""
    cases = no_efficient_rule(profiles)
    return {f"case{number}": case.certificate for number, case in enumerate(cases, start=1)}


def largest_level(maximise: Callable[[Design], None]) -> Callable[[Profiles], Mapping[str, Certificate]]:
    """Return how to certify the largest level that a truthful rule reaches at some profiles."""

    def certified(profiles: Profiles) -> Mapping[str, Certificate]:
        design = Design(profiles, symmetric=False)
        design.strategy_proof()
        maximise(design)
        program = design.program()
        return {"": bound_of_optimum(program, Exact().solve(program).require_optimal())}

    return certified
