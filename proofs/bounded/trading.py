"""Gandiva_fair's second-price trading: one trade, in any state that the algorithm can be in."""

from __future__ import annotations

from itertools import combinations

import z3

from fairopt.proofs.bounded.decisions import HOLDS, REFUTED, UNKNOWN, BoundedDecision
from fairopt.proofs.bounded.solver import Asker, Limits, Question


def hurts_nobody(claim: str, n: int, limits: Limits) -> BoundedDecision:
    """Gandiva_fair Sec. 3.4: no trade leaves one of its two sides worse off, or with a negative number of GPUs.

    A trade concerns two types. The state is any holdings, not only those that trades lead to, so that the answer is
    for any number of types and trades; and as trading starts from the own partition, nobody ends below it. The buyer
    has the largest ratio (fast to slow speedup) of all that hold slow GPUs, the seller the least of all that hold fast
    ones; ``bidders`` are the others whose ratio is above the seller's and who hold slow GPUs. The price is the largest
    of theirs, or the middle of buyer's and seller's ratio. Demands only make the amount smaller.
    """
    asker = Asker(limits)
    still_open = 0
    for count in range(n - 1):
        for bidders in combinations(range(2, n), count):
            reply = asker.ask(_question(n, bidders))
            if reply.model is not None:
                return BoundedDecision(claim, f"{n}xk", REFUTED, None, str(reply.model), asker.seconds, asker.queries)
            still_open += reply.open
    answer = UNKNOWN if still_open else HOLDS
    return BoundedDecision(claim, f"{n}xk", answer, None, "", round(asker.seconds, 2), asker.queries, still_open)


def _question(n: int, bidders: tuple[int, ...]) -> Question:
    ratio = [z3.Real(f"ratio_{i}") for i in range(n)]
    slow = [z3.Real(f"slow_{i}") for i in range(n)]
    fast = [z3.Real(f"fast_{i}") for i in range(n)]
    price, amount = z3.Reals("price amount")
    buyer, seller = 0, 1
    state = [term >= 0 for term in (*slow, *fast)] + [term > 0 for term in ratio]
    state += [slow[buyer] > 0, fast[seller] > 0, ratio[buyer] > ratio[seller]]
    state += [z3.Implies(slow[i] > 0, ratio[i] <= ratio[buyer]) for i in range(n)]
    state += [z3.Implies(fast[i] > 0, ratio[i] >= ratio[seller]) for i in range(n)]
    for i in range(2, n):
        bids = z3.And(slow[i] > 0, ratio[i] > ratio[seller])
        state.append(bids if i in bidders else z3.Not(bids))
    if bidders:
        state += [price >= ratio[i] for i in bidders] + [z3.Or(*(price == ratio[i] for i in bidders))]
    else:
        state.append(2 * price == ratio[buyer] + ratio[seller])
    state += [amount >= 0, amount <= fast[seller], amount * price <= slow[buyer]]
    # in units of a GPU of the slow type: who gets f fast GPUs for s slow ones gains ratio * f - s
    bought = ratio[buyer] * amount - price * amount
    sold = price * amount - ratio[seller] * amount
    wrong = [bought < 0, sold < 0, slow[buyer] - price * amount < 0, fast[seller] - amount < 0]
    return Question((*state, z3.Or(*wrong)))
