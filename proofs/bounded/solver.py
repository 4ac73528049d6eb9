"""Asking Z3 a question that is too large for one query: split it where it has cases, ask again, keep count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

import z3

#: What a variable or a term over the reals is to Z3.
Term = z3.ArithRef


@dataclass(frozen=True)
class Disjunction:
    """A disjunction that may be split: one of ``ways`` holds; each way is a list of constraints."""

    ways: tuple[tuple[z3.BoolRef, ...], ...]

    def whole(self) -> z3.BoolRef:
        """Return the disjunction as one constraint."""
        return z3.Or(*(z3.And(*way) for way in self.ways))


@dataclass(frozen=True)
class Question:
    """Asks for a real point that satisfies ``constraints`` and one way of each case."""

    constraints: tuple[z3.BoolRef, ...]
    cases: tuple[Disjunction, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class Limits:
    """Seconds for a query that can still be split, for one that cannot, for guesses, and for all of a decision."""

    split: float = 2.0
    leaf: float = 20.0
    guess: float = 30.0
    total: float = 120.0


@dataclass
class Reply:
    """``model`` where a point was found; else nothing satisfies the question, unless some parts stayed ``open``."""

    model: z3.ModelRef | None = None
    queries: int = 0
    seconds: float = 0.0
    open: int = 0


@dataclass
class Asker:
    """Asks questions one after another within ``limits`` and counts; Ctrl-C ends it like any other program."""

    limits: Limits
    queries: int = 0
    _begun: float = field(default_factory=monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since the first question could have been asked."""
        return monotonic() - self._begun

    def ask(self, question: Question) -> Reply:
        """Return whether the question has a solution: whole at first, then way by way of one case after the other.

        A query that Z3 gives up on is replaced by one query for each way of the next case; what is left open when no
        case is left, or no time, is counted, never guessed.
        """
        reply = Reply()
        begun, before = monotonic(), self.queries
        self._visit(question.constraints, question.cases, reply)
        reply.seconds, reply.queries = monotonic() - begun, self.queries - before
        return reply

    def once(self, question: Question) -> Reply:
        """Return the reply to the question asked whole, with what Z3 gives up on left open."""
        begun = monotonic()
        parts = (*question.constraints, *(case.whole() for case in question.cases))
        answer, model = self._query(parts, self.limits.split)
        return Reply(model, 1, monotonic() - begun, int(answer == z3.unknown))

    def _visit(self, fixed: tuple[z3.BoolRef, ...], cases: Sequence[Disjunction], reply: Reply) -> None:
        left = self.limits.total - self.seconds
        if left <= 0:
            reply.open += 1
            return
        patience = min(left, self.limits.split if cases else self.limits.leaf)
        answer, model = self._query((*fixed, *(case.whole() for case in cases)), patience)
        if answer == z3.sat:
            reply.model = model
        elif answer == z3.unknown and cases:
            for way in cases[0].ways:
                self._visit((*fixed, *way), cases[1:], reply)
                if reply.model is not None:
                    return
        elif answer == z3.unknown:
            reply.open += 1

    def _query(self, constraints: Sequence[z3.BoolRef], seconds: float) -> tuple[z3.CheckSatResult, z3.ModelRef | None]:
        solver = z3.SolverFor("QF_NRA")
        solver.set("timeout", max(1, int(1000 * seconds)))
        solver.add(*constraints)
        self.queries += 1
        answer = solver.check()
        return answer, solver.model() if answer == z3.sat else None
