"""Certificates about misreports: examples by hand, and when they are true."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fairopt.evidence import throughput_of
from fairopt.problem import worth
from fairopt.program import Sense
from fairopt.testing.certificate_kinds import decisions, programs
from fairopt.testing.certificate_kinds.decisions import COOPERATIVE, COOPERATIVE_4, TRADING, TRADING_3
from fairopt.testing.certificate_kinds.examples import PAIR, Json, certificate, extreme, market, prices
from fairopt.testing.certificate_kinds.programs import OF_OTHERS, of_others
from fairopt.testing.certificate_kinds.truth import Truth, extreme_of, market_of, policy_of, require, shares_of
from fairopt.testing.certificate_samples import fractions


# -- worked out by hand ------------------------------------------------------------------------------------------------
def misreport(policy: str, report: list[int], gain: Any, truth: Json, lie: Json) -> Json:
    """Return a certificate of what A gains from a policy by a report."""
    proofs = {"truth": truth, "lie": lie}
    return certificate("misreport", market=PAIR, policy=policy, user="A", report=report, gain=gain, **proofs)


LIE = misreport("second-price-trading", [1, 3], "1/28", TRADING, TRADING_3)
#: What A has of GPUs at its true speedups.
OWN = [[1, 2], [0, 0]]
BEST = [*prices("5/3", "10/3"), ["optimum", "-2/3"]]
WORST = [*prices("3/2", 8), ["envy_free", 0, 1, "-1/2"], ["optimum", -2]]
LIE_WHATEVER_OPTIMUM = misreport(
    "oef-cooperative",
    [1, 4],
    "1/4",
    extreme(COOPERATIVE, "maximize", OWN, COOPERATIVE["allocation"], "3/2", BEST),
    extreme(COOPERATIVE_4, "minimize", OWN, COOPERATIVE_4["allocation"], "7/4", WORST),
)
SAYS_6 = market({"A": [1, 6], "B": [1, 5]}, [1, 1])
#: A says that it runs at 6 on the second type, and then gets all of it.
LIE_TO_OTHERS = misreport("by-somebody-else", [1, 6], 2, OF_OTHERS, of_others(SAYS_6, [1, 6, 1, 5], [1, 1, 0, 0]))


# -- whether what they state is so -------------------------------------------------------------------------------------
def _misreport(data: Mapping[str, Any]) -> None:
    market, name = market_of(data), data["policy"]
    user = market.index(data["user"])
    report = fractions(data["report"])
    lie = market.misreport(user, report)
    require((report != market.speedup[user]).any(), "the report is the truth")
    made = []
    for part, told in (("truth", market), ("lie", lie)):
        (decisions.TRUTH | programs.TRUTH)[data[part]["certificate"]](data[part])
        decision = data[part]["of"] if data[part]["certificate"] == "extreme" else data[part]
        require(policy_of(data[part]) == name and market_of(decision) == told, "it decides something else")
        made.append(worth(market, user, shares_of(decision, market)[user]))
    if data["truth"]["certificate"] == "extreme":
        own = throughput_of(market, user)
        made = [extreme_of(name, market, own, Sense.MAXIMIZE), extreme_of(name, lie, own, Sense.MINIMIZE)]
    require(made[1] - made[0] == Fraction(data["gain"]) > 0, "the gain is another")


TRUTH: dict[str, Truth] = {"misreport": _misreport}
