"""`audit`: who is starved, who borrows, and why, of a scheduler's files or of a market with entitlements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, Literal

from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.alternatives import (
    DECLARED,
    Alternative,
    alternatives,
    asked_properties,
    chosen,
    compared,
    is_large,
    stops_by_rule,
    waits_by_rule,
)
from fairopt.audit.reading import market_in, paths_of, with_rates, with_speedups
from fairopt.audit.reasons import REASON, Cause, as_far_as_read, by_rule, reason_of, still
from fairopt.audit.spare_goods import unlooked
from fairopt.audit.status import EntitlementStatus, NodeStatus, standing, statuses
from fairopt.audit.violations import BROKEN_CAP, BROKEN_GUARANTEE, MEND, broken_caps, broken_guarantees, let_by, mends
from fairopt.compare import verify
from fairopt.discovery import AnyPolicy, AnyProperty
from fairopt.importing.imported import Imported, nothing_unread
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.program import Array, Number
from fairopt.properties import AllocationProperty, Answer, Verdict
from fairopt.report import SCHEMA_KEY, Grid, Key, ResultForm, Statement, Tabular, by_name, listed

#: What mends are, in the schema of results.
SMALLEST = "By type, the smallest reclaim (`is_smallest`: whether it is known that none is smaller)"
LEFT_ASIDE = Key(
    "mends_leave_aside",
    str,
    "Resources that mends and loans do not look at, in words; empty for none.",
    lambda it: it.unlooked,
)


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Tabular):
    """What an audit found; the accounts alone say who is starved, and each policy what it would give instead.

    * ``source``: who read the files, "" for a market.
    * ``rules``: the policies that decide. ``watch``: what is told of each before.
    * ``verdicts``: ``properties`` of what is held, by name.
    * ``unplaced``: what the file says and the market has no place for. ``scheduler_rules``: the scheduler's own, in
      words, by the cause that they explain. ``stated`` and ``counted``: what `declared` compares, as `Imported` has it,
      and ``unread`` and ``policy``. ``known``: an audit of nearly the same: what stands alike is not decided again.

    How users stand, why they wait, what policies would give, what is broken, what would mend it, and `declared` are
    computed when they are asked for.

    >>> from fairopt.datasets import dataset_path
    >>> found = audit(dataset_path("SOURCES.md").parent / "clusters/kai/cluster.yaml", policies=[])
    >>> found.row("llm").status
    <EntitlementStatus.STARVED: 'STARVED'>
    """

    accounts: EntitlementAccounts
    source: str
    properties: tuple[AllocationProperty, ...]
    verdicts: Mapping[str, Verdict]
    rules: tuple[Policy, ...]
    unplaced: tuple[Statement, ...]
    scheduler_rules: Mapping[str, str]
    stated: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counted: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    unread: Callable[[str], tuple[str, ...]] = nothing_unread
    policy: str = ""
    known: Audit | None = None
    watch: Callable[[str], None] = lambda doing: None

    form = ResultForm(
        "Who is starved, who borrows, and why.",
        SCHEMA_KEY,
        Key("source", str | None, "The importer that read the files; null for a market.", lambda it: it.source or None),
        Key(
            "owed_by",
            Literal["guarantee", "weight"],
            "What is owed; a part by weight is no promise.",
            lambda it: "weight" if it.accounts.by_weight else "guarantee",
        ),
        Key(
            "types",
            by_name(dict),
            "GPUs of each type, and how many are held, which may be more, and free.",
            lambda it: {
                kind: {"gpus": gpus, "held": held, "free": int(free)}
                for kind, gpus, held, free in zip(
                    it.market.types, it.market.capacity, it.accounts.all_held, it.accounts.free, strict=True
                )
            },
        ),
        Key(
            "gangs",
            dict,
            "How many run and wait.",
            lambda it: {
                "running": int((~it.accounts.gangs.pending).sum()),
                "pending": int(it.accounts.gangs.pending.sum()),
            },
        ),
        Key(
            "counts",
            dict[str, int],
            "How many users stand in each way.",
            lambda it: {status.value: count for status, count in it.counts.items()},
        ),
        Key("violated", bool, "Whether a guarantee is broken by others' borrowing, or a cap."),
        Key(
            "users",
            list[NodeStatus],
            "How each user stands.",
            lambda it: [row for row in it.rows if not row.is_group],
        ),
        Key("groups", list[NodeStatus], "How each group stands.", lambda it: [row for row in it.rows if row.is_group]),
        Key("reasons", by_name(REASON), "By user that waits: why its first gang does, by type."),
        Key(
            "rules",
            dict[str, str],
            "By cause of these reasons: the rule of the scheduler that makes it so.",
            lambda it: it.rules_behind(it.reasons.values()),
        ),
        Key(
            "broken_guarantees",
            listed(BROKEN_GUARANTEE),
            "Who waits for what it is owed, and who holds too much.",
            lambda it: it.guarantees,
        ),
        Key("broken_caps", listed(BROKEN_CAP), "Who holds more than its cap.", lambda it: it.caps),
        Key(
            "mends",
            listed(MEND),
            f"{SMALLEST} that lets starving gangs run, and in `lacks` those that lack a good still.",
        ),
        LEFT_ASIDE,
        Key(
            "past_use",
            by_name(dict),
            "Parts of past use: owed by weight, and used.",
            lambda it: {
                row.name: {"owed": owed, "used": used}
                for row, owed, used in zip(it.rows, it.accounts.parts, it.accounts.past_use, strict=False)
            },
        ),
        Key(
            "declared",
            listed(DECLARED),
            "Values that the file states, beside the same computed again.",
            lambda it: [each for each in it.declared if each.computed is not None],
        ),
        Key(
            "policies",
            dict[str, Alternative],
            "What policies would give, and who gains.",
            lambda it: {each.policy: each for each in it.alternatives},
        ),
        Key("properties", dict[str, Verdict], "Verdicts on what is held, by name.", lambda it: it.verdicts),
        Key(
            "unplaced",
            listed(dict),
            "What the file says and the market has no place for.",
            lambda it: it.unplaced,
        ),
        name="audit",
    )

    @property
    def market(self) -> Market:
        """The market."""
        return self.accounts.market

    @property
    def held(self) -> Array:
        """What each user holds of each type (n, k)."""
        return self.accounts.said.held[:, : self.accounts.k]

    @cached_property
    def rows(self) -> tuple[NodeStatus, ...]:
        """How each user and then each group stands."""
        return tuple(statuses(self.accounts))

    @cached_property
    def standing(self) -> list[EntitlementStatus]:
        """The status of each user and then of each group; `rows` have the numbers, too."""
        return standing(self.accounts)

    @cached_property
    def guarantees(self) -> tuple[Statement, ...]:
        """The guarantees that others' borrowing breaks."""
        return tuple(broken_guarantees(self.accounts))

    @cached_property
    def caps(self) -> tuple[Statement, ...]:
        """The caps that are broken."""
        return tuple(broken_caps(self.accounts))

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What policies would give."""
        old = self.known
        before = None if old is None else (old.market, {each.policy: each for each in old.alternatives})
        return tuple(alternatives(self.accounts, self.rules, self.properties, self.watch, before))

    @cached_property
    def reasons(self) -> dict[str, Statement]:
        """By user that waits, why its first gang does."""
        return {name: self.reason(name) for name in self.accounts.first_waiting}

    def reason(self, name: str, waits: Sequence[Mapping[str, str]] | None = None) -> Statement:
        """Return why the first gang of a user that waits does; ``waits``: what the scheduler's rules say of gangs."""
        found = self.account_reason(self.accounts.first_waiting[name])
        if all(each.cause is not Cause.OPEN for each in found.stops):
            return found  # nothing is left to a rule
        return as_far_as_read(by_rule(found, self._waits if waits is None else waits), self.unread)

    @cached_property
    def account_reason(self) -> Callable[[int], Statement]:
        """What says why a pending gang waits by the accounts alone: what `known` says, where it is so still."""
        if self.known is None:
            return cache(partial(reason_of, self.accounts))
        stands, old = still(self.known.accounts, self.accounts), self.known.account_reason
        return cache(lambda gang: old(gang) if stands(gang) else reason_of(self.accounts, gang))

    @cached_property
    def _waits(self) -> Sequence[Mapping[str, str]]:
        return waits_by_rule(self.alternatives, self.source, self.policy)

    @cached_property
    def mends(self) -> tuple[Statement, ...]:
        """The smallest reclaim for all who starve, type by type."""
        return tuple(self.find_mends())

    def find_mends(self) -> Iterator[Statement]:
        """Yield `mends`, each of which takes its time."""
        yield from (let_by(each, self.unread) for each in mends(self.accounts)) if self.guarantees else ()

    @cached_property
    def declared(self) -> tuple[Statement, ...]:
        """What the file states that can be computed, beside what was computed."""
        return tuple(compared(self.accounts, self.stated, self.rules, self.counted))

    @cached_property
    def stops(self) -> dict[str, Mapping[str, str]]:
        """Which gangs the scheduler's own rules would stop now, by rule, and why."""
        return stops_by_rule(self.alternatives, self.source, self.policy)

    @property
    def violations(self) -> tuple[Statement, ...]:
        """The guarantees and caps that are broken."""
        return (*self.guarantees, *self.caps)

    @property
    def violated(self) -> bool:
        """Whether any is."""
        return bool(self.violations)

    @property
    def unlooked(self) -> str:
        """What mends and loans leave aside, in words; "" where they look at all that is counted.

        That is what the file has no stock of, or no gang's needs.
        """
        resources = ", ".join(unlooked(self.accounts))
        return f"Whether there is enough {resources} was not looked at: the file does not say" if resources else ""

    @property
    def undecided(self) -> bool:
        """Whether a property, or what a policy would give, could not be decided."""
        open_ = (Answer.UNDECIDED, Answer.DEPENDS)
        return any(each.answer in open_ for each in self.verdicts.values())

    @cached_property
    def counts(self) -> dict[EntitlementStatus, int]:
        """How many users stand in each way."""
        found = Counter(self.standing[: len(self.market.users)])
        return {each: found[each] for each in EntitlementStatus}

    def row(self, name: str) -> NodeStatus:
        """Return how a user or group stands. Errors: `BadInput` where there is none of that name."""
        return next(statuses(self.accounts, [self.accounts.said.node(name)]))

    def rules_behind(self, reasons: Iterable[Statement]) -> dict[str, str]:
        """Return the scheduler's rules, in words, that make some reasons so, by cause; empty where none is known."""
        causes = {stop.cause for reason in reasons for stop in reason.stops}
        values = [each.value for each in Cause if each in causes]
        return {each: self.scheduler_rules[each] for each in values if each in self.scheduler_rules}

    def rule(self, name: str) -> Policy:
        """Return the policy of that name among those that were asked."""
        return next(each for each in self.rules if each.name == name)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status.value}" for status, count in self.counts.items() if count)
        return f"<Audit: {counts}; {len(self.violations)} guarantees and caps broken>"

    def _table(self) -> Grid:
        columns: dict[str, list[Any]] = {
            "group": [row.group for row in self.rows],
            "footing": [row.status.value for row in self.rows],
        }
        for kind in self.market.types:
            on = [row.on(kind) for row in self.rows]
            for key in ("holds", "owed", "asks"):
                columns[f"{kind} {key}"] = [0 if each is None else getattr(each, key) for each in on]
        reasons = [str(self.reasons[row.name]) if row.name in self.reasons else "" for row in self.rows]
        return Grid("user", [row.name for row in self.rows], columns | {"why": reasons})


def audit(
    given: Market | Imported | AnyPath | Sequence[AnyPath],
    *,
    importer: str = "",
    policies: AnyPolicy | Sequence[AnyPolicy] | None = None,
    properties: AnyProperty | Sequence[AnyProperty] | None = None,
    speedups: AnyPath | None = None,
    rates: AnyPath | None = None,
    watch: Callable[[str], None] = lambda doing: None,
) -> Audit:
    """Return who is starved, who borrows, and why: of files, of what an importer returned, or of a market.

    ``importer`` is the name of what reads the files, "" for the one that can. ``policies`` are asked what they would
    give; None for those that decide by entitlements (with many users only the scheduler's own). ``properties`` are
    decided of what is held; None for those about entitlements (with many users none), and for all where there are
    ``speedups`` (a table of users and types) or ``rates`` (a number by type). Both are names, classes or objects, one
    or several. ``watch`` is told what is being done.

    Errors: `BadInput` for files that nobody can read, a market without entitlements, and unknown names.

    Source: ours; what is owed is Kueue's nominalQuota, KAI's quota, Volcano's deserved, YARN's capacity.

    >>> from fairopt import audit
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"], names=["a", "b"], on=[None, "H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]}, gangs=gangs)
    >>> found = audit(Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed), policies=[])
    >>> found
    <Audit: 1 STARVED, 1 BORROWING; 1 guarantees and caps broken>
    >>> print(found.mends[0])
    reclaim 6 H100: stop b of B. Gangs are whole, so this takes 4 of what B is owed; no choice takes less. Then a runs
    """
    found = audit_lazily(given, importer, policies, properties, speedups, rates, watch)
    _ = found.alternatives  # which takes its time
    return found


def audit_lazily(
    given: Any,
    importer: str,
    policies: AnyPolicy | Sequence[AnyPolicy] | None,
    properties: AnyProperty | Sequence[AnyProperty] | None = None,
    speedups: AnyPath | None = None,
    rates: AnyPath | None = None,
    watch: Callable[[str], None] = lambda doing: None,
    known: Audit | None = None,
) -> Audit:
    """Return an audit in which policies decide when somebody asks; errors and arguments are those of `audit`.

    ``known`` is an audit under the same policies of nearly the same.
    """
    source = market_in(given, importer, watch)
    market: Market = source.problem
    if speedups is not None:
        market = with_speedups(market, speedups)
    if rates is not None:
        market = with_rates(market, rates)
    with naming(next(iter(paths_of(given)), "")):
        accounts = EntitlementAccounts(market)
    accounts = accounts if known is None else accounts.sharing(known.accounts)
    rules = chosen(market, policies, source.importer, source.policy)
    watch("finding who starves")
    _ = accounts.first_waiting  # which takes its time
    watch("checking properties")
    speeds = bool(speedups or rates or not (source.importer or is_large(market) or not market.known.all()))
    asked = asked_properties(market, properties, speeds=speeds)
    verdicts = verify(market, accounts.said.held[:, : accounts.k], asked) if asked else {}
    return Audit(
        accounts=accounts,
        source=source.importer,
        properties=asked,
        verdicts=verdicts,
        rules=tuple(rules),
        unplaced=source.unplaced,
        scheduler_rules=source.rules,
        stated=source.declared,
        counted=source.counted,
        unread=source.unread,
        policy=source.policy,
        known=known,
        watch=watch,
    )
