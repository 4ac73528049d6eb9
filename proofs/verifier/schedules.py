"""Schedules of a batch of jobs: whether a plan keeps the constraints of Astraea's revenue maximisation.

In fractions, it is decided of any plan that

* the schedules keep (3a)-(3o), named by letter. (3f), (3h), (3m), (3n) are in the form of a schedule: alike
  from its first slot to its last. (3i) is read for servers that hold PS: for all, as printed, it would forbid
  any that stays empty. Quotas add up to what servers hold;
* where decisions are told: those admitted are the schedules; what was admitted as its tenant's own fits into
  its quota; utilities are those of the completion, counted from the round's origin;
* where jobs pay: each slot costs the same part of a job's cost, divided among the tenants in proportion to
  what they leave unused, workers and PS apart, Eq. (2) and (11); incomes add up to what is paid, exactly;
* where bases of prices are told: intervals, rounds and passes are those of Algorithms 1 and 2, each offers
  every job that waits, own shares first; costs are at the prices (8) of what was in use; who gains is in.

Not decided: whether a schedule was the best for its job, where bases come from, how many intervals are due.
Prices are irrational: costs, and powers that are no whole number, may be off by the tolerance, in a round.

Source: Astraea (posted prices), Eq. (1)-(3), (8), (11), Algorithms 1-3.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from .plan import PARTS, Bases, Holder, Offer, Payment, Plan, Schedule
from .reading import Unreadable as Unreadable
from .reading import brief, parsed, shown, summed

NEAR = Fraction("1e-9")
#: The letters of the constraints on all that a part has, and on what a server has of it.
WHOLE, AT_SERVER = ("(3a)", "(3b)"), ("(3c)", "(3d)")
Key = tuple[int, int, int]  #: of what is in use: part, type, and whose (a server, a tenant, or ALL)
ALL = -1


class Usage:
    """How many devices are in use in each slot. The number changes at few slots, and only those are kept."""

    def __init__(self) -> None:
        self._begins, self._counts = [0], [0]  # from each of these slots on, so many

    def add(self, first: int, last: int, count: int) -> None:
        """Use ``count`` more from slot ``first`` to slot ``last``."""
        begin, end = self._cut(first), self._cut(last + 1)
        for at in range(begin, end):
            self._counts[at] += count

    def _cut(self, slot: int) -> int:
        """Return where the stretch stands that begins at a slot; one is cut in two where none does."""
        at = bisect_right(self._begins, slot) - 1
        if self._begins[at] == slot:
            return at
        self._begins.insert(at + 1, slot)
        self._counts.insert(at + 1, self._counts[at])
        return at + 1

    def at(self, slot: int) -> int:
        """Return how many are in use in a slot."""
        return self._counts[bisect_right(self._begins, slot) - 1]

    def stretches(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield, from slot ``first`` to ``last``, (how many slots, how many are in use in each of them)."""
        at = bisect_right(self._begins, first) - 1
        while first <= last:
            end = self._begins[at + 1] - 1 if at + 1 < len(self._begins) else last
            yield min(end, last) - first + 1, self._counts[at]
            first, at = end + 1, at + 1

    def first_above(self, limit: int) -> tuple[int, int] | None:
        """Return the first slot in which more than ``limit`` are in use, and how many; None without one."""
        stretches = zip(self._begins, self._counts, strict=True)
        return next(((slot, count) for slot, count in stretches if count > limit), None)


def used_by(entries: Iterable[tuple[Key, Schedule, int]]) -> dict[Key, Usage]:
    """Return what is in use by key: schedules, and how many devices each uses."""
    use: dict[Key, Usage] = defaultdict(Usage)
    for key, it, count in entries:
        use[key].add(it.first, it.last, count)
    return use


def in_all(holders: list[Holder], part: int, at: int) -> int:
    """Return how much tenants own, or servers hold, of a type in all."""
    return sum(each.has[part][at] for each in holders)


class Judge:
    """A plan, and what is wrong in it."""

    def __init__(self, plan: Plan, tolerance: Fraction) -> None:
        self.plan, self.tolerance = plan, tolerance
        own = [each.schedule for each in plan.offers if each.admitted and each.own and each.schedule]
        # by part, type and tenant: what its jobs use that were admitted as its own
        self.own = used_by(
            ((part, it.types[part], plan.jobs[it.job].tenant), it, it.devices(part))
            for it, part in product(own, (0, 1))
        )

    def violations(self) -> Iterator[str]:
        """Yield what is wrong."""
        plan = self.plan
        yield from self._quotas()
        if len({each.job for each in plan.schedules}) < len(plan.schedules):
            yield "a job has two schedules"
        for each in plan.schedules:
            yield from (f"job {self._name(each.job)}: {what}" for what in self._alone(each))
        yield from self._capacities()
        if plan.offers:
            yield from self._decisions()
        yield from self._within_shares()
        yield from self._payments()
        if plan.bases:
            yield from Prices(self).violations()

    def _name(self, job: int) -> str:
        return repr(self.plan.jobs[job].name)

    def near(self, found: Fraction, right: Fraction | float, size: Fraction | float) -> bool:
        """Return whether a number is right up to the tolerance times ``size``, which counts as 1 at least."""
        return abs(found - Fraction(right)) <= self.tolerance * max(Fraction(size), Fraction(1))

    # -- the schedules by themselves -----------------------------------------------------------------------
    def _quotas(self) -> Iterator[str]:
        for part, types in enumerate(self.plan.types):
            for name, at in types.items():
                owned, held = (in_all(those, part, at) for those in (self.plan.tenants, self.plan.servers))
                if owned != held:
                    yield f"quotas: tenants own {owned} {PARTS[part]} of type {name!r}, servers hold {held}"

    def _alone(self, it: Schedule) -> Iterator[str]:
        """Yield what is wrong with a schedule, whatever else runs."""
        job, workers, ps = self.plan.jobs[it.job], it.devices(0), it.devices(1)
        if workers > job.chunks:
            yield f"(3e) {workers} workers for {job.chunks} chunks"
        if not (workers and ps):
            yield f"(3g) {workers} workers and {ps} PS"
        link, ps_link = (self.plan.bandwidth[part][it.types[part]] for part in (0, 1))
        for server, here in it.spots[1]:
            away = workers - dict(it.spots[0]).get(server, 0)
            if away * link > here * ps_link:
                name = self.plan.servers[server].name
                yield f"(3i) {here} PS on {name!r} carry {shown(here * ps_link)} of {shown(away * link)}"
        together = len({server for part in it.spots for server, _ in part}) == 1
        if it.together is not together:
            yield f"(3j) zeta is {int(it.together)}"
        # the time of a mini-batch on one worker, 1 / n_j in Eq. (1)
        time = job.minibatch_time[it.types[0]] + job.update_time[it.types[1]]
        time += 0 if together else 2 * job.gradient / link
        done = it.slots * workers / time
        if done < job.work:
            yield f"(3k) {shown(done)} mini-batches of {shown(job.work)}"
        if it.first < job.arrival:
            yield f"(3l) it begins in slot {it.first} and arrives at {job.arrival}"

    def _capacities(self) -> Iterator[str]:
        """Yield where more is in use than there is: of a type in all, and of a type at a server."""
        plan = self.plan
        use = used_by(
            ((part, it.types[part], server), it, count)
            for it, part in product(plan.schedules, (0, 1))
            for server, count in (*it.spots[part], (ALL, it.devices(part)))
        )
        for (part, at, server), usage in use.items():
            place, there = WHOLE[part], in_all(plan.tenants, part, at)
            if server != ALL:
                holder = plan.servers[server]
                place, there = f"{AT_SERVER[part]} server {holder.name!r},", holder.has[part][at]
            if above := usage.first_above(there):
                slot, used = above
                name = list(plan.types[part])[at]
                yield f"{place} slot {slot}: {used} {PARTS[part]} of {there}, type {name!r}"

    # -- decisions, and what they say ----------------------------------------------------------------------
    def _decisions(self) -> Iterator[str]:
        """Yield where schedules are not those admitted, or a utility is not that of the completion."""
        taken = Counter(each.schedule for each in self.plan.offers if each.admitted)
        if taken != Counter(self.plan.schedules):
            yield "the schedules are not those admitted"
        for each in self.plan.offers:
            place, right = f"admission of {self._name(each.job)}", Fraction(0)
            if each.schedule is None:
                if any(each.costs):
                    yield f"{place}: nothing costs something"
            else:
                worth = self.plan.jobs[each.job].utility(Fraction(each.schedule.last - each.origin))
                right = Fraction(worth)
                if isinstance(worth, float) and self.near(each.utility, worth, abs(worth)):
                    continue
            if each.utility != right:
                yield f"{place}: utility {shown(each.utility)} and should be {shown(right)}"

    def _within_shares(self) -> Iterator[str]:
        for (part, at, tenant), usage in self.own.items():
            owner = self.plan.tenants[tenant]
            if above := usage.first_above(owner.has[part][at]):
                used = f"slot {above[0]}: {owner.name!r} has {above[1]} {PARTS[part]}"
                yield f"{used} within a share of {owner.has[part][at]}"

    # -- payments ------------------------------------------------------------------------------------------
    def _payments(self) -> Iterator[str]:
        """Yield payments that are missing, for nothing, or of a wrong amount."""
        by_job: dict[int, dict[int, Payment]] = defaultdict(dict)
        for payment in self.plan.payments:
            if payment.slot in by_job[payment.job]:
                yield "a job pays twice for a slot"
            by_job[payment.job][payment.slot] = payment
        for each in self.plan.offers:
            if each.admitted and not each.own and each.schedule is not None:
                yield from self._paid(each, each.schedule, by_job.pop(each.job, {}))
        for job, payments in by_job.items():
            yield from (f"payment of {self._name(job)}, slot {slot}: for nothing" for slot in payments)

    def _paid(self, offer: Offer, it: Schedule, payments: dict[int, Payment]) -> Iterator[str]:
        """Yield what is wrong with a job's payments; where nothing is due, nothing need be told."""
        of_job = f"payment of {self._name(it.job)}"
        expected = [slot for slot in payments if it.first <= slot <= it.last]
        if len(expected) < it.slots and (any(offer.costs) or payments):
            slot = next(slot for slot in range(it.first, it.last + 1) if slot not in payments)
            yield f"{of_job}, slot {slot}: missing"
        for slot, payment in payments.items():
            place = f"{of_job}, slot {slot}"
            if not it.first <= slot <= it.last:
                yield f"{place}: for nothing"
                continue  # nothing is due then
            right = [Fraction(0)] * len(self.plan.tenants)
            for part, cost in enumerate(offer.costs):
                due = cost / it.slots
                if payment.paid[part] != due:
                    paid = f"{PARTS[part]} cost {shown(payment.paid[part])}"
                    yield f"{place}: {paid} and should cost {shown(due)}"
                at = it.types[part]
                tenants = enumerate(self.plan.tenants)
                left = [tenant.has[part][at] - self.own[part, at, u].at(slot) for u, tenant in tenants]
                rate = due / max(sum(left), 1)
                right = [income + rate * each for income, each in zip(right, left, strict=True)]
            if payment.incomes != right or sum(right) != sum(payment.paid):
                found, due_to_all = (brief(list(map(shown, each))) for each in (payment.incomes, right))
                yield f"{place}: incomes {found} and should be {due_to_all}"

    # -- what is said --------------------------------------------------------------------------------------
    def statement(self) -> str:
        """Return what has been checked, for a plan without violations."""
        plan = self.plan
        said = [f"{len(plan.schedules)} of {len(plan.jobs)} jobs of {plan.policy!r} run within (3a)-(3o)"]
        if not plan.offers:
            said.append("how this was decided is not told")
        elif not plan.bases:
            said.append(f"{len(plan.offers)} decisions, the prices and the order of which were not judged")
        else:
            near = f"{float(self.tolerance) or 0} of 1 or of the prices of a round"
            decisions = f"{len(plan.offers)} decisions at posted prices, up to {near}"
            said.append(f"{decisions}, in {len(plan.bases)} intervals")
            never = len(plan.jobs) - len({each.job for each in plan.offers})
            said.append(f"{never} jobs arrive after them and were never offered a place" if never else "")
            said.append("whether more intervals were due was not judged")
        paid = summed(part for each in plan.payments for part in each.paid)
        in_all = shown(paid) if paid.denominator == 1 else f"about {float(paid):.6g}"
        payments = f"{len(plan.payments)} payments, {in_all} in all, reach the owners exactly"
        said.append(payments if plan.payments else "no payments")
        sizes = f"{len(plan.jobs)} jobs, {len(plan.tenants)} tenants, {len(plan.servers)} servers"
        return f"{'; '.join(each for each in said if each)} [batch {plan.batch}: {sizes}]"


class OutOfOrder(Exception):
    """An offer is missing, or not the one that is due; the message says in which pass."""


class Prices:
    """The intervals, rounds and passes of Algorithms 1 and 2, followed offer by offer."""

    def __init__(self, judge: Judge) -> None:
        self.judge, self.plan = judge, judge.plan
        self.offers = iter(self.plan.offers)
        self.waiting: list[int] = []
        self.use: dict[tuple[int, int], Usage] = {}  # in the round, by part and type

    def violations(self) -> Iterator[str]:
        """Yield where an offer is not the one that is due, or not at the price that is due."""
        # in which interval each arrives
        arrivals = [max(job.arrival, 1).bit_length() for job in self.plan.jobs]
        for number, base in enumerate(self.plan.bases, start=1):
            if (base.interval, base.rounds, base.slots) != (number, self.plan.bases[0].rounds, 2**number):
                stated = f"{base.interval}, {base.rounds} rounds, {base.slots} slots"
                yield f"interval {number}: its bases are those of {stated}"
                return
            self.waiting += [job for job, interval in enumerate(arrivals) if interval == number]
            try:
                yield from self._interval(number, base)
            except OutOfOrder as place:
                yield f"{place}: not every job that waits is offered a place, once, in this pass"
                return  # which pass later offers belong to cannot be told
        if next(self.offers, None) is not None:
            yield "jobs are offered a place after the last interval"

    def _interval(self, number: int, base: Bases) -> Iterator[str]:
        turn = 0
        while self.waiting and turn < base.rounds:  # where nobody waits, nobody is offered anything
            turn, self.use = turn + 1, defaultdict(Usage)
            for own in (True, False):
                yield from self._pass(number, turn, own, base)

    def _pass(self, number: int, turn: int, own: bool, base: Bases) -> Iterator[str]:
        """Yield what is wrong where, once in a pass, every job that waits is offered a place."""
        place, left = f"interval {number}, round {turn}, {'own' if own else 'all'}", set(self.waiting)
        while left:
            offer = next(self.offers, None)
            due = offer and (offer.interval, offer.round, offer.own) == (number, turn, own)
            if offer is None or not due or offer.job not in left:
                raise OutOfOrder(place)
            left.remove(offer.job)
            name = self.plan.jobs[offer.job].name
            yield from (f"{place}: {name!r}{what}" for what in self._priced(offer, base))
            if offer.admitted:
                self.waiting.remove(offer.job)

    def _priced(self, offer: Offer, base: Bases) -> Iterator[str]:
        """Yield what is wrong with an offer's origin, slots, costs and answer, and use what it was given."""
        it, origin = offer.schedule, (base.rounds + offer.round - 1) * base.slots
        if offer.origin != origin:
            yield f": the round begins at {shown(origin)}, not {shown(offer.origin)}"
        if it is None:
            return
        if not origin < it.first <= it.last <= origin + base.slots:
            yield f": slots {it.first} to {it.last} leave the round"
            return
        for part, cost in enumerate(offer.costs):
            at, taken = it.types[part], it.devices(part)
            total = in_all(self.plan.servers, part, at)
            usage, theta = self.use[part, at], float(base.theta[part][at])
            right = taken * summed_prices(usage.stretches(it.first, it.last), theta, total)
            so_far = taken * summed_prices(usage.stretches(origin + 1, it.last), theta, total)
            if not self.judge.near(cost, right, so_far):
                yield f": {PARTS[part]} cost {float(cost)} and should cost {right}"
            if offer.admitted:
                usage.add(it.first, it.last, taken)
        gain = offer.utility - sum(offer.costs)
        if offer.admitted is not (gain > 0) and not self.judge.near(gain, 0.0, abs(offer.utility)):
            yield f": gains {float(gain)} and is {'admitted' if offer.admitted else 'refused'}"


def summed_prices(stretches: Iterator[tuple[int, int]], theta: float, total: int) -> float:
    """Return the sum of the prices of slots, Eq. (8): theta to the part that is in use, less 1."""
    prices = (slots * (theta ** (used / max(total, 1)) - 1) for slots, used in stretches)
    return float(Fraction(sum(prices)))  # infinity is no fraction, but an OverflowError


# -- files -------------------------------------------------------------------------------------------------
def recognises(first: Any) -> bool:
    """Return whether a JSON value is meant as a plan."""
    return type(first) is dict and "schedules" in first


def judged(data: Any, tolerance: Fraction | None = None) -> tuple[list[str], str]:
    """Return the violations in a plan; where there are none, the statement that has been checked."""
    judge = Judge(Plan(data), NEAR if tolerance is None else tolerance)
    try:
        found = list(judge.violations())
        return found, "" if found else judge.statement()
    except OverflowError as error:
        raise Unreadable("a price or a utility is too large for a float") from error


def decide(written: str, tolerance: Fraction | None = None) -> tuple[list[str], str]:
    """Return what `judged` does for a text in JSON."""
    return judged(parsed(written, "plan"), tolerance)
