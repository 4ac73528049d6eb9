"""DRF over all real demands at a fixed size: Z3 is asked for a problem that breaks a property.

Demands are positive, so that all users stop at once, and DRF has a closed form. In shares of a resource over the
user's dominant one, demands are r_ij in (0, 1] with a 1 in each row; user i gets w_i t r_ij of resource j, where
t = 1 / max_j sum_i w_i r_ij. Demands and capacities of any units come to this. Where someone needs nothing of a
resource, users stop one after another and this form does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from fairopt.errors import NotInstalled
from fairopt.proofs.claims.drf.divisible import Tasks, at_random, drf
from fairopt.proofs.ledger.checking import require

try:
    import z3
except ImportError as error:
    raise NotInstalled("these claims are decided by Z3: pip install z3-solver") from error

#: Seconds for a question.
LIMIT = 60
SIZES = ((2, 2), (3, 2), (2, 3))


class Level:
    """The common level ``t`` of users with normalised demands ``need`` (n, m) and weights; all but ``t`` may be given.

    ``said`` are the constraints that make it DRF.
    """

    def __init__(self, need: Sequence[Sequence[Any]], weight: Sequence[Any], tag: str = "") -> None:
        self.need, self.weight, self.t = need, weight, z3.Real(f"t{tag}")
        loads = [z3.Sum([w * row[j] for w, row in zip(weight, need, strict=True)]) for j in range(len(need[0]))]
        self.said = [self.t > 0, *(self.t * load <= 1 for load in loads), z3.Or([self.t * load == 1 for load in loads])]


def normalised(n: int, m: int, tag: str = "") -> tuple[list[list[Any]], list[Any]]:
    """Return variables for demands (n, m), and the constraints that each row has a 1 and lies in (0, 1]."""
    need = [[z3.Real(f"r{tag}_{i}{j}") for j in range(m)] for i in range(n)]
    said = [z3.And(each > 0, each <= 1) for row in need for each in row]
    return need, said + [z3.Or([each == 1 for each in row]) for row in need]


def refuted(constraints: Sequence[Any]) -> bool:
    """Whether Z3 finds what the constraints ask for; it must decide."""
    solver = z3.Solver()
    solver.set("timeout", 1000 * LIMIT)
    solver.add(*constraints)
    answer = solver.check()
    require(answer != z3.unknown, "Z3 decides the question")
    return bool(answer == z3.sat)


def closed_form(count: int = 100) -> None:
    """Check on random problems that the closed form is what progressive filling gives, exactly."""
    for tasks in at_random(count, 1, zeros=False):
        shares = tasks.demand / tasks.capacity
        need = shares / shares.max(axis=1)[:, None]
        level = 1 / (need * tasks.weight[:, None]).sum(axis=0).max()
        require((drf(tasks) == tasks.weight * level / shares.max(axis=1)).all(), f"the closed form on {tasks}")


def question(name: str, n: int, m: int) -> list[Any]:
    """Return the constraints of a problem of ``n`` users and ``m`` resources that breaks the property ``name``."""
    need, said = normalised(n, m)
    weight = [z3.Real(f"w_{i}") for i in range(n)]
    level = Level(need, weight)
    all_said = [*said, *(w > 0 for w in weight), *level.said]
    return [*all_said, *QUESTIONS[name](need, weight, level.t)]


def _below_its_part(need: Any, weight: Any, t: Any) -> list[Any]:
    return [t * z3.Sum(weight) < 1]  # w_i t is the dominant share; w_i / sum_l w_l that of the own part


def _envy(need: Any, weight: Any, t: Any) -> list[Any]:
    return [t * other > t * own for own, other in zip(need[0], need[1], strict=True)]  # per weight, in every resource


def _dominated(need: Any, weight: Any, t: Any) -> list[Any]:
    n, m = len(need), len(need[0])
    other = [z3.Real(f"x_{i}") for i in range(n)]
    fits = [z3.Sum([other[i] * weight[i] * need[i][j] for i in range(n)]) <= 1 for j in range(m)]
    return [*fits, *(x >= t for x in other), other[0] > t]


def _rewarded(need: Any, weight: Any, t: Any) -> list[Any]:
    told, said = normalised(1, len(need[0]), "_told")
    after = Level([*told, *need[1:]], weight, "_told")
    return [*said, *after.said, *(after.t * lie > t * true for lie, true in zip(told[0], need[0], strict=True))]


def _bottleneck_shared_otherwise(need: Any, weight: Any, t: Any) -> list[Any]:
    return [*(row[0] == 1 for row in need), t * z3.Sum(weight) != 1]


def _worse_when_one_leaves(need: Any, weight: Any, t: Any) -> list[Any]:
    after = Level(need[:-1], weight[:-1], "_after")
    return [*after.said, after.t < t]


QUESTIONS = {
    "sharing_incentive": _below_its_part,
    "envy_freeness": _envy,
    "pareto_efficiency": _dominated,
    "strategy_proofness": _rewarded,
    "bottleneck_fairness": _bottleneck_shared_otherwise,
    "population_monotonicity": _worse_when_one_leaves,
}


def decided(name: str) -> str:
    """Ask at all `SIZES`, and return in words where the property holds. Errors: `NoLongerFollows` where it does not."""
    closed_form()
    for n, m in SIZES:
        require(not refuted(question(name, n, m)), f"{name} at {n} users and {m} resources")
    sizes = ", ".join(f"{n} x {m}" for n, m in SIZES)
    return f"Z3 finds no positive real demands and weights that break it, for {sizes} users and resources"


def impossibility() -> bool:
    """Whether any rule has sharing incentive, Pareto efficiency and resource monotonicity on the paper's example.

    Demands are <2, 1> and <1, 2>, and there is one of each resource, and then four of one of them.
    """
    tasks = {extra: (z3.Real(f"x{extra}"), z3.Real(f"y{extra}")) for extra in (None, 0, 1)}
    said = []
    for extra, (x, y) in tasks.items():
        there = [4 if extra == j else 1 for j in range(2)]
        used = [2 * x + y, x + 2 * y]
        said += [x >= 0, y >= 0, *(use <= room for use, room in zip(used, there, strict=True))]
        said.append(z3.Or([use == room for use, room in zip(used, there, strict=True)]))  # both need both resources
        for own, demand in ((x, (2, 1)), (y, (1, 2))):
            part = min(Fraction(room, 2 * need) for room, need in zip(there, demand, strict=True))
            said.append(own >= _real(part))
    for extra in (0, 1):
        said += [after >= before for after, before in zip(tasks[extra], tasks[None], strict=True)]
    return refuted(said)


def equilibrium(tasks: Tasks, user: int = 0, most: Fraction | None = None) -> list[Any]:
    """Return that there is a competitive equilibrium from incomes by weight, in which all resources have a price.

    With ``most``, one in which ``user`` runs no more tasks than that.
    """
    price = [z3.Real(f"p_{j}") for j in range(len(tasks.capacity))]
    runs = [z3.Real(f"x_{i}") for i in range(len(tasks.weight))]
    said = [each > 0 for each in price]
    for own, row, income in zip(runs, tasks.demand, tasks.weight, strict=True):
        said.append(own * z3.Sum([p * _real(need) for p, need in zip(price, row, strict=True)]) == _real(income))
    for column, there in zip(tasks.demand.T, tasks.capacity, strict=True):
        said.append(z3.Sum([own * _real(need) for own, need in zip(runs, column, strict=True)]) == _real(there))
    return said if most is None else [*said, runs[user] <= _real(most)]


def _real(number: Any) -> Any:
    exact = Fraction(number)
    return z3.Q(exact.numerator, exact.denominator)
