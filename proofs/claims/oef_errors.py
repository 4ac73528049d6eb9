"""OEF Fig. 10(b): what errors in the profiled speedups do to the throughput that OEF reaches, on real speedups.

``python -m fairopt.proofs.claims.oef_errors`` prints the whole distribution, for smaller errors too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from fairopt.ledger import Finding, Ruling
from fairopt.models import CooperativeOEF, NonCooperativeOEF
from fairopt.policy import Policy, allocate
from fairopt.program import Array
from fairopt.proofs.claims.measuring import percent
from fairopt.proofs.claims.oef_tenants import TENANTS, Spread, between, draw, market_of, tables

DRAWS, SEED, ERROR = 100, 10, 0.2
#: "About 3%": what rounds to 3% or less.
ABOUT = 0.035
MODES: dict[str, Policy] = {"cooperative": CooperativeOEF(), "non-cooperative": NonCooperativeOEF()}
#: Readings of "an error of up to 20%", for every speedup but that on the slowest type, which is 1 by definition.
LAWS = ("any error up to that", "errors of just that size")
#: Readings of the deviation: Sec. 6.4.2 compares what the profile promises with what is reached; the other is what
#: errors cost.
PROMISED, LOST = "promised against reached", "reached with errors against without"


class Run(NamedTuple):
    """What came of each draw, each an array (draws,): two deviations, the worst envy, the worst-off tenant.

    Envy is by how much a tenant would truly be better off with another's shares, relatively; ``partition`` is how far
    the worst-off tenant is above (below: negative) what its own partition would give it.
    """

    deviation: dict[str, Array]
    envy: Array
    partition: Array


def fig10b(draws: int = DRAWS) -> Finding:
    """Fig. 10(b): errors of up to 20%."""
    medians = {
        (measure, law): [
            float(np.median(np.abs(run(table, mode, law, ERROR, draws).deviation[measure])))
            for table, mode in product(tables(), MODES)
        ]
        for measure, law in product((PROMISED, LOST), LAWS)
    }
    holds = {reading: max(values) <= ABOUT for reading, values in medians.items()}
    verdict = Ruling.REPRODUCED if all(holds.values()) else Ruling.QUALIFIED if any(holds.values()) else Ruling.REFUTED
    texts = [
        f"{measure}, {law}: {percent(min(values), 1)} to {percent(max(values), 1)} "
        f"({'' if holds[measure, law] else 'not '}about 3% or less)"
        for (measure, law), values in medians.items()
    ]
    cooperative = [run(table, "cooperative", LAWS[0], ERROR, draws) for table in tables()]
    largest = max(
        float(np.abs(run(table, mode, law, ERROR, draws).deviation[LOST]).max())
        for table, mode, law in product(tables(), MODES, LAWS)
    )
    envy, below = ([float(np.median(getattr(one, name))) for one in cooperative] for name in ("envy", "partition"))
    hurt = [float((one.partition < 0).mean()) for one in cooperative]
    return Finding(
        verdict,
        f"{draws} draws of {TENANTS} tenants (seed {SEED}) from each of {len(tables())} tables, errors of "
        f"{percent(ERROR, 0)}, least and largest median deviation over tables and modes: "
        f"{'; '.join(texts)}. The largest loss in any draw is {percent(largest, 1)}. What the figure hides: with any "
        f"error up to that, the tenant that envies most in the cooperative mode would truly have {between(envy)} more "
        f"with another's shares, and in {percent(min(hurt), 0)} to {percent(max(hurt), 0)} of the draws somebody falls "
        f"below its own partition (the worst-off tenant, in the median, ends {between(below)} above it).",
    )


@cache
def run(table: str, mode: str, law: str, error: float, draws: int) -> Run:
    """Decide ``draws`` markets from a table on speedups with errors, and measure by the true ones."""
    random, speedups = np.random.default_rng(SEED), tables()[table]
    found = []
    for _ in range(draws):
        market = draw(speedups, random)
        true = market.as_(float)
        wrong = (
            random.uniform(-error, error, true.shape) if law == LAWS[0] else random.choice([-error, error], true.shape)
        )
        wrong[:, 0] = 0
        told = market_of(true.speedup * (1 + wrong))
        ideal, reached = (allocate(MODES[mode], each).shares.astype(float) for each in (market, told))
        own, total = true.utility(reached), true.utility(reached).sum()
        found.append(
            (
                told.as_(float).utility(reached).sum() / total - 1,
                total / true.utility(ideal).sum() - 1,
                (true.values(reached) / own[:, None]).max() - 1,
                (own / true.fair_utility()).min() - 1,
            )
        )
    promised, lost, envy, partition = np.array(found).T
    return Run({PROMISED: promised, LOST: lost}, envy, partition)


def lines(draws: int = DRAWS) -> Iterator[str]:
    """Yield every distribution, one a line."""
    for table, mode, law, error in product(tables(), MODES, LAWS, (0.05, 0.1, 0.15, ERROR)):
        found = run(table, mode, law, error, draws)
        where = f"{table} | {mode} | {law}: {percent(error, 0)}"
        yield from (f"{where} | {measure}: {Spread.of(values)}" for measure, values in found.deviation.items())
        yield f"{where} | worst envy: {Spread.of(found.envy)} | worst against partition: {Spread.of(found.partition)}"


if __name__ == "__main__":
    print("\n".join(lines()))
