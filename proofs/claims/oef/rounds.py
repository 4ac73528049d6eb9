"""OEF Sec. 4.3: whole GPUs by rounding with memory, over rounds; who gets what in the long run, and who starves.

The bounds that `fairopt.models.oef.rounding` states are argued there. Here they are computed: an adversary reaches the
first, exact programs say that no round leaves it, and runs are followed until they repeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from random import Random

from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.models import CooperativeOEF
from fairopt.models.oef.rounding import carried, to_the_nearest, whole_gpus
from fairopt.models.oef.rounds import OEFRounds
from fairopt.problem import Cluster, Jobs, Market, Trace
from fairopt.program import Array, Formulation
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, only_optimum
from fairopt.proofs.ledger.wording import both, listed, rows, speedups
from fairopt.simulation import run

#: Users and GPUs for which one round more is decided by programs, for all ideals and deviations.
INDUCTIVE = ((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2))
#: Rounds that the starving tenant is watched for.
WATCHED = 200
#: A run with constant ideals has repeated itself long before.
MOST_ROUNDS = 10_000


def rounding_over_rounds() -> Finding:
    """Sec. 4.3: rounded shares follow the ideal ones, and the minimum-demand rule starves nobody."""
    overbooked = to_the_nearest([[Fraction(2, 3)]] * 3)
    given = sum(row[0] for row in overbooked)
    users = range(2, 9)
    reached = {n: adversary(n) for n in users}
    require(all(reached[n] == most_behind(n) for n in users), "an adversary reaches H_n - 1")
    inductive = all(one_round_more_keeps_the_bound(n, gpus) for n, gpus in INDUCTIVE)
    worst, rounds = random_ideals(100)
    cycles = list(followed())
    fair = all(each.fair for each in cycles)
    starved = starving()
    holds = inductive and worst <= 0 and fair
    false = given > 2 and starved.ran == 0 and starved.only
    return Finding(
        Ruling.QUALIFIED if holds and false else Ruling.REFUTED if false else Ruling.OPEN,
        f"As printed, no: each share is rounded by itself, and three users with 2/3 of a GPU each, of 2 GPUs, get "
        f"{given}. Kept within capacity (furthest behind first, as fairopt.models.oef.rounding has it, which is the "
        "printed rounding where that is possible), the shares do follow: whatever the ideals are in each round, a user "
        "is ahead by less than one GPU of a type and behind by at most H_n - 1 = 1/2 + ... + 1/n (argued in its "
        f"docstring). For {listed(f'{n} users on {gpus}' for n, gpus in INDUCTIVE)} GPUs, programs over all deviations "
        f"and ideals say {'that' if inductive else 'not that'} one round more keeps what is behind within that; an "
        "adversary reaches it, which no rule that decides round by round can prevent: "
        f"{both(reached[2])} for 2 users, {both(reached[8])} for 8; {rounds} rounds with random ideals and capacities "
        f"{'stay within' if worst <= 0 else 'do not stay within'}. With the minimum-demand rule it depends on the "
        "types. Type by type, tenants asking only for types that can hold their smallest job, nobody was seen to "
        f"starve: {len(cycles)} settings (up to 3 users, up to 4 GPUs, all minima, ideals in sixths) followed till "
        f"they repeat {'give' if fair else 'do not give'} everybody exactly its ideal share in the mean; the longest "
        f"wait is {max(each.wait for each in cycles)} rounds. With a tenant's GPUs of all types together, as Sec. 4.4 "
        f"has it: {'false' if starved.ran == 0 else 'not refuted'}. On {speedups(starved.market)}, the only optimum of "
        f"cooperative OEF is {rows(starved.shares)}; u1's one job needs {starved.needs} GPUs, which the second type "
        f"has, and u1 is due {starved.due} of the first and none of the second, for ever. In {WATCHED} rounds it runs "
        f"in {starved.ran}, and is {starved.behind} GPUs behind, which the printed rule would take from a type that "
        "has not got them.",
    )


def most_behind(users: int) -> Fraction:
    """Return H_n - 1."""
    return sum((Fraction(1, k) for k in range(2, users + 1)), Fraction(0))


def adversary(users: int) -> Fraction:
    """Return how far behind a user is once ideals went, round after round, to those alone who have got nothing yet."""
    behind, among = [Fraction(0)] * users, list(range(users))
    while len(among) > 1:
        target = [[old + (Fraction(1, len(among)) if at in among else 0)] for at, old in enumerate(behind)]
        real = whole_gpus(target, [1])
        behind = [Fraction(row[0]) for row in carried(target, real)]
        among = [at for at in among if not real[at][0]]
    return behind[among[0]]


def one_round_more_keeps_the_bound(users: int, gpus: int) -> bool:
    """Whether from all deviations within the bounds, for all ideals, the next ones are within them: by exact programs.

    The bounds are those of every k users together, k (H_n - H_k). For each order in which GPUs can be given out, each
    to whoever is furthest behind then, and for each set of users, the largest sum that it can come to is computed.
    """
    bound = {k: k * (most_behind(users) - most_behind(k)) for k in range(1, users + 1)}
    sets = [each for k in bound for each in combinations(range(users), k)]
    # users can change places, so that the first GPU goes to the first of them
    orders = [(), *((0, *rest) for given in range(gpus) for rest in product(range(users), repeat=given))]
    return all(_largest(users, gpus, order, each, sets, bound) <= bound[len(each)] for order in orders for each in sets)


def _largest(
    users: int,
    gpus: int,
    order: tuple[int, ...],
    together: tuple[int, ...],
    sets: list[tuple[int, ...]],
    bound: dict[int, Fraction],
) -> Fraction:
    """Return the largest sum of the deviations of ``together`` after GPUs were given out in ``order``.

    Where that order cannot come about, a number below every bound.
    """
    p = Formulation("one round more")
    before, ideal = p.variable("deviation", (users,)), p.variable("ideal", (users,), lower=0)
    p.constrain("within", ideal.sum() <= gpus)
    for number, each in enumerate(sets):
        p.constrain(f"bound_{number}", before[list(each)].sum() <= bound[len(each)])
    level = before + ideal
    got = [0] * users
    for turn, user in enumerate(order):
        for other in range(users):
            if other != user:
                p.constrain(f"turn_{turn}_{other}", level[user] - got[user] >= level[other] - got[other])
        p.constrain(f"turn_{turn}_owed", level[user] - got[user] >= 0)
        got[user] += 1
    if len(order) < gpus:  # the others stay: nobody is behind
        p.constrain("nobody_behind", level <= [Fraction(each) for each in got])
    p.maximize(sum((level[user] - got[user] for user in together), start=level[0] * 0))
    solution = Exact().solve(p.program())
    if solution.status is Status.INFEASIBLE:
        return Fraction(-users)
    return Fraction(solution.require_optimal().objective or 0)


def random_ideals(runs: int) -> tuple[Fraction, int]:
    """Return by how much a deviation ever left its bounds (0 or less: never), and how many rounds were looked at."""
    worst, rounds = Fraction(-10), 0
    for seed in range(runs):
        random = Random(seed)
        users = random.randint(2, 7)
        behind = [Fraction(0)] * users
        for _ in range(30):
            gpus, parts = random.randint(0, 9), [random.choice([0, 0, 1, 2, 3, 7]) for _ in range(users)]
            part = Fraction(gpus, sum(parts) or 1) * random.choice([Fraction(1), Fraction(1), Fraction(2, 3)])
            target = [[old + one * part] for old, one in zip(behind, parts, strict=True)]
            behind = [Fraction(row[0]) for row in carried(target, whole_gpus(target, [gpus]))]
            worst, rounds = max(worst, max(behind) - most_behind(users), -1 - min(behind)), rounds + 1
    return worst, rounds


@dataclass(frozen=True)
class Cycle:
    """A run with constant ideals that repeats itself: whether all get theirs in the mean, and the longest wait."""

    fair: bool
    wait: int


def followed() -> Iterator[Cycle]:
    """Yield what becomes of every small setting with minima, one type, GPUs all handed out; users in any order."""
    for users, gpus in product((2, 3), (1, 2, 3, 4)):
        for parts in product(range(1, 6), repeat=users):
            if sum(parts) != 6:
                continue
            ideal = [Fraction(part * gpus, 6) for part in parts]
            yield from (_follow(ideal, least, gpus) for least in product(range(1, gpus + 1), repeat=users))


def _follow(ideal: list[Fraction], least: tuple[int, ...], gpus: int) -> Cycle:
    minima = [[size] for size in least]
    behind = tuple(Fraction(0) for _ in ideal)
    seen: dict[tuple[Fraction, ...], int] = {}
    history: list[tuple[int, ...]] = []
    while behind not in seen:
        require(len(history) < MOST_ROUNDS, "rounding with constant ideals repeats itself")
        seen[behind] = len(history)
        target = [[old + due] for old, due in zip(behind, ideal, strict=True)]
        real = whole_gpus(target, [gpus], minima)
        require(sum(row[0] for row in real) <= gpus, "no round gives out more than there is")
        require(
            all(row[0] in (0, *range(size, gpus + 1)) for row, size in zip(real, least, strict=True)), "minima hold"
        )
        behind = tuple(Fraction(row[0]) for row in carried(target, real))
        history.append(tuple(row[0] for row in real))
    cycle = history[seen[behind] :]
    means = [Fraction(sum(column), len(cycle)) for column in zip(*cycle, strict=True)]
    # once more round the cycle, so that a wait across its end counts whole
    return Cycle(means == ideal, max(map(_longest_wait, zip(*history, *cycle, strict=True))))


def _longest_wait(column: tuple[int, ...]) -> int:
    longest = here = 0
    for got in column:
        here = 0 if got else here + 1
        longest = max(longest, here)
    return longest


@dataclass(frozen=True)
class Starved:
    """A tenant whose one job never runs: the market, the optimum, what it is due and what becomes of it."""

    market: Market
    shares: Array
    only: bool
    needs: int
    due: Fraction
    ran: int
    behind: Fraction


def starving() -> Starved:
    """Three tenants on two slow and four fast GPUs; the slow tenant's one job is a gang of four."""
    cluster = Cluster.uniform({"T1": (1, 2), "T2": (1, 4)})
    jobs = Jobs.of(
        gpus=[4, 2, 2],
        work=[10**9] * 3,
        types=cluster.types,
        throughput=[[4, 4], [2, 6], [2, 6]],
        tenant=["u1", "u2", "u3"],
    )
    market = Market.of([[1, 1], [1, 3], [1, 3]], [2, 4])
    decision = decide(CooperativeOEF(), market)
    records = list(run(OEFRounds(), Trace(jobs), cluster, length=1, rounds=WATCHED, backend=Exact()))
    state = records[-1].after.state
    require(list(state.ideal["u1"]) == decision.shares[0].tolist(), "the run shares as the market's optimum does")
    require(not records[0].unschedulable, "the job fits a type")
    return Starved(
        market,
        decision.shares,
        only_optimum(CooperativeOEF(), decision),
        int(jobs.gpus[0]),
        decision.shares[0, 0],
        sum(ran.job == "j1" for record in records for ran in record.ran),
        sum(state.deviation["u1"], Fraction(0)),
    )
