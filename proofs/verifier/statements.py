"""What is proved: a statement, what it speaks of, and whether it is what a policy decides."""

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from .market import Market, read_market, read_table, table_shown
from .programs import Program, policy_shown
from .reading import Entry, Rejected, Table


@dataclass(frozen=True)
class Proved:
    """A statement that has been decided, what it speaks of, and a note on how its words are meant."""

    statement: str
    subject: object
    allocation: Table | None = None
    note: str = ""

    def __str__(self) -> str:
        """Return all that a reader may believe."""
        about = [self.note, str(self.subject)]
        about += [] if self.allocation is None else [f"allocation {table_shown(self.allocation)}"]
        return f"{self.statement} [{'; '.join(each for each in about if each)}]"


@dataclass(frozen=True)
class Range:
    """The most (maximize) or the least (minimize) of a sum of shares times ``weights``, over all optima."""

    sense: str
    weights: Table
    value: Fraction


@dataclass(frozen=True)
class Decision(Proved):
    """What a policy decides on a market: the allocation or, where there is a range, all optima.

    ``optima`` allows all allocations that it could have chosen; None where no range over them can be
    certified. ``ties`` says whether there may be others. ``embedded`` names the program that the policy's
    author wrote, where the certificate holds it. ``stated`` is what makes the decision and the certificate
    alone says: rates, floors of groups, GPUs that are lent; "" where the market says all.
    """

    subject: Market
    _: KW_ONLY
    policy: str
    optima: Program | None = None
    ties: bool = True
    embedded: str = ""
    stated: str = ""
    range: Range | None = None

    @property
    def named(self) -> str:
        """The policy for a statement; a name that somebody else chose is quoted."""
        return repr(self.policy) if self.embedded else policy_shown(self.policy, self.subject)


def read_allocation(certificate: Entry, *, feasible: bool = True) -> tuple[Market, Table]:
    """Return the market and the allocation of a certificate, which must be feasible unless told otherwise."""
    market = read_market(certificate["market"])
    shares = read_table(certificate["allocation"], market)
    if feasible:
        require_feasible(market, shares)
    return market, shares


def require_feasible(market: Market, shares: Table) -> None:
    """Reject shares that are negative, or of more GPUs than there are."""
    if not market.feasible(shares):
        raise Rejected("the allocation is not feasible")


def require_bound(value: Fraction, bound: Fraction, certificate: Entry) -> None:
    """Reject another value, bound, or gap between the two."""
    if [certificate[key].number() for key in ("value", "bound", "gap")] != [value, bound, abs(bound - value)]:
        raise Rejected("value, bound or gap is another")
