"""`explain`: how one user stands, why its gangs wait, what would let them run, and what a GPU more would change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from fairopt.audit.accounts import EntitlementAccounts, users_in
from fairopt.audit.alternatives import Alternative, changed, chosen, is_large, of_part, own_rules, waits_by_rule
from fairopt.audit.auditing import LEFT_ASIDE, SMALLEST, Audit, audit
from fairopt.audit.mending import smallest
from fairopt.audit.pools import BOUNDLESS, plain
from fairopt.audit.reading import market_in, paths_of
from fairopt.audit.reasons import NOT_READ, NOTHING, REASON, ahead, as_far_as_read, by_rule, named, reason_of
from fairopt.audit.settings import CAPACITY, set_to, with_settings
from fairopt.audit.spare_goods import SpareGoods, beside_served, goods_of
from fairopt.audit.status import NodeStatus
from fairopt.audit.violations import MEND, let_by, mends
from fairopt.discovery import AnyPolicy
from fairopt.errors import BadInput
from fairopt.numbers import counted
from fairopt.problem.entitled_rows import TOP
from fairopt.problem.files.storage import naming
from fairopt.program import INFINITY, Array, Number, number_text
from fairopt.report import SAYS, SCHEMA_KEY, Grid, Key, ResultForm, Statement, Tabular, by_name, few, keys_of, listed

#: A reason, and how many gangs wait for it.
WAITS = ResultForm("Gangs that wait for the same reason.", *REASON.keys, Key("gangs", int, "How many there are."))


def _loan(it: Statement) -> str:
    who = "a gang" if len(it.ahead) == 1 else "gangs"
    first = [f"but {who} before it may take the GPUs first: {few(it.ahead)}"] if it.ahead else []
    return f"{it.gang} could run on {it.type}: {'; '.join((*it.steps, *first))}"


def _sensitivity(it: Statement) -> str:
    gains = ", ".join(f"{_signed(gpus)} {kind}" for kind, gpus in it.gains.items()) or "nothing"
    others = f"; all others {_signed(it.others)}" if it.others else ""
    return "; ".join((f"{it.change}: {gains}{others}", *it.needs))


#: What would have to be given to let a gang run on a type, in whole GPUs. It is enough as long as the gangs ``ahead``
#: (`fairopt.audit.reasons`), by name, do not take what is given.
LOAN = ResultForm(
    "What would have to be given to let a gang run on a type.",
    *keys_of(str, "gang type", "The name."),
    Key("gpus", int, "How many."),
    Key("steps", list[str], "What gives them."),
    Key("ahead", list[str], "The gangs that may take them first."),
    SAYS,
    sentence=_loan,
)
#: What more of something, a `SETTING`, gives a user by a policy. ``needs``: in words, where the policy then gives more
#: GPUs than there are, as one does that counts quotas alone.
SENSITIVITY = ResultForm(
    "What more of something gives.",
    Key("policy", str, "The policy."),
    Key("change", str, "What there is more of.", lambda it: str(it.change)),
    Key("gains", dict[str, Number], "GPUs by type."),
    Key("others", Number, "What all others gain by it."),
    Key("needs", list[str], "What must be added or reclaimed, where it takes more GPUs than there are."),
    sentence=_sensitivity,
)


def _signed(gpus: Number) -> str:
    return f"{'+' * (gpus > 0)}{number_text(gpus)}"


def _of_row(key: Key, found: Explanation) -> Any:
    return key.of(found.row)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Tabular):
    """Why one user or group has what it has: in the accounts, and under each policy.

    ``waits``: its waiting gangs by reason. ``mends``: the smallest reclaim for its own starving gangs. ``loans``: what
    would have to be given to its first waiting gang, type by type. ``sensitivities``: what one more GPU of quota, cap
    or capacity, or one more of weight, gives it, and where that gives nothing, as many GPUs as its first waiting gang
    takes: each was computed by the policy anew, a difference of two decisions and no dual: rules of whole gangs have
    none, and twice as much more need not give twice as much.
    """

    found: Audit
    alternatives: tuple[Alternative, ...]
    row: NodeStatus
    path: tuple[str, ...]
    waits: tuple[Statement, ...]
    mends: tuple[Statement, ...]
    loans: tuple[Statement, ...]
    sensitivities: tuple[Statement, ...]

    form = ResultForm(
        "How one user or group stands, and why.",
        SCHEMA_KEY,
        *(key._replace(value=partial(_of_row, key)) for key in NodeStatus.form.keys),
        Key("path", list[str], "The groups that it is in, from the inside outwards."),
        Key(
            "waits",
            listed(WAITS),
            "Why its gangs wait: a reason, and how many gangs have it.",
            lambda it: WAITS.list(it.waits),
        ),
        Key(
            "rules",
            dict[str, str],
            "By cause of these reasons: the rule of the scheduler that makes it so.",
            lambda it: it.found.rules_behind(it.waits),
        ),
        Key("mends", listed(MEND), f"{SMALLEST} that lets its starving gangs run."),
        LEFT_ASIDE._replace(value=lambda it: it.found.unlooked),
        Key(
            "loans",
            listed(LOAN),
            "What its first waiting gang would have to be given, by type: enough unless gangs ahead take it.",
        ),
        Key(
            "policies",
            by_name(dict),
            "What each policy gives it, and why, in a rule's own words.",
            lambda it: {
                each.policy: {"gives": it.now(each), "why": it.why(each), "error": each.error or None}
                for each in it.alternatives
            },
        ),
        Key("sensitivities", listed(SENSITIVITY), "What more of a quota, cap, capacity or weight gives it."),
    )

    def now(self, policy: Alternative) -> dict[str, Number]:
        """Return what a policy gives it, by type."""
        if policy.shares is None or policy.market is None:
            return {}
        accounts = self.found.accounts
        own = {accounts.said.nodes[user] for user in users_in(accounts.said, accounts.said.node(self.row.name))}
        users = [row for row, name in enumerate(policy.market.users) if name in own]
        total = policy.shares[users].sum(axis=0)
        return {kind: total[j] for j, kind in enumerate(accounts.market.types) if total[j] or self.row.on(kind)}

    def why(self, policy: Alternative) -> dict[str, str]:
        """Return why its gangs wait or were stopped under a scheduler's own rule, in the rule's words."""
        if policy.grounds is None:
            return {}
        accounts = self.found.accounts
        mine = {
            accounts.gangs.names[gang]
            for gang in np.flatnonzero(accounts.gangs.user == accounts.said.node(self.row.name))
        }
        both = {**policy.grounds.waits, **policy.grounds.stopped}
        return {gang: words for gang, words in both.items() if gang in mine}

    def __repr__(self) -> str:
        waiting = counted(sum(each.gangs for each in self.waits), "waiting gang")
        return f"<Explanation: {self.row.name} {self.row.status.value}, {waiting}>"

    def _table(self) -> Grid:
        own = self.row.types
        keys = ("holds", "owed", "cap", "asks", "short", "borrows")
        return Grid("type", [each.type for each in own], {key: [getattr(each, key) for each in own] for key in keys})


def explain(
    given: Any,
    name: str,
    *,
    importer: str = "",
    policies: AnyPolicy | Sequence[AnyPolicy] | None = None,
    sensitivities: bool | None = None,
    watch: Callable[[str], None] = lambda doing: None,
    **how: Any,
) -> Explanation:
    """Return how a user or group stands, why, and what would change it; the other arguments are those of `audit`.

    ``sensitivities``: whether the policies decide anew with one GPU more; None for yes, but of many users only where
    ``policies`` are named.

    Errors: `BadInput` for an unknown name, with the nearest, and those of `audit`.

    >>> from fairopt.problem import Entitlements, Gangs, Market
    >>> gangs = Gangs.of(["A", "B"], [4, 4], users=["A", "B"], types=["H100"], names=["a", "b"], on=[None, "H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"B": [4]}, cap={"A": [2]}, gangs=gangs)
    >>> market = Market.of([[1], [1]], [4], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(explain(market, "A", policies=[]).loans[0])
    a could run on H100: raise the cap of A from 2 to 4; free or add 4 H100
    """
    source = market_in(given, importer, watch)
    with naming(next(iter(paths_of(given)), "")):
        EntitlementAccounts(source.problem)  # says what the file lacks
    wanted = policies is not None or not is_large(source.problem) if sensitivities is None else sensitivities
    asked = policies if wanted else ()
    found = audit(source, importer=source.importer, policies=asked, watch=watch, properties=(), **how)
    accounts = found.accounts
    node = accounts.said.node(name)
    others = found.alternatives if wanted else tuple(_of_its_part(found, node, policies, watch))
    same: dict[tuple[Any, ...], Statement] = {}
    waiting = [*accounts.waiting_below(node)]
    waiting.sort(key=lambda gang: gang not in accounts.starving.get(node, {}))
    first = waiting[0] if waiting else None
    own = waits_by_rule(others, found.source, found.policy)
    for gang in waiting:
        reason = as_far_as_read(by_rule(reason_of(accounts, gang), own), found.unread)
        key = (reason.user, reason.gpus, reason.owed, *map(str, reason.stops), reason.elsewhere)
        same[key] = same[key].but(gangs=same[key].gangs + 1) if key in same else reason
    return Explanation(
        found=found,
        alternatives=others,
        row=found.row(name),
        path=tuple(accounts.said.nodes[group] for group in accounts.above(node)),
        waits=tuple(same.values()),
        mends=tuple(let_by(each, found.unread) for each in mends(accounts, node)),
        loans=tuple(_loans(accounts, first, found.unread(accounts.gangs.names[first]))) if first is not None else (),
        sensitivities=tuple(_sensitivities(found, node, first, watch)) if wanted else (),
    )


def _of_its_part(
    found: Audit, node: int, policies: AnyPolicy | Sequence[AnyPolicy] | None, watch: Callable[[str], None]
) -> Iterator[Alternative]:
    """Yield what policies give a user or group, and those on whom that depends."""
    users = users_in(found.accounts.said, node)
    for policy in chosen(found.market, policies, found.source, found.policy):
        watch(f"{policy.name} decides")
        yield of_part(found.market, policy, users)


def _loans(accounts: EntitlementAccounts, gang: int, unread: Sequence[str]) -> Iterator[Statement]:
    """Yield the least that has to be given to a gang on each type, the type with the least first.

    ``unread``: what the files say of it and the rule does not read.
    """
    nothing = (NOT_READ.format(named(unread)) if unread else NOTHING).removeprefix(": ")
    more = [f"and what the rule does not read must let it: {named(unread)}"] if unread else []
    gangs, found = accounts.gangs, []
    user, gpus, name = int(gangs.user[gang]), gangs.size(gang), gangs.names[gang]
    spare, on_free = beside_served(accounts)
    spare.stop(on_free.get(gang, {}))
    for j in np.flatnonzero(gangs.allowed[gang]).tolist():
        kind, steps, total = accounts.market.types[j], [], 0
        owed, pool = accounts.is_owed(gang, j), accounts.pools.of(user, j)
        free, kept = (
            (accounts.free_for(accounts.owed_at[gang][0], j), {}) if owed else accounts.pools.left_for(user, j)[:2]
        )
        for node in accounts.around(user):
            cap = accounts.said.cap[node, j]
            if gpus > accounts.cap_room[node, j] and not (owed and node == pool and gpus <= cap):
                own = ", the sum of its quotas," * (node == pool)
                if node == pool:  # then its members have more, as far as there are GPUs
                    free += plain(accounts.held[node, j] + gpus - cap)
                    free = min(free, plain(accounts.left[j]))
                to = number_text(accounts.held[node, j] + gpus)
                steps.append(f"raise the cap of {accounts.said.nodes[node]}{own} from {number_text(cap)} to {to}")
        steps += _goods_steps(accounts, gang, j, spare if owed else SpareGoods(accounts))
        open_to_all = max(0, free - sum(kept.values()))
        for other, reserve in kept.items():
            lent = min(reserve, gpus - open_to_all, free - open_to_all)
            if lent > 0 and gpus > open_to_all:
                steps.append(f"let {accounts.said.nodes[other]} lend {lent} of the {reserve} {kind} that it keeps")
                open_to_all, total = open_to_all + lent, total + lent
        if gpus > open_to_all:
            missing = gpus - open_to_all - min(0, free)
            steps.append(f"free or add {missing} {kind}")
            total, free = total + missing, free + missing
        goods = SpareGoods(accounts).missing(goods_of(accounts, [gang], j))
        first = tuple(gangs.names[each] for each in ahead(accounts, gang, j, free, goods))
        gives = (*steps, *more) if steps else (nothing,)
        found.append(LOAN.of(gang=name, type=kind, gpus=total, steps=gives, ahead=first))
    yield from sorted(found, key=lambda loan: (loan.gpus, len(loan.steps)))


def _goods_steps(accounts: EntitlementAccounts, gang: int, gpu_type: int, spare: SpareGoods) -> Iterator[str]:
    """Yield what a gang must be given of CPU, memory and other goods on a type, beside what is left."""
    taken = goods_of(accounts, [gang], gpu_type)
    for (node, column), short in spare.missing(taken).items():
        good = accounts.said.columns[column]
        if node == TOP:
            yield f"free or add {number_text(short)} {good}"
        else:
            cap = accounts.said.cap[node, column]
            to = number_text(cap + short)
            yield f"raise the cap of {accounts.said.nodes[node]} on {good} from {number_text(cap)} to {to}"


def _sensitivities(found: Audit, node: int, gang: int | None, watch: Callable[[str], None]) -> Iterator[Statement]:
    """Yield what more gives a node, under the rules of its own scheduler where there are any among the policies."""
    own = [each for each in found.alternatives if each.policy in own_rules(found.source)]
    for base in own or found.alternatives:
        for change in _one_more(found, node) if base.shares is not None else ():
            one = _with(found, node, base, change, watch)
            if one is not None and not one.gains and gang is not None and change.type:
                more = Fraction(found.accounts.gangs.size(gang))
                one = _with(found, node, base, change.but(value=more), watch) or one
            if one is not None:
                yield one


def _with(
    found: Audit, node: int, base: Alternative, change: Statement, watch: Callable[[str], None]
) -> Statement | None:
    """Return what a change gives; None where it cannot be made alone, such as a quota that is at its cap."""
    watch(f"{base.policy} decides with {change}")
    try:
        market = with_settings(found.market, [change])
        new = changed(market, found.rule(base.policy), (found.market, {base.policy: base}))
    except BadInput:
        return None
    if new.shares is None or base.shares is None:
        return None
    users = users_in(found.accounts.said, node)
    more = new.shares - base.shares
    own = more[users].sum(axis=0)
    gains = {kind: own[j] for j, kind in enumerate(found.market.types) if own[j]}
    needs = tuple(_needs(found, node, base, new.shares.sum(axis=0), market.capacity)) if gains else ()
    others = more.sum() - own.sum()
    return SENSITIVITY.of(policy=base.policy, change=change, gains=gains, others=others, needs=needs)


def _needs(found: Audit, node: int, base: Alternative, given: Array, capacity: Array) -> Iterator[str]:
    """Yield what must be there so that a policy can give ``given`` (k,) GPUs, where ``base`` says what it gives now.

    ``capacity`` (k,): the GPUs that there are with the change.
    """
    accounts = found.accounts
    assert base.shares is not None
    for j, kind in enumerate(found.market.types):
        there = capacity[j]
        beyond = given[j] - max(there, base.shares[:, j].sum())
        if beyond <= 0:
            continue
        holders = accounts.borrowers(node, j)
        short = ceil(given[j] - there)
        granted = dict.fromkeys(accounts.around(node), short)
        reclaim = smallest(accounts, j, short, sorted(holders), granted) if holders else None
        instead = f", or {reclaim}" if reclaim is not None and reclaim.stops else ", since nobody else borrows any"
        said = f"{base.policy} counts quotas, and would give {number_text(given[j])} {kind} where there are"
        yield f"{said} {number_text(there)}: add {number_text(given[j] - there)} {kind}{instead}"


def _one_more(found: Audit, node: int) -> Iterator[Statement]:
    """Yield one more of everything that may matter to a node: on the types that it holds or asks for."""
    accounts, one = found.accounts, Fraction(1)
    name = accounts.said.nodes[node]
    for j, kind in enumerate(accounts.market.types):
        if not (accounts.held[node, j] or accounts.asks[node, j]):
            continue
        if accounts.owed[node, j] < BOUNDLESS:
            yield set_to(name, kind, "quota", one, adds=True)
        if accounts.said.cap[node, j] < INFINITY:
            yield set_to(name, kind, "cap", one, adds=True)
        yield set_to("", kind, CAPACITY, one, adds=True)
    yield set_to(name, "", "weight", one, adds=True)
