"""The ledger of claims: statements of papers and our own, what a computation says of each, and how to repeat it.

A ledger is a package with TOML files, in it or in packages within, registered by entry point in the group
``fairopt.ledgers``. Each ``[[claim]]`` holds the statement in our own words, the verdict with its evidence, and the
function that recomputes both. A stored verdict that no longer follows from the computation is an error, never a
warning.

>>> rows = ledger()
>>> 'oef' in {row.paper for row in rows}
True
"""

from __future__ import annotations

import enum
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from importlib import import_module, resources
from importlib.metadata import entry_points
from time import perf_counter
from typing import NamedTuple

from fairopt.errors import BadInput

GROUP = "fairopt.ledgers"
#: The ``paper`` of what stands in no paper.
OWN = "own"
#: What stands around a number that was measured, in the text that a computation makes; it is not stored.
OPEN, CLOSE = "\u27e6", "\u27e7"
NUMBER = re.compile(rf"({OPEN}?)([+-]?\d+(?:\.(\d+))?(?:e[+-]?\d+)?){CLOSE}?")


class Ruling(enum.Enum):
    """The verdicts on a claim, which a computation gives, never the reading of the paper alone."""

    REPRODUCED = "reproduced"  # our computation gives the printed numbers, to their digits, or does as the model says
    PROVED = "proved"  # holds for all inputs of the stated class; a proof that a program has checked is named
    HOLDS_BOUNDED = "holds-bounded"  # decided for all instances up to a stated size; samples never are that
    REFUTED = "refuted"  # an exact counterexample is stored and verified again
    INCONSISTENT = "inconsistent"  # the paper contradicts itself; both readings are computed
    QUALIFIED = "qualified"  # depends on what the paper leaves open; says what of each reading is proved or sampled
    NOT_DECIDABLE_HERE = "not-decidable-here"  # needs hardware or data that the paper does not give
    OPEN = "open"  # not decided yet; the row says what it waits for


class Measure(enum.Enum):
    """What is known of a policy in a number, or of a property in yes and no: the columns of the table of policies.

    Efficiency is the total over the largest total of any allocation. An incentive ratio is what a liar truly has after
    its best lie over what it has in truth, the largest over all markets.
    """

    EFFICIENCY = "efficiency"  # on the market that the scope names
    EFFICIENCY_AT_LEAST = "efficiency at least"  # on every market of the scope, by proof
    EFFICIENCY_AT_MOST = "efficiency at most"  # on the worst market known
    INCENTIVE_AT_LEAST = "incentive ratio at least"  # on the worst market known
    INCENTIVE_AT_MOST = "incentive ratio at most"  # on every market of the scope, by proof
    SHARING_INCENTIVE = "sharing_incentive"
    ENVY_FREENESS = "envy_freeness"
    PARETO_EFFICIENCY = "pareto_efficiency"
    STRATEGY_PROOFNESS = "strategy_proofness"
    COMPLEXITY = "complexity"  # what is solved, in words

    def takes(self, value: str) -> bool:
        """Whether a value is one of this measure: a fraction or formula in n users and k types, yes or no, or words."""
        if self is Measure.COMPLEXITY:
            return bool(value.strip())
        if self.name.startswith(("EFFICIENCY", "INCENTIVE")):
            return re.fullmatch(r"unbounded|[0-9nkR+*/() -]+", value) is not None
        return value in ("yes", "no")


class Figure(NamedTuple):
    """What a computation or a proof says of one policy: a number, exactly, or whether it has a property.

    ``value`` is a fraction such as "4/3"; a formula in n users, k types and R, how far speedups are apart; "unbounded";
    "yes" or "no" for a property; or words for complexity. ``scope`` says in words of which markets: "any", "two types".
    """

    policy: str
    measure: Measure
    value: str
    scope: str


class PrintedAndFound(NamedTuple):
    """What a paper prints beside what a study found, in words; ``holds`` says where the claim does."""

    claimed: str
    found: str
    interval: str
    holds: str


@dataclass(frozen=True)
class Finding:
    """The result of a computation on a claim. ``evidence``, ``table`` and ``figures`` are made of computed numbers.

    The first line of ``evidence`` is for a first reading; each further line is a case, which pages fold.

    ``marked`` is the evidence with marks around what was measured, "" where nothing was.

    >>> Finding(Ruling.REPRODUCED, "3 of 3 numbers").verdict.value
    'reproduced'
    """

    verdict: Ruling
    evidence: str
    table: tuple[PrintedAndFound, ...] = ()
    marked: str = ""
    figures: tuple[Figure, ...] = ()

    @classmethod
    def measuring(cls, verdict: Ruling, marked: str) -> Finding:
        """Return the finding of a text in which `measured` numbers, such as times, differ from run to run."""
        return cls(verdict, marked.replace(OPEN, "").replace(CLOSE, ""), marked=marked)

    def says(self, stored: str) -> bool:
        """Whether a stored evidence says the same: the words and whole numbers, and decimals to their last digit.

        A measured number may be any.

        >>> now = Finding.measuring(Ruling.REPRODUCED, f"Of 3 runs the mean takes {measured(0.25)} s, and finds 1.50.")
        >>> [now.says(f"Of 3 runs the mean takes 7.5 s, and finds {each}.") for each in ("1.51", "1.52")]
        [True, False]
        """
        found = self.marked or self.evidence
        if NUMBER.sub("#", found) != NUMBER.sub("#", stored):
            return False
        pairs = zip(NUMBER.findall(found), NUMBER.findall(stored), strict=True)
        return all(mark or _to_the_last_digit(now, then, decimals) for (mark, now, decimals), (_, then, _) in pairs)


def measured(number: float, form: str = "") -> str:
    """Return a number, formatted, as it stands in the text for `Finding.measuring`.

    >>> Finding.measuring(Ruling.REPRODUCED, f"It takes {measured(0.251, '.2f')} s.").evidence
    'It takes 0.25 s.'
    """
    return f"{OPEN}{number:{form}}{CLOSE}"


def _to_the_last_digit(now: str, then: str, decimals: str) -> bool:
    """Whether two printed numbers are the same, or differ by one in the last of their decimals."""
    return now == then or (bool(decimals) and abs(Fraction(now) - Fraction(then)) <= Fraction(1, 10 ** len(decimals)))


@dataclass(frozen=True)
class Entry:
    """One row of a ledger.

    ``says`` is the claim in our words; ``where`` its place in the paper. What we found ourselves has `OWN` as its
    paper, and its subject in ``where``. ``run`` is the ``module:function`` in
    ``package``, where the row's file lies, that returns the `Finding`; a row that is open has ``waits_for`` instead.
    A ``slow`` one takes minutes; in a ``measured`` one times differ from run to run, and floats in their last digits.
    One that a study decides has a ``table``; one that says a number of policies has ``figures``.
    """

    id: str
    paper: str
    where: str
    kind: str
    says: str
    verdict: Ruling
    evidence: str
    package: str
    run: str = ""
    waits_for: str = ""
    slow: bool = False
    measured: bool = False
    table: tuple[PrintedAndFound, ...] = ()
    figures: tuple[Figure, ...] = ()

    def recompute(self) -> tuple[Finding, float]:
        """Return what the computation says now, and the seconds that it took; `BadInput` for a row that is open."""
        compute, begun = self.computation(), perf_counter()
        return compute(), perf_counter() - begun

    def computation(self) -> Callable[..., Finding]:
        """Return the function that decides the claim; `BadInput` for a row that is open."""
        if not self.run:
            raise BadInput(f"{self.id} is open", place="claims", remedy=f"It waits for {self.waits_for}")
        module, _, function = self.run.partition(":")
        found: Callable[..., Finding] = getattr(import_module(f"{self.package}.{module}"), function)
        return found

    def follows(self, finding: Finding) -> bool:
        """Whether the stored verdict and evidence are what the computation says, but for what is measured."""
        same = finding.evidence == self.evidence or (self.measured and finding.says(self.evidence))
        lists = (finding.table, finding.figures) == (self.table, self.figures)
        return finding.verdict is self.verdict and lists and same


def ledger() -> list[Entry]:
    """Return all rows of all registered ledgers, in the order of their files. Errors: `BadInput` names file and row.

    >>> [row.verdict.value for row in ledger() if row.id == "oef-thm5.3"]
    ['refuted']
    """
    rows = [row for point in entry_points(group=GROUP) for row in read_package(point.value)]
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise BadInput(f"the id {row.id!r} stands twice", place="claims", remedy="Give each claim an id of its own")
        seen.add(row.id)
    return rows


def read_package(package: str) -> Iterator[Entry]:
    """Yield the rows of the ledger in one package and the packages in it, by the names of folders and files.

    >>> {each.paper for each in read_package("fairopt.proofs.claims.oef")}
    {'oef'}
    """
    known = {field.name for field in fields(Entry)} - {"package"}
    for file in sorted(resources.files(package).iterdir(), key=lambda file: file.name):
        if file.is_dir() and file.name.isidentifier() and file.name != "__pycache__":
            yield from read_package(f"{package}.{file.name}")
        if not file.name.endswith(".toml"):
            continue
        for number, table in enumerate(tomllib.loads(file.read_text(encoding="utf-8"))["claim"], start=1):
            place = f"claim {number} ({table.get('id', 'no id')})"
            needed = {"id", "paper", "where", "kind", "says", "verdict", "evidence"}
            if strange := sorted(needed - table.keys()) or sorted(table.keys() - known):
                problem = f"missing or unknown keys: {', '.join(strange)}"
                remedy = f"The keys are {', '.join(sorted(known))}"
                raise BadInput(problem, file=f"{package}/{file.name}", place=place, remedy=remedy)
            compared = tuple(PrintedAndFound(*each) for each in table.get("table", ()))
            try:
                figures = tuple(_figure(*each) for each in table.get("figures", ()))
            except (TypeError, ValueError) as error:
                remedy = "A figure is [policy, measure, value, scope]"
                raise BadInput(str(error), file=f"{package}/{file.name}", place=place, remedy=remedy) from None
            read = {"verdict": Ruling(table["verdict"]), "table": compared, "figures": figures}
            yield Entry(**{**table, **read, "package": package})


def _figure(policy: str, measure: str, value: str, scope: str) -> Figure:
    if not Measure(measure).takes(value):
        raise ValueError(f"{value!r} is no value of {measure!r}")
    return Figure(policy, Measure(measure), value, scope)
