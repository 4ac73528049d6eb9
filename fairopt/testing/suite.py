"""Conformance suites: named checks, what each requires, and a report that says what ran.

A `Suite` holds checks for one kind of thing (backends, policies, properties). Run on a subject it yields one
`RESULT` a check, and a `Report` that refuses to be green where a subject ran fewer checks than its declared
capabilities imply: a skip is legitimate only if a declared capability is absent or the subject is not installed. A
check that finds it cannot run raises `unittest.SkipTest`, and counts as missing, not as fine.

>>> def adds_up(numbers):
...     '''Guards against sums that lose a term.'''
...     assert sum(numbers) == 6
>>> def has_a_first(numbers):
...     '''Guards against empty lists.'''
...     assert numbers[0]
>>> suite = Suite("lists", [check(adds_up), check(has_a_first, "ordered")], lambda it: Traits(type(it).__name__))
>>> report = suite.run([[1, 2, 3], {3, 2, 1}])
>>> print(report)
lists: 2 checks
             list  set
adds up      ran   ran
has a first  -     -
2 ran, 2 skipped
list x has a first: skipped: does not declare ordered
set x has a first: skipped: does not declare ordered
>>> report.require_complete()
"""

from __future__ import annotations

import enum
import inspect
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar
from unittest import SkipTest

from fairopt.report import ResultForm, Statement

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., None])


class Outcome(enum.Enum):
    """How one check ended on one subject; the value is what the table shows."""

    RAN = "ran"
    SKIPPED = "-"
    EXPECTED_FAILURE = "xfail"
    FAILED = "FAILED"
    MISSING = "MISSING"
    """The check skipped itself although the declared capabilities imply it."""
    SURPRISE = "PASSED?"
    """A failure was expected, with a reason, and did not happen: the record is out of date."""


#: What is said of the number of checks that ended so, and of one of them.
_WORDS = {
    Outcome.RAN: ("ran", "ran"),
    Outcome.SKIPPED: ("skipped", "skipped"),
    Outcome.EXPECTED_FAILURE: ("expected failures", "fails as expected"),
    Outcome.FAILED: ("failed", "FAILED"),
    Outcome.MISSING: ("missing", "did not run though its declarations imply it"),
    Outcome.SURPRISE: ("passed against expectation", "passed though a failure was expected; delete the record"),
}


@dataclass(frozen=True)
class Check(Generic[S]):
    """One check: raises AssertionError (or anything) when ``subject`` is wrong; its docstring names the bug.

    ``requires`` are the capabilities, of whatever type the subjects declare, without which it makes no sense.

    >>> Check("is even", lambda number: None, guards="odd numbers").documentation
    'odd numbers'
    """

    name: str
    function: Callable[[S], None]
    requires: frozenset[Any] = frozenset()
    guards: str = ""

    def __post_init__(self) -> None:
        if not (self.guards or self.function.__doc__):
            raise ValueError(f"check {self.name!r} has no docstring; say which bug it guards against")

    @property
    def documentation(self) -> str:
        """What the check guards against."""
        return self.guards or str(self.function.__doc__)


def check(function: Callable[[S], None], *requires: Any) -> Check[S]:
    """Make a check of a documented function, named like it.

    >>> def is_even(number):
    ...     '''Guards against odd numbers.'''
    >>> check(is_even).name
    'is even'
    """
    return Check(function.__name__.replace("_", " "), function, frozenset(requires))


def requires(*capabilities: Any) -> Callable[[F], F]:
    """Say of a function which is a check what a subject must declare, without which it makes no sense.

    >>> @requires("ordered")
    ... def has_a_first(subject):
    ...     '''Guards against empty lists.'''
    >>> checks_of(has_a_first)[0].requires
    frozenset({'ordered'})
    """

    def said(function: F) -> F:
        function.requires = frozenset(capabilities)  # type: ignore[attr-defined]
        return function

    return said


def checks_of(*sources: Any, given: Any = None) -> list[Check[Any]]:
    """Make a check of each function, and of every public one of each module whose docstring begins "Guards against".

    They come in the order of writing. Who has an argument of that name gets what is ``given``.

    >>> def has_a_first(subject, given):
    ...     '''Guards against empty lists.'''
    >>> [each.name for each in checks_of(has_a_first, given=7)]
    ['has a first']
    """
    found = [each for source in sources for each in (_guards(source) if inspect.ismodule(source) else [source])]
    return [_check(each, given) for each in found]


def _guards(module: Any) -> list[Callable[..., None]]:
    functions = (each for each in vars(module).values() if inspect.isfunction(each) and each.__name__[0] != "_")
    own = (each for each in functions if each.__module__ == module.__name__)
    return [each for each in own if (each.__doc__ or "").startswith("Guards against")]


def _check(function: Callable[..., None], given: Any) -> Check[Any]:
    made = check(function, *getattr(function, "requires", ()))
    asks = "given" in inspect.signature(function).parameters
    return replace(made, function=partial(function, given=given), guards=str(function.__doc__)) if asks else made


@dataclass(frozen=True)
class Traits:
    """What a suite must know of a subject.

    ``absent`` says why it cannot be run here at all (not installed); ``expected_failures`` gives, by the name of a
    check, the measured reason why it fails.

    >>> Traits("my solver", absent="not installed").absent
    'not installed'
    """

    name: str
    capabilities: frozenset[Any] = frozenset()
    absent: str = ""
    expected_failures: Mapping[str, str] = field(default_factory=dict)


#: How one ``check`` ended on one ``subject``: the ``outcome``, the ``reason`` for it, and an ``error`` that was raised.
RESULT = ResultForm(
    "How one check ended on one subject.",
    in_full=True,
    sentence=lambda it: f"{it.subject} x {it.check}: {_WORDS[it.outcome][1]}: {it.reason}",
)


def _ended(subject: str, check: str, outcome: Outcome, reason: str, error: BaseException | None = None) -> Statement:
    return RESULT.of(subject=subject, check=check, outcome=outcome, reason=reason, error=error)


@dataclass(frozen=True, eq=False)
class Suite(Generic[S]):
    """Checks for one kind of thing; ``traits`` reads a subject's name and declarations.

    >>> def is_even(number):
    ...     '''Guards against odd numbers.'''
    ...     assert number % 2 == 0
    >>> numbers = Suite("numbers", [check(is_even)], lambda number: Traits(str(number)))
    >>> [row.outcome.value for row in numbers.run([2, 3]).rows]
    ['ran', 'FAILED']
    """

    title: str
    checks: Sequence[Check[S]]
    traits: Callable[[S], Traits]

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(one.name for one in self.checks).items() if count > 1]
        if twice:
            raise ValueError(f"two checks of suite {self.title!r} are called {twice[0]!r}")

    def run(self, subjects: Iterable[S]) -> Report:
        """Run every check on every subject."""
        rows: list[Statement] = []
        expected: dict[str, int] = {}
        for subject in subjects:
            traits = self.traits(subject)
            if traits.name in expected:
                raise ValueError(f"two subjects are called {traits.name!r}; the table could not tell them apart")
            expected[traits.name] = sum(not self.why_not(traits, one) for one in self.checks)
            rows += [self.run_one(subject, one) for one in self.checks]
        return Report(self.title, tuple(one.name for one in self.checks), expected, tuple(rows))

    def run_one(self, subject: S, one: Check[S]) -> Statement:
        """Run one check on one subject; never raise for how it ends."""
        traits = self.traits(subject)
        if unknown := set(traits.expected_failures) - {each.name for each in self.checks}:
            raise ValueError(f"{traits.name} expects failures of checks that do not exist: {sorted(unknown)}")
        if reason := self.why_not(traits, one):
            return _ended(traits.name, one.name, Outcome.SKIPPED, reason)
        known = traits.expected_failures.get(one.name, "")
        try:
            one.function(subject)
        except SkipTest as skip:
            return _ended(traits.name, one.name, Outcome.MISSING, f"skipped itself: {skip}", skip)
        except Exception as error:  # noqa: BLE001  # whatever a subject raises is what the report is about
            outcome = Outcome.EXPECTED_FAILURE if known else Outcome.FAILED
            return _ended(traits.name, one.name, outcome, known or _told(error), error)
        return _ended(traits.name, one.name, Outcome.SURPRISE if known else Outcome.RAN, known)

    @staticmethod
    def why_not(traits: Traits, one: Check[S]) -> str:
        """Return the legitimate reason not to run a check, empty if there is none."""
        if traits.absent:
            return traits.absent
        lacking = sorted(str(getattr(need, "value", need)) for need in one.requires - traits.capabilities)
        return f"does not declare {', '.join(lacking)}" if lacking else ""

    def parametrize(self, subjects: Iterable[S]) -> Any:
        """Return a pytest mark that gives a test the argument ``conforms``: call it, and it fails, skips or passes."""
        import pytest

        def conforms(subject: S, one: Check[S]) -> None:
            row = self.run_one(subject, one)
            if row.outcome is Outcome.SKIPPED:
                pytest.skip(row.reason)
            if row.outcome is Outcome.EXPECTED_FAILURE:
                pytest.xfail(row.reason)
            if row.outcome is not Outcome.RAN:
                guards = f"the check guards against: {one.documentation}"
                raise AssertionError(f"{row}\n{guards}") from row.error

        cases = [
            pytest.param(partial(conforms, subject, one), id=f"{name}: {one.name}")
            for subject, name in [(each, self.traits(each).name) for each in subjects]
            for one in self.checks
        ]
        return pytest.mark.parametrize("conforms", cases)


@dataclass(frozen=True, eq=False)
class Report:
    """What ran: one row a subject and check, and how many checks each subject's declarations imply."""

    title: str
    checks: tuple[str, ...]
    expected: Mapping[str, int]
    rows: tuple[Statement, ...]

    @property
    def counts(self) -> Counter[Outcome]:
        """How often each outcome came up."""
        return Counter(row.outcome for row in self.rows)

    def ran(self, subject: str) -> int:
        """Return how many checks were carried out on ``subject``, whatever they found."""
        idle = (Outcome.SKIPPED, Outcome.MISSING)
        return sum(row.subject == subject and row.outcome not in idle for row in self.rows)

    def of(self, outcome: Outcome) -> tuple[Statement, ...]:
        """Return the rows that ended so."""
        return tuple(row for row in self.rows if row.outcome is outcome)

    def require_complete(self) -> None:
        """Raise `AssertionError` unless every check that the declarations imply ran, and ended as it should."""
        kinds = (Outcome.FAILED, Outcome.MISSING, Outcome.SURPRISE)
        wrong = [str(row) for kind in kinds for row in self.of(kind)]
        for subject, implied in self.expected.items():
            if (ran := self.ran(subject)) != implied:
                wrong.append(f"{subject} ran {ran} checks; what it declares implies {implied}")
        if wrong:
            raise AssertionError("\n".join([f"suite {self.title!r}:", *wrong, *self._tracebacks()]))

    def _tracebacks(self) -> Iterator[str]:
        """Yield where the errors came from, once for each that came from the same lines."""
        failed: dict[str, list[str]] = {}
        for row in self.of(Outcome.FAILED):
            if row.error is not None and row.error.__traceback__ is not None:
                below = row.error.__traceback__.tb_next  # the first frame is the suite's own
                lines = traceback.format_exception(type(row.error), row.error, below)
                at = "".join(lines[-3:])  # the innermost frames and the error
                failed.setdefault(at, ["".join(lines).rstrip()]).append(f"{row.subject} x {row.check}")
        for text, *rows in failed.values():
            yield f"\n{rows[0]}{f', and {len(rows) - 1} more checks' * (len(rows) > 1)}:\n{text}"

    def __str__(self) -> str:
        cell = {(row.check, row.subject): row.outcome.value for row in self.rows}
        table = [["", *self.expected], *([name, *(cell[name, each] for each in self.expected)] for name in self.checks)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
        counts = self.counts
        totals = ", ".join(f"{counts[outcome]} {_WORDS[outcome][0]}" for outcome in Outcome if counts[outcome])
        reasons = [str(row) for row in self.rows if row.outcome is not Outcome.RAN]
        return "\n".join([f"{self.title}: {len(self.checks)} checks", *lines, totals, *reasons])


def _told(error: Exception) -> str:
    """Return what an error says, and the innermost line of the plug-in; an assertion without words is shown itself."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [each for each in frames if not Path(each.filename).is_relative_to(Path(__file__).parents[1])]
    where = "".join(f" ({Path(at.filename).name}:{at.lineno}, in {at.name})" for at in theirs[-1:])
    return f"{type(error).__name__}: {str(error) or frames[-1].line}{where}"
