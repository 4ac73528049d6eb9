"""Gandiva_fair's tickets where some users demand little: fairopt's own code, run on variables, path by path.

The functions of `fairopt.models.gandiva_fair.tickets` add, multiply, divide and compare. Run on variables, each
comparison that can come out either way makes two paths; on a path all comparisons are constraints, and what is returned
is a term. So every way through the code is looked at, for all positive tickets, demands and GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from fairopt.models.gandiva_fair.tickets import effective_tickets, entitled
from fairopt.proofs.bounded.decisions import HOLDS, REFUTED, UNKNOWN, BoundedDecision
from fairopt.proofs.bounded.solver import Asker, Limits, Question, Term

#: What the functions return, user by user.
Numbers = Mapping[str, "Symbol"]


@dataclass
class Path:
    """One way through the code: the answers to its comparisons in order, the first of which are prescribed."""

    assumed: Sequence[z3.BoolRef]
    answers: list[bool]
    asked: int = 0
    taken: list[z3.BoolRef] = field(default_factory=list)
    other: list[list[bool]] = field(default_factory=list)

    def choose(self, condition: z3.BoolRef) -> bool:
        """Return how a comparison comes out on this path; where both ways are possible, the other is left for later."""
        if self.asked == len(self.answers):
            ways = [answer for answer in (True, False) if self._possible(condition == answer)]
            self.other += [[*self.answers, way] for way in ways[1:]]
            self.answers.append(ways[0])
        answer = self.answers[self.asked]
        self.asked += 1
        self.taken.append(condition if answer else z3.Not(condition))
        return answer

    def _possible(self, condition: z3.BoolRef) -> bool:
        solver = z3.Solver()
        solver.add(*self.assumed, *self.taken, condition)
        return bool(solver.check() != z3.unsat)


@dataclass(frozen=True, eq=False)
class Symbol:
    """A real number that is a term of Z3; a comparison asks its path."""

    term: Term
    path: Path

    def _of(self, term: object) -> Symbol:
        return Symbol(z3.simplify(term), self.path)

    def __add__(self, other: object) -> Symbol:
        return self._of(self.term + plain(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> Symbol:
        return self._of(self.term - plain(other))

    def __mul__(self, other: object) -> Symbol:
        return self._of(self.term * plain(other))

    def __truediv__(self, other: object) -> Symbol:
        return self._of(self.term / plain(other))

    def __lt__(self, other: object) -> bool:
        return self.path.choose(self.term < plain(other))

    def __gt__(self, other: object) -> bool:
        return self.path.choose(self.term > plain(other))


def plain(value: object) -> Term | int:
    """Return what stands in a term for a `Symbol` or an integer."""
    return value.term if isinstance(value, Symbol) else int(str(value))


def paths(assumed: Sequence[z3.BoolRef], code: Callable[[Path], Numbers]) -> Iterator[tuple[Path, Numbers]]:
    """Yield every path through the code that the assumptions allow, with what it returns there."""
    waiting: list[list[bool]] = [[]]
    while waiting:
        path = Path(assumed, waiting.pop())
        yield path, code(path)
        waiting += path.other


def redistribution(claim: str, n: int, limits: Limits) -> BoundedDecision:
    """Gandiva_fair Sec. 2.1 and 3.2: what users with little demand leave is divided among the others, by tickets.

    All GPUs are handed out or all demands met; nobody gets less than 0 or more than it demands; who gets less than it
    demands has at least as much for a ticket as anybody else (which is water filling); effective tickets are as many
    as there were tickets.
    """
    asker = Asker(limits)
    users = [f"u{i}" for i in range(n)]
    tickets, demand = ({user: z3.Real(f"{what}_{user}") for user in users} for what in ("tickets", "demand"))
    gpus = z3.Real("gpus")
    positive = [term > 0 for term in (*tickets.values(), *demand.values(), gpus)]
    held, wanted = z3.Sum(*tickets.values()), z3.Sum(*demand.values())
    still_open = 0

    def run(function: Callable[..., Any]) -> Iterator[tuple[Path, dict[str, Term]]]:
        def code(path: Path) -> Numbers:
            given = ({user: Symbol(term, path) for user, term in row.items()} for row in (tickets, demand))
            result: Numbers = function(*given, Symbol(gpus, path))
            return result

        for path, result in paths(positive, code):
            yield path, {user: z3.RealVal(0) + plain(value) for user, value in result.items()}

    wrong = []
    for path, share in run(entitled):
        given = z3.Sum(*share.values())
        right = [given == z3.If(wanted < gpus, wanted, gpus)]
        for i in users:
            right += [share[i] >= 0, share[i] <= demand[i]]
            right += [z3.Implies(share[i] < demand[i], share[j] * tickets[i] <= share[i] * tickets[j]) for j in users]
        wrong += [(path, each) for each in right]
    wrong += [(path, z3.Sum(*result.values()) == held) for path, result in run(effective_tickets)]
    for path, right in wrong:
        reply = asker.ask(Question((*positive, *path.taken, z3.Not(right))))
        if reply.model is not None:
            return BoundedDecision(claim, f"{n}x1", REFUTED, None, str(reply.model), asker.seconds, asker.queries)
        still_open += reply.open
    answer = UNKNOWN if still_open else HOLDS
    return BoundedDecision(claim, f"{n}x1", answer, None, "", round(asker.seconds, 2), asker.queries, still_open)
