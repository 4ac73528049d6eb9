"""Which waiting gangs may take free GPUs before another one, by what the file says of priority, dues and time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.spare_goods import Limit, SpareGoods, goods_of


@dataclass(frozen=True, eq=False)
class Ahead:
    """Who may take some of ``free`` GPUs of a type before a pending ``gang`` does; iterate for the gangs, in order.

    They have a higher priority, or are owed the GPUs where ``gang`` is not, or, alike in both, asked earlier. Each fits
    into the free GPUs and below its caps, of which those above ``gang`` leave room for that, and finds its goods, of
    which there is more at the limits ``given``. Gangs for which free GPUs were set aside before are left out.

    >>> from fairopt.problem import Entitlements, Gangs, Market
    >>> gangs = Gangs.of(["A", "B"], [4, 2], users=["A", "B"], types=["H100"], tier=[0, 1])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], gangs=gangs)
    >>> books = EntitlementAccounts(Market.of([[1], [1]], [1], users=["A", "B"], types=["H100"], entitlements=owed))
    >>> list(Ahead(books, 0, 0, free=4)), list(Ahead(books, 1, 0, free=4))
    ([1], [])
    """

    books: EntitlementAccounts
    gang: int
    gpu_type: int
    free: int
    given: Collection[Limit] = ()

    def __iter__(self) -> Iterator[int]:
        """Yield the gangs, those of high tiers and those that asked first before others."""
        gangs = self.books.gangs
        fits = gangs.pending & (gangs.gpus > 0) & (gangs.gpus <= self.free) & gangs.allowed[:, self.gpu_type]
        fits[self.gang] = False
        for each in self.books.order if fits.any() else ():
            if fits[each] and self._goes_first(each) and not self._set_aside(each) and self._has_room(each):
                yield each

    def _is_owed(self, gang: int) -> bool:
        return gang in self.books.owed_at and self.books.owed_at[gang][1] == self.gpu_type

    def _goes_first(self, other: int) -> bool:
        tier, place = self.books.gangs.tier, self.books.place
        more, owed = tier[other] - tier[self.gang], self._is_owed(other) - self._is_owed(self.gang)
        return bool(more > 0 or owed > 0 if more or owed else place[other] < place[self.gang])

    def _set_aside(self, other: int) -> bool:
        """Whether free GPUs serve it: of another type, or some that were not counted as free for ``gang``."""
        books = self.books
        if other not in books.served:
            return False
        return not self._is_owed(other) or (
            self._is_owed(self.gang) and books.owed_at[other] != books.owed_at[self.gang]
        )

    def _has_room(self, other: int) -> bool:
        books, j, user = self.books, self.gpu_type, int(self.books.gangs.user[other])
        gpus, own = int(books.gangs.gpus[other]), int(books.gangs.gpus[self.gang])
        for node in (user, *books.above(user)):
            if gpus > max(int(books.cap_room[node, j]), own if node in self._raised else 0):
                return False
        kept = 0 if self._is_owed(other) or not self._anybody_keeps else self._kept_from(user)
        lacks = self._spare.missing(goods_of(books, [other], j)).keys() - set(self.given)
        return gpus <= self.free - kept and not lacks

    def _kept_from(self, user: int) -> int:
        return sum(each.gpus for each in self.books.kept_by_others(user, self.gpu_type))

    @cached_property
    def _anybody_keeps(self) -> bool:
        return bool(self.books.locked[:, self.gpu_type].any())

    @cached_property
    def _raised(self) -> frozenset[int]:
        """The user and the groups whose caps are to leave room for ``gang``."""
        user = int(self.books.gangs.user[self.gang])
        return frozenset((user, *self.books.above(user)))

    @cached_property
    def _spare(self) -> SpareGoods:
        return SpareGoods(self.books)
