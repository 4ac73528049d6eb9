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
from fairopt.testing.certificate_kinds.examples import (
    PAIR,
    Json,
    certificate,
    market,
)
from fairopt.testing.certificate_kinds.programs import OF_OTHERS, of_others
from fairopt.testing.certificate_kinds.truth import (
    Truth,
    extreme_of,
    market_of,
    policy_of,
    require,
    shares_of,
)
from fairopt.testing.certificate_samples import fractions

# -- worked out by hand ------------------------------------------------------------------------------------------------
LIE = certificate(
    "misreport",
    market=PAIR,
    policy="second-price-trading",
    user="A",
    report=[1, 3],
    gain="1/28",
    truth=TRADING,
    lie=TRADING_3,
)
LIE_WHATEVER_OPTIMUM = certificate(
    "misreport",
    market=PAIR,
    policy="oef-cooperative",
    user="A",
    report=[1, 4],
    gain="1/4",
    truth=certificate(
        "extreme",
        of=COOPERATIVE,
        sense="maximize",
        weights=[[1, 2], [0, 0]],
        allocation=[[1, "1/4"], [0, "3/4"]],
        value="3/2",
        duals=[["capacity", 0, "5/3"], ["capacity", 1, "10/3"], ["optimum", "-2/3"]],
    ),
    lie=certificate(
        "extreme",
        of=COOPERATIVE_4,
        sense="minimize",
        weights=[[1, 2], [0, 0]],
        allocation=[[1, "3/8"], [0, "5/8"]],
        value="7/4",
        duals=[["capacity", 0, "3/2"], ["capacity", 1, 8], ["envy_free", 0, 1, "-1/2"], ["optimum", -2]],
    ),
)


#: A says that it runs at 6 on the second type, and then gets all of it.
LIE_TO_OTHERS = certificate(
    "misreport",
    market=PAIR,
    policy="by-somebody-else",
    user="A",
    report=[1, 6],
    gain=2,
    truth=OF_OTHERS,
    lie=of_others(market({"A": [1, 6], "B": [1, 5]}, [1, 1]), [1, 6, 1, 5], [1, 1, 0, 0]),
)


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


TRUTH: dict[str, Truth] = {
    "misreport": _misreport,
}
EXAMPLES: dict[str, Json] = {
    "LIE": LIE,
    "LIE_WHATEVER_OPTIMUM": LIE_WHATEVER_OPTIMUM,
    "LIE_TO_OTHERS": LIE_TO_OTHERS,
}
