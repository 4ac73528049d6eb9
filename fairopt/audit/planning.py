"""`plan`: from a cluster's own files and measured throughputs to what its scheduler is told, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt import discovery
from fairopt.audit.accounts import EntitlementAccounts, users_in
from fairopt.audit.alternatives import asked_properties, decided
from fairopt.audit.plans.planner import Planner, reachable
from fairopt.audit.reading import files_in, market_in
from fairopt.compare import verify
from fairopt.discovery import AnyPolicy, AnyProperty
from fairopt.errors import BadInput
from fairopt.importing.imported import Imported
from fairopt.problem import Market
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import amount
from fairopt.program import INFINITY, Array
from fairopt.properties import Verdict
from fairopt.report import SCHEMA_KEY, Grid, Key, ResultForm, Tabular, by_name

#: What joins several users or groups that are one in the table, as KAI's queues in several node pools are.
AND = "+"
WEIGHT = "weight"
#: When something is held, in JSON and in tables.
WHEN = ("today", "policy", "plan")
_NEAR = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class SchedulerPlan(Tabular):
    """What a scheduler is told so that users have what a policy gives, and what is lost by it.

    * ``market``: the rows of the table of throughputs as users (n), with their weights.
    * ``shares`` (n, k): what the policy gives. ``held`` (n, k): what they have under the plan, where all have jobs
      enough. ``today`` (n, k): what they hold now, or where nobody holds anything what they are owed (``is_owed``).
    * ``verdicts``: of properties by name, on today, on the policy's shares and on the plan.
    * ``lost``: what of the policy's shares the scheduler cannot be told, in words.
    * ``apply`` and ``undo``: what the scheduler takes. ``suffix``: of such a file. ``how``: the command that hands it
      over.
    """

    scheduler: str
    policy: str
    market: Market
    before: Market
    after: Market
    today: Array
    is_owed: bool
    shares: Array
    held: Array
    verdicts: Mapping[str, tuple[Verdict, Verdict, Verdict]]
    lost: tuple[str, ...]
    apply: str
    undo: str
    suffix: str
    how: str

    form = ResultForm(
        "A plan for a scheduler.",
        SCHEMA_KEY,
        Key("scheduler", str, "Whose objects or commands these are."),
        Key("policy", str, "The policy that decides."),
        Key(
            "users",
            by_name(dict),
            "By row of the table: weight; GPUs today, by the policy and under the plan, by type; and throughputs.",
            lambda it: {row["user"]: {key: value for key, value in row.items() if key != "user"} for row in it.rows},
        ),
        Key("today_is", str, "held: what is held now; owed: nobody holds anything.", lambda it: it.today_is),
        Key(
            "properties",
            by_name(dict),
            "Verdicts by name: today, by the policy and under the plan.",
            lambda it: {name: dict(zip(WHEN, each, strict=True)) for name, each in it.verdicts.items()},
        ),
        Key("lost", list[str], "What of the policy's shares the scheduler cannot be told.", lambda it: [*it.lost]),
        Key("apply", str, "What the scheduler is told."),
        Key("undo", str, "What undoes it."),
        Key("how", str, "The command that hands a file of these over; {file} is its name."),
    )

    @property
    def today_is(self) -> str:
        """Whether today's GPUs are those "held", or "owed"."""
        return "owed" if self.is_owed else "held"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What each user has: today, by the policy, under the plan, and by an equal share."""
        sides = dict(zip(WHEN, (self.today, self.shares, self.held), strict=True))
        equal = self.market.fair_utility()
        throughputs = {name: self.market.utility(each) for name, each in sides.items()}
        return [
            {"user": user, "weight": self.market.weight[i]}
            | {name: dict(zip(self.market.types, each[i].tolist(), strict=True)) for name, each in sides.items()}
            | {"throughput": {"equal": equal[i], **{name: each[i] for name, each in throughputs.items()}}}
            for i, user in enumerate(self.market.users)
        ]

    def __repr__(self) -> str:
        return f"<SchedulerPlan: {self.policy} by {self.scheduler}, {len(self.market.users)} users>"

    def _table(self) -> Grid:
        columns = {
            f"{kind} {name}": each[:, j].tolist()
            for j, kind in enumerate(self.market.types)
            for name, each in zip(WHEN, (self.today, self.shares, self.held), strict=True)
        }
        return Grid("user", self.market.users, columns)


def plan(
    given: Any,
    policy: AnyPolicy,
    throughput: AnyPath,
    scheduler: str = "",
    *,
    importer: str = "",
    properties: AnyProperty | Sequence[AnyProperty] | None = None,
    watch: Callable[[str], None] = lambda doing: None,
) -> SchedulerPlan:
    r"""Return what a scheduler is told so that users have what a policy gives.

    ``given`` and ``importer`` are as `audit` takes them; ``scheduler`` is one of the group ``fairopt.planners``, "" for
    the one whose files are given. ``throughput`` is a table with a row for each user, or for a group as a whole, and a
    column for each GPU type: the throughput on one GPU; 0 where it cannot run. A row may stand for several users or
    groups, with "+" between their names. Its column ``weight``, where it has one, is what the policy goes by; else that
    is the part of the cluster that the row is owed today, on the average of all types. Users without quota, jobs and
    past use need no row, and stay as they are. The policy decides on all GPUs, without today's quotas.

    Errors: `BadInput` of `audit`; for users without a row, types without a column, a row in another one's group, and
    numbers that are none; those of the policy.

    Source: ours; OEF (Middleware 2024) Sec. 4.2.3 for weights.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fairopt.problem import Entitlements
    >>> owed = Entitlements.of(["A", "B"], ["a100", "h100"], guarantee={"A": [6, 6], "B": [6, 6]})
    >>> market = Market.of([[1, 1]] * 2, [12, 12], users=["A", "B"], types=owed.types, entitlements=owed)
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder, "throughput.csv")
    ...     _ = table.write_text("user,a100,h100\nA,1,2\nB,1,5\n")
    ...     found = plan(market, "oef-cooperative", table, "kueue")
    >>> found.held.astype(int).tolist(), found.apply.count("nominalQuota: '9'")
    ([[12, 3], [0, 9]], 1)
    """
    source = market_in(given, importer, watch)
    before: Market = source.problem
    chosen = discovery.policy_of(policy, Market)
    name = scheduler or source.importer
    if not name:
        raise BadInput("a market names no scheduler", place="scheduler", remedy="Name it: --emit NAME")
    planner: Planner = discovery.load(discovery.PLANNERS, name)
    emit = discovery.load(discovery.EMITTERS, name)
    accounts = EntitlementAccounts(before)
    market, parties, notes = _market(accounts, throughput, fixed=planner.fixed)
    watch(f"{chosen.name} decides")
    shares = _exact(decided(chosen, market).shares)
    nodes, rows, at = _by_node(accounts, parties, shares, reachable(before, fixed=planner.fixed))
    found = planner.realise(before, nodes, rows)
    held = np.array([[Fraction(0)] * len(before.types) for _ in parties], dtype=object)
    np.add.at(held, at, found.held)
    today, is_owed = _today(accounts, parties)
    watch("checking properties")
    asked = asked_properties(market, properties, speeds=True)
    told, files = emit(before, found.after), [] if isinstance(given, Market | Imported) else files_in(given)
    undo = planner.undo if files else None
    all_three = [verify(market, each, asked) for each in (today, shares, held)]
    return SchedulerPlan(
        scheduler=name,
        policy=chosen.name,
        market=market,
        before=before,
        after=found.after,
        today=today,
        is_owed=is_owed,
        shares=shares,
        held=held,
        verdicts={each.name: tuple(side[each.name] for side in all_three) for each in asked},  # type: ignore[misc]
        lost=(*notes, *found.lost, *_rounded(market, shares, held)),
        apply=told,
        undo=emit(found.after, before) if undo is None else undo(files, told),
        suffix=planner.suffix,
        how=planner.how,
    )


def _exact(shares: Array) -> Array:
    """Return shares as Fractions; floats next to a whole number as that number."""
    flat = [
        Fraction(round(each) if abs(each - round(each)) <= _NEAR else each).limit_denominator(10**9)
        if isinstance(each, float)
        else Fraction(each)
        for each in shares.ravel().tolist()
    ]
    out = np.empty(len(flat), dtype=object)
    out[:] = [max(each, Fraction(0)) for each in flat]
    return out.reshape(shares.shape)


def _rounded(market: Market, shares: Array, held: Array) -> Iterator[str]:
    """Yield what users lose by whole GPUs, in words."""
    off = np.abs(held - shares)
    if (off > 0).any():
        i, j = np.unravel_index(int(np.argmax(off.astype(float))), off.shape)
        was, now = market.utility(shares).sum(), market.utility(held).sum()
        yield (
            f"{int((off > 0).sum())} of {off.size} numbers of GPUs are not the policy's, the farthest "
            f"{market.users[i]}: {float(held[i, j]):.4g} {market.types[j]} for {float(shares[i, j]):.4g}; "
            f"total throughput {float(now / was - 1):+.2%}"
        )


# -- the table -----------------------------------------------------------------------------------------------------
def _market(accounts: EntitlementAccounts, path: AnyPath, *, fixed: bool) -> tuple[Market, list[list[int]], list[str]]:
    """Return the market of the table's rows, the nodes of each row, and what of the table is not used, in words."""
    from fairopt.importing.job_csv import table_cells  # here, so that an audit begins sooner

    said, types = accounts.said, accounts.market.types
    may = reachable(accounts.market, fixed=fixed)
    with naming(path):
        lines = table_cells(path)
        place, header = next(lines, ("line 1", []))
        for kind in types:
            if kind not in header[1:]:
                remedy = f"Add a column {kind!r}: throughput on one GPU, 0 where a user cannot run there"
                raise BadInput(f"no column for the GPU type {kind!r}", place=place, remedy=remedy)
        names, parties, speedup, weight = list[str](), list[list[int]](), list[list[Fraction]](), list[Fraction]()
        taken: dict[int, str] = {}
        for place, cells in lines:
            row = dict(zip(header, cells, strict=True))
            nodes = _nodes(accounts, name := cells[0], place)
            users = [user for node in nodes for user in users_in(said, node)]
            for user in users:
                if user in taken:
                    wrong = f"{said.users[user]!r} has its throughput from the row {taken[user]!r} too"
                    raise BadInput(wrong, place=place, remedy="Give each user one row: its own, or its group's")
                taken[user] = name
            numbers = [amount(row[kind], f"{place}, {kind}") for kind in types]
            speeds = [each if may[users, j].any() else Fraction(0) for j, each in enumerate(numbers)]
            own = amount(row[WEIGHT], f"{place}, {WEIGHT}") if WEIGHT in header else _weight(accounts, nodes)
            _require_positive(name, place, speeds, own, said=WEIGHT in header)
            names, parties, speedup, weight = [*names, name], [*parties, nodes], [*speedup, speeds], [*weight, own]
        if not names:
            raise BadInput("no row", place="line 2", remedy="Give a row for each user or group")
        _require_all(accounts, taken)
        capacity = list(map(Fraction, accounts.market.capacity))
        market = Market.of(speedup, capacity, weight=weight, users=names, types=types)
    unused = [name for name in header[1:] if name not in (*types, WEIGHT)]
    notes = [f"the table's columns {', '.join(unused)} are of no GPU type of this cluster"] if unused else []
    return market, parties, notes


def _nodes(accounts: EntitlementAccounts, name: str, place: str) -> list[int]:
    said = accounts.said
    parts = [name] if name in said.nodes else [part.strip() for part in name.split(AND)]
    return [said.node(part, place) for part in parts]


def _require_positive(name: str, place: str, speeds: list[Fraction], weight: Fraction, *, said: bool) -> None:
    if not any(speeds):
        remedy = "Give a positive one on a type that it may hold, or take the row out"
        raise BadInput(f"{name!r} has no throughput on any type that it may hold", place=place, remedy=remedy)
    if not weight:
        remedy = "Give a positive one" if said else f"Add a column {WEIGHT!r} that says what each row counts"
        raise BadInput(f"{name!r} has the weight 0", place=place, remedy=remedy)


def _require_all(accounts: EntitlementAccounts, taken: Mapping[int, str]) -> None:
    """Refuse a table that leaves out a user with a quota, jobs or past use."""
    said = accounts.said
    busy = set(said.gangs.user.tolist())
    missing = [
        name
        for user, name in enumerate(said.users)
        if user not in taken
        and (user in busy or said.usage[user] or said.held[user].any() or said.guarantee[user].any())
    ]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        remedy = "Add a row for each, or for a group that they are in"
        raise BadInput(f"no throughput of the user {missing[0]!r}{more}", place="column 1", remedy=remedy)


# -- what is owed and held -----------------------------------------------------------------------------------------
def _weight(accounts: EntitlementAccounts, nodes: Sequence[int]) -> Fraction:
    """Return the part of the cluster that nodes are owed today, on the average of all types that are owed to some."""
    said, k = accounts.said, accounts.k
    if accounts.by_weight:
        return sum((Fraction(accounts.parts[node]) for node in nodes), Fraction(0))
    n = len(said.users)
    there = np.array([Fraction(each) for each in accounts.market.capacity], dtype=object)
    owed = np.where(said.guarantee[:, :k] < INFINITY, said.guarantee[:, :k], there)
    total = owed[:n].sum(axis=0)
    users = [user for node in nodes for user in users_in(said, node)]
    parts = [owed[users, j].sum() / total[j] for j in range(k) if total[j]]
    return sum(parts, Fraction(0)) / max(1, len(parts))


def _today(accounts: EntitlementAccounts, parties: Sequence[Sequence[int]]) -> tuple[Array, bool]:
    """Return what rows hold, or where nobody holds anything are owed (n, k), and whether it is the latter."""
    k, is_owed = accounts.k, not accounts.all_held.any()
    whose = accounts.owed if is_owed else accounts.held
    there = np.array([Fraction(each) for each in accounts.market.capacity], dtype=object)
    rows = [np.minimum(whose[list(nodes), :k], there).sum(axis=0).tolist() for nodes in parties]
    return np.array(rows, dtype=object).reshape(len(parties), k), is_owed


def _by_node(
    accounts: EntitlementAccounts, parties: Sequence[Sequence[int]], shares: Array, may: Array
) -> tuple[list[int], Array, list[int]]:
    """Return the nodes of all rows, what each is given of its row's shares, and the number of its row.

    Nodes of one row have it in proportion to what they are owed of a type, among those that may hold it.
    """
    nodes, rows, at = list[int](), list[list[Fraction]](), list[int]()
    for number, (own, row) in enumerate(zip(parties, shares, strict=True)):
        can = np.array([may[users_in(accounts.said, node)].any(axis=0) for node in own])
        given = [[Fraction(0)] * len(row) for _ in own]
        for j, gpus in enumerate(row):
            holders = np.flatnonzero(can[:, j]).tolist()
            owed = [accounts.owed[own[each], j] for each in holders]
            if INFINITY in owed or not any(owed):
                owed = [Fraction(1) for _ in holders]
            for each, part in zip(holders, owed, strict=True):
                given[each][j] = gpus * part / sum(owed, Fraction(0))
        nodes, rows, at = [*nodes, *own], [*rows, *given], [*at, *[number] * len(own)]
    return nodes, np.array(rows, dtype=object).reshape(len(nodes), accounts.k), at
