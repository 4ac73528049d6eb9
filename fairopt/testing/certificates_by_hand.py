"""A certificate of every kind, worked out by hand from the definitions: nothing here was made by fairopt.

Most speak of the market of OEF Eq. (6): A runs at 1 and 2 on two types, B at 1 and 5, and of each there is one GPU.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def market(speedups: dict[str, list[Any]], capacity: list[Any], **more: dict[str, Any]) -> Json:
    """Return a market as certificates hold it; ``more`` gives weights and demands by the name of a user."""
    users = [{"name": name, "speedup": row} | more.get(name, {}) for name, row in speedups.items()]
    return {"schema": 1, "types": [f"T{j}" for j in range(len(capacity))], "capacity": capacity, "user": users}


def certificate(kind: str, **body: Any) -> Json:
    """Return a certificate of a kind."""
    return {"schema": 1, "certificate": kind} | body


PAIR = market({"A": [1, 2], "B": [1, 5]}, [1, 1])
#: A says that it runs at 4 (or 3) on the second type.
SAYS_4 = market({"A": [1, 4], "B": [1, 5]}, [1, 1])
SAYS_3 = market({"A": [1, 3], "B": [1, 5]}, [1, 1])
#: Two users that are alike, and one GPU: every division of it is most efficient.
ALIKE = market({"A": [1], "B": [1]}, [1])
#: B cannot run on the second type, so that equality with B leaves one of its GPUs idle.
CANNOT_RUN = market({"A": [1, 1], "B": [1, 0]}, [1, 2])

EFFICIENT = certificate(
    "optimality",
    market=PAIR,
    policy="max-efficiency",
    allocation=[[1, 0], [0, 1]],
    value=6,
    duals=[["capacity", 0, 1], ["capacity", 1, 5]],
)
COOPERATIVE = certificate(
    "optimality",
    market=PAIR,
    policy="oef-cooperative",
    allocation=[[1, "1/4"], [0, "3/4"]],
    value="21/4",
    duals=[["capacity", 0, "7/4"], ["capacity", 1, "7/2"], ["envy_free", 0, 1, "-3/4"]],
)
COOPERATIVE_4 = certificate(
    "optimality",
    market=SAYS_4,
    policy="oef-cooperative",
    allocation=[[1, "3/8"], [0, "5/8"]],
    value="45/8",
    duals=[["capacity", 0, "9/8"], ["capacity", 1, "9/2"], ["envy_free", 0, 1, "-1/8"]],
)
NONCOOPERATIVE = certificate(
    "optimality",
    market=PAIR,
    policy="oef-noncooperative",
    allocation=[[1, "4/7"], [0, "3/7"]],
    value="30/7",
    duals=[
        ["capacity", 0, "10/7"],
        ["capacity", 1, "20/7"],
        ["equal_efficiency", 0, "-3/7"],
        ["equal_efficiency", 1, "3/7"],
    ],
    variables={"level": "15/7"},
)
LEAST = [["capacity", 0, "10/27"], ["capacity", 1, "20/27"], ["least_ratio", 0, "-5/9"], ["least_ratio", 1, "-4/9"]]
MAX_MIN = certificate(
    "optimality",
    market=PAIR,
    policy="max-min",
    allocation=[[1, "1/3"], [0, "2/3"]],
    value="10/9",
    duals=LEAST,
    variables={"least_ratio": "10/9"},
)
LEVELS = certificate(
    "levels",
    market=PAIR,
    allocation=[[1, "1/3"], [0, "2/3"]],
    rounds=[{"level": "10/9", "fixed": ["A", "B"], "duals": LEAST}],
)
#: A runs on the first type only, B and C on the second only: A reaches 3 times its own partition, the others 3/2.
TWO_LEVELS = certificate(
    "levels",
    market=market({"A": [1, 0], "B": [0, 1], "C": [0, 1]}, [1, 8]),
    allocation=[[1, 0], [0, 4], [0, 4]],
    rounds=[
        {
            "level": "3/2",
            "fixed": ["B", "C"],
            "duals": [["capacity", 1, "3/16"], ["least_ratio", 1, "-1/2"], ["least_ratio", 2, "-1/2"]],
        },
        {"level": 3, "fixed": ["A"], "duals": [["capacity", 0, 3], ["least_ratio", 0, -1]]},
    ],
)
SHARED = {"allocation": [[1, "1/4"], [0, "3/4"]], "prices": ["2/3", "4/3"]}
EQUILIBRIUM = certificate("equilibrium", market=PAIR, **SHARED)
PARTIAL = certificate(
    "partial",
    market=PAIR,
    allocation=[["5/8", "5/32"], [0, "3/8"]],
    kept=["5/8", "1/2"],
    together=SHARED,
    apart=[
        {"allocation": [[1, 1]], "prices": ["1/6", "5/6"]},
        {"allocation": [[1, 1]], "prices": ["1/3", "2/3"]},
    ],
)
EQUAL_SPLIT = certificate("trace", market=PAIR, allocation=[["1/2", "1/2"], ["1/2", "1/2"]])


def trade(price: Any, fast_amount: Any, slow_amount: Any) -> Json:
    """Return the trade in which B buys GPUs of the second type from A."""
    words = {"buyer": "B", "seller": "A", "fast": "T1", "slow": "T0"}
    return words | {"price": price, "fast_amount": fast_amount, "slow_amount": slow_amount}


TRADING = certificate("trace", market=PAIR, allocation=[[1, "5/14"], [0, "9/14"]], trades=[trade("7/2", "1/7", "1/2")])
TRADING_3 = certificate("trace", market=SAYS_3, allocation=[[1, "3/8"], [0, "5/8"]], trades=[trade(4, "1/8", "1/2")])
ANY_SPLIT = certificate(
    "optimality",
    market=ALIKE,
    policy="max-efficiency",
    allocation=[["1/2"], ["1/2"]],
    value=1,
    duals=[["capacity", 0, 1]],
)
MOST = certificate(
    "extreme",
    of=ANY_SPLIT,
    sense="maximize",
    weights=[[1], [0]],
    allocation=[[1], [0]],
    value=1,
    duals=[["capacity", 0, 1]],
)
LEAST_OF_A = certificate(
    "extreme", of=ANY_SPLIT, sense="minimize", weights=[[1], [0]], allocation=[[0], [1]], value=0, duals=[]
)
FAIR = certificate(
    "property", market=PAIR, allocation=COOPERATIVE["allocation"], property="envy_freeness", answer="HOLDS"
)
#: B counts twice, and has twice as much.
WEIGHTED = certificate(
    "property",
    market=market({"A": [1, 2], "B": [1, 5]}, [1, 1], B={"weight": 2}),
    allocation=[["1/3", "1/3"], ["2/3", "2/3"]],
    property="envy_freeness",
    answer="HOLDS",
)
#: Each can use one GPU only: of the three halves that are its own partition it uses the two that are fastest.
DEMANDING = certificate(
    "property",
    market=market({"A": [1, 2], "B": [1, 5]}, [2, 1], A={"demand": 1}, B={"demand": 1}),
    allocation=[["1/2", "1/2"], ["1/2", "1/2"]],
    property="sharing_incentive",
    answer="HOLDS",
)
ENVY = certificate("envy", market=PAIR, allocation=[[1, 0], [0, 1]], user="A", envied="B")
DOMINANCE = certificate("dominance", market=ALIKE, allocation=[["1/2"], [0]], better=[["1/2"], ["1/2"]])
EQUAL = certificate(
    "optimality",
    market=CANNOT_RUN,
    policy="oef-noncooperative",
    allocation=[[0, 1], [1, 0]],
    value=2,
    duals=[["capacity", 0, 2], ["equal_efficiency", 0, 1], ["equal_efficiency", 1, -1]],
    variables={"level": 1},
)
DOMINANCE_OVER_ALL = certificate(
    "dominance",
    market=CANNOT_RUN,
    allocation=[[0, 1], [1, 0]],
    better=[[0, 2], [1, 0]],
    optima=[
        certificate(
            "extreme",
            of=EQUAL,
            sense="maximize",
            weights=[[1, 1], [0, 0]],
            allocation=[[0, 1], [1, 0]],
            value=1,
            duals=[["capacity", 0, 1], ["equal_efficiency", 0, 1], ["equal_efficiency", 1, -1]],
            variables={"level": 1},
        ),
        certificate(
            "extreme",
            of=EQUAL,
            sense="maximize",
            weights=[[0, 0], [1, 0]],
            allocation=[[0, 1], [1, 0]],
            value=1,
            duals=[["capacity", 0, 1]],
            variables={"level": 1},
        ),
    ],
)
PARETO = certificate("pareto_weights", market=PAIR, allocation=[[1, 0], [0, 1]], weights=[1, 1], prices=[1, 5])
#: Each can use one GPU only, so that half of them are of no use; the right to use one more is worth something.
PARETO_DEMANDS = certificate(
    "pareto_weights",
    market=market({"A": [1, 2], "B": [1, 5]}, [2, 1], A={"demand": 1}, B={"demand": 1}),
    allocation=[[1, 0], [0, 1]],
    weights=[1, 1],
    prices=[0, 4],
    rents=[1, 1],
)
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
NO_POINT = certificate(
    "infeasibility",
    program={
        "sense": "maximize",
        "offset": 0,
        "variables": [{"cost": 0, "lower": 0, "upper": 1, "integer": False}],
        "rows": [{"terms": [[0, 1]], "lower": 2, "upper": None}],
    },
    duals=[["row", 0, -1]],
)
OUT_OF_REACH = certificate(
    "infeasibility",
    market=PAIR,
    at_least=[["A", 4]],
    duals=[["at_least", 0, -1], ["capacity", 0, 1], ["capacity", 1, 2]],
)
WHOLE = certificate(
    "bound",
    program={
        "sense": "maximize",
        "offset": 0,
        "variables": [{"cost": 1, "lower": 0, "upper": None, "integer": True}],
        "rows": [{"terms": [[0, 2]], "lower": None, "upper": 3}],
    },
    point=[1],
    value=1,
    bound="3/2",
    gap="1/2",
    duals=[["row", 0, "1/2"]],
)
CHEAPEST = certificate(
    "bound",
    program={
        "sense": "minimize",
        "offset": 1,
        "variables": [{"cost": 3, "lower": 0, "upper": None, "integer": False}],
        "rows": [{"terms": [[0, 1]], "lower": 2, "upper": None}],
    },
    point=[2],
    value=7,
    bound=7,
    gap=0,
    duals=[["row", 0, -3]],
)


def of_others(told: Json, cost: list[int], point: list[int]) -> Json:
    """Return the optimum of a program by somebody else: the sum of costs times shares, one GPU of either type."""
    value = sum(c * x for c, x in zip(cost, point, strict=True))
    prices = [max(cost[0], cost[2]), max(cost[1], cost[3])]
    return certificate(
        "bound",
        market=told,
        policy="by-somebody-else",
        program={
            "sense": "maximize",
            "offset": 0,
            "variables": [{"cost": c, "lower": 0, "upper": None, "integer": False} for c in cost],
            "rows": [{"terms": [[j, 1], [j + 2, 1]], "lower": None, "upper": 1} for j in (0, 1)],
        },
        point=point,
        shares=[[0, 1], [2, 3]],
        value=value,
        bound=value,
        gap=0,
        duals=[["row", j, price] for j, price in enumerate(prices)],
    )


OF_OTHERS = of_others(PAIR, [1, 2, 1, 5], [1, 0, 0, 1])
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
HALFWAY = certificate(
    "bound",
    market=PAIR,
    policy="max-efficiency",
    allocation=[[1, 0], [0, 0]],
    value=1,
    bound=6,
    gap=5,
    duals=[["capacity", 0, 1], ["capacity", 1, 5]],
)
#: All of them, by name.
BY_HAND: dict[str, Json] = {
    name: value for name, value in list(globals().items()) if isinstance(value, dict) and "certificate" in value
}
