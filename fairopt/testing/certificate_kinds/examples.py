"""Markets that certificates worked out by hand speak of, and how one is written.

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


def prices(*of: Any) -> list[list[Any]]:
    """Return the duals of the capacities of as many types."""
    return [["capacity", j, price] for j, price in enumerate(of)]


def optimality(policy: str, market: Json, allocation: Any, value: Any, duals: list[Any], **more: Any) -> Json:
    """Return a certificate of a policy's optimum; ``more`` may tell the other ``variables`` of its program."""
    return certificate(
        "optimality", market=market, policy=policy, allocation=allocation, value=value, duals=duals, **more
    )


def extreme(of: Json, sense: str, weights: Any, allocation: Any, value: Any, duals: list[Any], **more: Any) -> Json:
    """Return a certificate of the extreme of a sum of shares over the optima ``of`` a decision."""
    body = {"allocation": allocation, "value": value, "duals": duals}
    return certificate("extreme", of=of, sense=sense, weights=weights, **body, **more)


PAIR = market({"A": [1, 2], "B": [1, 5]}, [1, 1])
#: A says that it runs at 4 (or 3) on the second type.
SAYS_4 = market({"A": [1, 4], "B": [1, 5]}, [1, 1])
SAYS_3 = market({"A": [1, 3], "B": [1, 5]}, [1, 1])
#: Two users that are alike, and one GPU: every division of it is most efficient.
ALIKE = market({"A": [1], "B": [1]}, [1])
#: B cannot run on the second type, so that equality with B leaves one of its GPUs idle.
CANNOT_RUN = market({"A": [1, 1], "B": [1, 0]}, [1, 2])
