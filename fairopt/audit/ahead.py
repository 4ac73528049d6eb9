"""Which waiting gangs may take free GPUs before another one, by what the file says of priority, dues and time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.spare_goods import Limit, SpareGoods, goods_of


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
    spare, raised = SpareGoods(accounts), accounts.around(int(gangs.user[gang]))
    keeps = bool(accounts.locked[:, gpu_type].any())
    for each in accounts.order:
        if not fits[each] or not _goes_first(accounts, each, gang, gpu_type):
            continue
        if _set_aside(accounts, each, gang, gpu_type):
            continue
        gpus, user = int(gangs.gpus[each]), int(gangs.user[each])
        room = [
            max(int(accounts.cap_room[node, gpu_type]), int(gangs.gpus[gang]) if node in raised else 0)
            for node in accounts.around(user)
        ]
        kept = 0
        if keeps and not accounts.is_owed(each, gpu_type):
            kept = sum(accounts.kept_by_others(user, gpu_type).values())
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
