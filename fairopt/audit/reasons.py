"""Why a gang waits: what stops it, and which others may take free GPUs before it, without any scheduler's rule."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from fairopt.audit.accounts import EntitlementAccounts, users_in
from fairopt.audit.pools import BOUNDLESS, plain, whole
from fairopt.audit.spare_goods import Limit, SpareGoods, goods_of
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY, Number, number_text, objects
from fairopt.report import SAYS, Key, ResultForm, Statement, listed

#: The most users that a sentence names, and of how many it is said at which priority they run.
NAMED, MOST_HOLDERS = 3, 50


class Cause(enum.Enum):
    """What stops a gang on a type; of several types the one whose cause stands first is said first: it lacks least.

    >>> Cause.TOO_LARGE.value
    'too large'
    """

    OPEN = "nothing"  # GPUs are free for it
    RULE = "rule"  # GPUs are free for it, and the scheduler's own rule does not start it
    HELD = "held"  # it is owed the GPUs, and others hold more than they are owed
    PROMISED = "promised"  # it is owed the GPUs, and everybody else holds no more than it is owed
    RESERVED = "reserved"  # GPUs are free, and others keep them
    GANG = "gang"  # it needs more together than are free
    FULL = "full"  # none is free, and it is owed no more
    CAP = "cap"  # of the user, or of a group that it is in
    GOOD = "good"  # CPU, memory
    TOO_LARGE = "too large"  # the cluster has fewer GPUs of the type


#: What is said where GPUs are free for a gang, and no account keeps it from them.
NOTHING = ": nothing in the file stops it"
#: The same where the files say something of it that the rule does not read.
NOT_READ = ": nothing that the rule reads stops it, and it does not read {}"


def are(count: Number) -> str:
    """Return the verb for so many GPUs."""
    return "is" if count in (0, 1) else "are"


def _waits(it: Statement) -> str:
    said = "; ".join(dict.fromkeys(map(str, it.stops))) or "it may run on no type that there is"
    some = [*it.elsewhere[:NAMED], *[f"{len(it.elsewhere) - NAMED} more types"] * (len(it.elsewhere) > NAMED)]
    other = f". It may not run on {', nor on '.join(some)}" if some else ""
    return f"{it.gang} ({it.gpus} GPU{'s' * (it.gpus != 1)}) waits: {said}{other}"


#: What stops a gang on one type; ``words`` has the numbers.
STOP = ResultForm(
    "What stops a gang on a type.",
    Key("type", str, "The type."),
    Key("cause", Cause, "What it is."),
    Key("who", str, "The user, group or good that does."),
    SAYS,
    sentence=lambda it: str(it.words),
)
#: Why a gang of a ``user`` waits. ``gangs``: how many wait for the same reason, it among them.
REASON = ResultForm(
    "Why a gang waits.",
    Key("gang", str, "The gang."),
    Key("gpus", int, "Its GPUs."),
    Key("owed", bool, "Whether it fits into what is owed."),
    Key("stops", listed(STOP), "What stops it, on each type on which it may run."),
    Key("elsewhere", list[str], "Types on which enough GPUs are free and where it may not run."),
    SAYS,
    sentence=_waits,
)


def stop(kind: str, cause: Cause, words: str, who: str = "") -> Statement:
    """Return what stops a gang on a type."""
    return STOP.of(type=kind, cause=cause, words=words, who=who)


def reason_of(accounts: EntitlementAccounts, gang: int) -> Statement:
    """Return why a pending gang waits, from the accounts alone.

    >>> from fairopt.problem import Entitlements, Gangs, Market
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"], names=["a", "b"], on=[None, "H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]}, gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(reason_of(EntitlementAccounts(market), 0))
    a (4 GPUs) waits: A is owed 4 more H100, 2 are free, and B holds 2 more than it is owed
    """
    gangs = accounts.gangs
    user, gpus = int(gangs.user[gang]), gangs.size(gang)
    where = [j for j in range(accounts.k) if gangs.allowed[gang, j]]
    types = accounts.market.types
    place = accounts.owed_at.get(gang)
    stops = sorted((_stop(accounts, gang, j) for j in where), key=lambda each: list(Cause).index(each.cause))
    if place is not None:  # where it is owed comes first
        stops.sort(key=lambda each: each.type != types[place[1]])
    elsewhere = [
        f"{types[j]}, of which {accounts.free[j]} {are(accounts.free[j])} free"
        for j in range(accounts.k)
        if j not in where and accounts.free[j] >= gpus > 0
    ]
    name = accounts.market.users[user]
    parts = {"gang": gangs.names[gang], "user": name, "gpus": gpus, "owed": place is not None, "gangs": 1}
    return REASON.of(**parts, stops=tuple(stops), elsewhere=tuple(elsewhere))


def by_rule(reason: Statement, waits: Sequence[Mapping[str, str]]) -> Statement:
    """Return the reason with what the scheduler's own rule says in the place of "nothing stops it".

    ``waits``: why gangs wait by each rule that may be the scheduler's; one that starts the gang leaves the reason as it
    is.

    >>> free = stop("H100", Cause.OPEN, f"4 H100 are free{NOTHING}")
    >>> open_ = REASON.of(gang="a", gpus=4, stops=(free,), elsewhere=())
    >>> print(by_rule(open_, [{"a": "H100 is kept for b, which goes first"}]))
    a (4 GPUs) waits: 4 H100 are free: H100 is kept for b, which goes first
    """
    said = [each.get(reason.gang, "") for each in waits]
    if not said or not all(said):
        return reason
    stops = (
        each.but(cause=Cause.RULE, words=f"{each.words.partition(NOTHING)[0]}: {said[0]}")
        if each.cause is Cause.OPEN
        else each
        for each in reason.stops
    )
    return reason.but(stops=tuple(stops))


def still(before: EntitlementAccounts, now: EntitlementAccounts) -> Callable[[int], bool]:
    """Return what says of a pending gang whether it waits for the same reason in two accounts, a rule's words aside."""
    same = now.alike(before)

    def stands(gang: int) -> bool:
        return (
            all(same[j] for j in np.flatnonzero(now.gangs.allowed[gang]).tolist())
            and before.owed_at.get(gang) == now.owed_at.get(gang)
            and (gang in before.served) == (gang in now.served)
        )

    return stands


def named(unread: Sequence[str]) -> str:
    """Return the first things that a rule does not read, and how many more there are."""
    more = len(unread) - NAMED
    return "; ".join(unread[:NAMED]) + (f"; and {more} more" if more > 0 else "")


def as_far_as_read(reason: Statement, unread: Callable[[str], Sequence[str]]) -> Statement:
    """Return the reason with what the files say of the gang and the rule does not read, where nothing else stops it.

    ``unread`` says that of a gang, by its name.

    >>> free = stop("H100", Cause.OPEN, f"4 H100 are free{NOTHING}")
    >>> open_ = REASON.of(gang="a", gpus=4, stops=(free,), elsewhere=())
    >>> print(as_far_as_read(open_, lambda gang: ["scontrol show job, features ('nvlink')"]).stops[0].words)
    4 H100 are free: nothing that the rule reads stops it, and it does not read scontrol show job, features ('nvlink')
    """
    if all(each.cause is not Cause.OPEN for each in reason.stops) or not (found := unread(reason.gang)):
        return reason
    instead = NOT_READ.format(named(found))
    stops = (
        each.but(words=each.words.replace(NOTHING, instead)) if each.cause is Cause.OPEN else each
        for each in reason.stops
    )
    return reason.but(stops=tuple(stops))


def _stop(accounts: EntitlementAccounts, gang: int, j: int) -> Statement:
    gangs, kind = accounts.gangs, accounts.market.types[j]
    gpus = gangs.size(gang)
    there = accounts.market.capacity[j]
    if gpus > there:
        words = f"it needs {gpus} {kind} together, and there {are(there)} {number_text(there)}"
        return stop(kind, Cause.TOO_LARGE, words)
    return _by_cap(accounts, gang, j) or _by_good(accounts, gang, j) or _by_others(accounts, gang, j, gpus)


def _by_cap(accounts: EntitlementAccounts, gang: int, j: int) -> Statement | None:
    kind = accounts.market.types[j]
    user, gpus = int(accounts.gangs.user[gang]), accounts.gangs.size(gang)
    for node in accounts.around(user):
        room = plain(accounts.cap_room[node, j])
        of_pool = node == accounts.pools.of(user, j) and gpus <= accounts.said.cap[node, j]
        if gpus > room and not (of_pool and accounts.is_owed(gang, j)):  # of a pool, others hold what it is owed
            name, most = accounts.said.nodes[node], accounts.said.cap[node, j]
            held = number_text(accounts.held[node, j])
            who = name if node == user else f"the group {name}"
            return stop(kind, Cause.CAP, f"{who} holds {held} {kind} and may hold {number_text(most)}", name)
    return None


def _by_good(accounts: EntitlementAccounts, gang: int, j: int) -> Statement | None:
    for column, amount in accounts.said.goods_of(gang, j):
        name = accounts.said.columns[column]
        user = int(accounts.gangs.user[gang])
        for node in accounts.around(user):
            held, most = accounts.held[node, column], accounts.said.cap[node, column]
            if most != INFINITY and held + amount > most:
                words = f"it takes {number_text(amount)} {name}, of which {accounts.said.nodes[node]} holds "
                return stop(
                    accounts.market.types[j],
                    Cause.GOOD,
                    f"{words}{number_text(held)} and may hold {number_text(most)}",
                    name,
                )
        left = max(0, accounts.goods_left[column - accounts.k])
        if amount > left:
            words = f"it takes {number_text(amount)} {name}, and {number_text(left)} {are(left)} free"
            return stop(accounts.market.types[j], Cause.GOOD, words, name)
    return None


def _by_others(accounts: EntitlementAccounts, gang: int, j: int, gpus: int) -> Statement:
    kind = accounts.market.types[j]
    user = int(accounts.gangs.user[gang])
    left, kept, pool = accounts.pools.left_for(user, j)
    free, there = max(0, left), kind if pool == TOP else f"{kind} of {accounts.said.nodes[pool]}"
    owed = accounts.is_owed(gang, j)
    if owed and gang in accounts.served:
        words = f"{free} {there} {are(free)} free and it is owed them{NOTHING}"
        return stop(kind, Cause.OPEN, words)
    if owed:
        return _by_holders(accounts, gang, j)
    open_to_all = free - sum(kept.values())
    if gpus <= open_to_all:
        first = _before(accounts, gang, j)
        words = f"{free} {there} {are(free)} free{NOTHING}{first}"
        return stop(kind, Cause.OPEN, words)
    if gpus <= free:
        words = f"{free} {there} {are(free)} free, and others keep theirs: {_few(accounts, kept)}"
        return stop(kind, Cause.RESERVED, words, accounts.said.nodes[next(iter(kept))])
    if free:
        words = f"it needs {gpus} {there} together, and {free} {are(free)} free"
        return stop(kind, Cause.GANG, words)
    held, due = (number_text(each[user, j] // 1) for each in (accounts.held, np.minimum(accounts.owed, BOUNDLESS)))
    words = f"no {there} is free, and {accounts.market.users[user]} holds {held} of {due} that it is owed"
    return stop(kind, Cause.FULL, words)


def _by_holders(accounts: EntitlementAccounts, gang: int, j: int) -> Statement:
    kind = accounts.market.types[j]
    node = accounts.owed_at[gang][0]
    room, pool = plain(accounts.owed_room[node, j]), accounts.pools.of(int(accounts.gangs.user[gang]), j)
    free = max(0, accounts.pools.left_in(pool, j))
    asked = min(room, plain(accounts.asks[node, j]))
    more = f"{asked} more {kind}" if room < BOUNDLESS else f"all {kind} that it asks for"
    owed = f"{accounts.said.nodes[node]} is owed {more}, {free or 'none'} {are(free)} free"
    owed += f" in {accounts.said.nodes[pool]}" * (pool not in (TOP, node))
    owed += " and others are before it" * bool(accounts.gangs.gpus[gang] <= free)
    holders = accounts.borrowers(node, j)
    if not holders:
        return stop(kind, Cause.PROMISED, f"{owed}, and nobody else holds more than it is owed")
    higher, fixed = _out_of_reach(accounts, gang, j, holders)
    notes = [f"{higher} of them at a higher priority"] * bool(higher) + [f"{fixed} not preemptible"] * bool(fixed)
    said = f" ({', '.join(notes)})" if notes else ""
    names = _few(accounts, holders, "{} holds {} more than {} owed", j)
    return stop(kind, Cause.HELD, f"{owed}, and {names}{said}", accounts.said.nodes[next(iter(holders))])


def _out_of_reach(accounts: EntitlementAccounts, gang: int, j: int, holders: Mapping[int, int]) -> tuple[int, int]:
    """Return how many of the borrowed GPUs run at a higher priority than a gang, and how many may not be stopped.

    Of a user's gangs, those of low priority count as what it borrows.
    """
    gangs, higher, fixed = accounts.gangs, 0, 0
    for user, borrowed in holders.items() if len(holders) <= MOST_HOLDERS else ():
        runs = accounts.running.get((user, j), [])
        held, fixed_of = whole(objects([accounts.held[user, j], accounts.fixed[user, j]]), gangs.parts).tolist()
        above = sum(gangs.size(each) for each in runs if gangs.tier[each] > gangs.tier[gang])
        higher += max(0, above - held + borrowed)
        fixed += max(0, fixed_of - held + borrowed)
    return higher, fixed


def _before(accounts: EntitlementAccounts, gang: int, j: int) -> str:
    """Return how many pending gangs of a higher priority may run on a type, in words; "" for none."""
    gangs = accounts.gangs
    pool = accounts.pools.left_for(int(gangs.user[gang]), j)[2]
    beside = np.isin(gangs.user, users_in(accounts.said, pool)) if pool != TOP else True
    ahead = int((gangs.pending & gangs.allowed[:, j] & (gangs.tier > gangs.tier[gang]) & beside).sum())
    who = "a gang of a higher priority waits" if ahead == 1 else f"{ahead} gangs of a higher priority wait"
    return f", but {who} for them too" if ahead else ""


def _few(accounts: EntitlementAccounts, rows: Mapping[int, int], form: str = "{} {}", j: int = 0) -> str:
    names = [
        form.format(accounts.said.nodes[node], gpus, "it is" if gpus == accounts.borrowed[node, j] else "its group is")
        for node, gpus in [*rows.items()][:NAMED]
    ]
    more = sum([*rows.values()][NAMED:])
    return ", ".join(names) + (f" and {len(rows) - NAMED} others {more}" if more else "")


def ahead(
    accounts: EntitlementAccounts, gang: int, gpu_type: int, free: int, given: Collection[Limit] = ()
) -> Iterator[int]:
    """Yield who may take some of ``free`` GPUs of a type before a pending ``gang`` does: the gangs, in order.

    They have a higher priority, or are owed the GPUs where ``gang`` is not, or, alike in both, asked earlier. Each fits
    into the free GPUs and below its caps, of which those above ``gang`` leave room for that, and finds its goods, of
    which there is more at the limits ``given``. Gangs for which free GPUs were set aside before are left out.

    >>> from fairopt.problem import Entitlements, Gangs, Market
    >>> gangs = Gangs.of(["A", "B"], [4, 2], users=["A", "B"], types=["H100"], tier=[0, 1])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], gangs=gangs)
    >>> found = EntitlementAccounts(Market.of([[1], [1]], [1], users=["A", "B"], types=["H100"], entitlements=owed))
    >>> list(ahead(found, 0, 0, free=4)), list(ahead(found, 1, 0, free=4))
    ([1], [])
    """
    gangs = accounts.gangs
    fits = gangs.pending & (gangs.gpus > 0) & (gangs.gpus <= free) & gangs.allowed[:, gpu_type]
    fits[gang] = False
    if not fits.any():
        return
    pool = accounts.pools.left_for(int(gangs.user[gang]), gpu_type)[2]
    if pool != TOP:  # nobody else may have what is free in it
        fits &= np.isin(gangs.user, users_in(accounts.said, pool))
    spare, raised = SpareGoods(accounts), accounts.around(int(gangs.user[gang]))
    for each in accounts.order:
        if not fits[each] or not _goes_first(accounts, each, gang, gpu_type):
            continue
        if _set_aside(accounts, each, gang, gpu_type):
            continue
        gpus, user = gangs.size(each), int(gangs.user[each])
        room = [
            max(plain(accounts.cap_room[node, gpu_type]), gangs.size(gang) if node in raised else 0)
            for node in accounts.around(user)
        ]
        kept = 0
        if not accounts.is_owed(each, gpu_type):
            kept = sum(accounts.pools.left_for(user, gpu_type)[1].values())
        lacks = spare.missing(goods_of(accounts, [each], gpu_type)).keys() - set(given)
        if gpus <= min(*room, free - kept) and not lacks:
            yield each


def _goes_first(accounts: EntitlementAccounts, other: int, gang: int, gpu_type: int) -> bool:
    tier, place = accounts.gangs.tier, accounts.place
    more, owed = tier[other] - tier[gang], accounts.is_owed(other, gpu_type) - accounts.is_owed(gang, gpu_type)
    return bool(more > 0 or owed > 0 if more or owed else place[other] < place[gang])


def _set_aside(accounts: EntitlementAccounts, other: int, gang: int, gpu_type: int) -> bool:
    """Whether free GPUs serve it: of another type, or some that were not counted as free for ``gang``."""
    if other not in accounts.served:
        return False
    if not accounts.is_owed(other, gpu_type):
        return True
    return accounts.is_owed(gang, gpu_type) and accounts.owed_at[other] != accounts.owed_at[gang]
