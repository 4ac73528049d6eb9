"""What a plan is worth to its tenants: budget balance, rationality, gain as you contribute, batch sharing incentive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from fairopt.errors import NotCapable
from fairopt.numbers import counted
from fairopt.policy import Admission, Plan, Policy, decide
from fairopt.program import Number
from fairopt.properties.property import SlackCase
from fairopt.properties.schedules.plan_property import SOURCE, PlanProperty


@dataclass(frozen=True)
class BudgetBalance(PlanProperty):
    """What owners get is what jobs pay, in every slot of every job, to the last fraction.

    Source: Astraea (posted prices) Eq. (2), Sec. 3.2: one tenant's cost is the others' income.
    """

    name = "budget_balance"
    head = "payments add up"
    broken = "payments do not add up"
    source = f"{SOURCE} Eq. (2)"
    definition = "sum_u rho_j^u(t) = c_jw(t) + c_jp(t) for each job and slot"

    def cases(self, plan: Plan) -> Iterable[SlackCase]:
        """Yield each payment."""
        for each in plan.payments:
            paid, got = each.workers + each.ps, sum(each.incomes, start=Fraction(0))
            yield self.compared(plan.batch.jobs.names[each.job], got, paid, each.slot, equal=True)


@dataclass(frozen=True)
class IndividualRationality(PlanProperty):
    """No job pays more than it is worth: utility at least cost.

    ``from_arrival``: utilities as problem (3) counts them, from the arrival (default); False: as the admission does,
    from the beginning of the round, which is later and so more.

    Source: Astraea (posted prices) Eq. (7), Sec. 5.2 "Admission Control".
    """

    name = "individual_rationality"
    head = "no job costs more than its worth"
    broken = "{who} costs more than it is worth"
    source = f"{SOURCE} Eq. (7), Fig. 12"
    definition = "f_j(t+ - r_j) >= c_jw + c_jp for each job that runs"
    from_arrival: bool = True

    def cases(self, plan: Plan) -> Iterable[SlackCase]:
        """Yield each job that runs."""
        paid: dict[int, Number] = {each.job: Fraction(0) for each in plan.schedules}
        for each in plan.payments:
            paid[each.job] += each.workers + each.ps
        worth = plan.utilities if self.from_arrival else {each.job: each.utility for each in _admitted(plan)}
        for job, cost in paid.items():
            yield self.compared(plan.batch.jobs.names[job], worth[job], cost)


@dataclass(frozen=True)
class GainAsYouContribute(PlanProperty):
    """What a job pays for a slot is divided in proportion to what each tenant leaves unused, workers and PS apart.

    Unused is a tenant's quota less what its jobs use that were admitted within its own share.

    Source: Astraea (posted prices) Eq. (2), several types Eq. (11).
    """

    name = "gain_as_you_contribute"
    head = "paid by contribution"
    broken = "{who} is not paid by what it contributes"
    source = f"{SOURCE} Eq. (2), (11)"
    definition = "rho_j^u(t) = unused_w^u / a_w(t) c_jw(t) + unused_p^u / a_p(t) c_jp(t)"

    def cases(self, plan: Plan) -> Iterable[SlackCase]:
        """Yield each tenant's part of each payment."""
        batch, types = plan.batch, {each.job: each for each in plan.schedules}
        _admitted(plan)
        for each in plan.payments:
            one = types[each.job]
            workers, ps = self._unused(plan, each.slot, one.worker_type, one.ps_type)
            for name, got, free_w, free_p in zip(batch.tenants, each.incomes, workers, ps, strict=True):
                right = each.workers * free_w / max(sum(workers), 1) + each.ps * free_p / max(sum(ps), 1)
                yield self.compared(name, got, right, each.slot, equal=True)

    def _unused(self, plan: Plan, slot: int, worker_type: int, ps_type: int) -> tuple[list[int], list[int]]:
        """Return the workers and the PS of a type that each tenant leaves unused in a slot."""
        batch = plan.batch
        workers, ps = batch.worker_quota[:, worker_type].tolist(), batch.ps_quota[:, ps_type].tolist()
        for each in _admitted(plan):
            one, tenant = each.schedule, batch.jobs.tenant[each.job]
            if one is not None and each.own and one.first <= slot <= one.last:
                workers[tenant] -= one.count()[0] * (one.worker_type == worker_type)
                ps[tenant] -= one.count()[1] * (one.ps_type == ps_type)
        return workers, ps


@dataclass(frozen=True)
class RevenueFairness(PlanProperty):
    """Every tenant's part of the revenue is at least its part of the resources: alpha_u >= 1.

    Source: Astraea (posted prices) Sec. 5.1, "Revenue Fairness".
    """

    name = "revenue_fairness"
    head = "revenue by contribution"
    broken = "{who} earns less than its part"
    source = f"{SOURCE} Sec. 5.1"
    definition = "alpha_u = (g_u / sum f) / ((q_w^u / sum q_w + q_p^u / sum q_p) / 2) >= 1 for each tenant"
    unit = "ratio"

    def cases(self, plan: Plan) -> Iterable[SlackCase]:
        """Yield each tenant with a share."""
        for name, ratio in zip(plan.batch.tenants, fairness_ratios(plan), strict=True):
            if ratio is not None:
                yield self.compared(name, ratio, 1)


def fairness_ratios(plan: Plan) -> tuple[Number | None, ...]:
    """Return alpha_u for each tenant; None without a share, or where nothing was earned.

    With several types, a tenant's part is the mean of its parts of all types.

    Source: Astraea (posted prices) Sec. 5.1.
    """
    total = plan.revenue
    parts = [Fraction(0)] * len(plan.batch.tenants)
    for quota in (plan.batch.worker_quota, plan.batch.ps_quota):
        there = [column for column in quota.T.tolist() if sum(column)]
        for column in there:
            for tenant, own in enumerate(column):
                parts[tenant] += Fraction(own, 2 * sum(column) * len(there))
    return tuple(gain / total / part if total and part else None for gain, part in zip(plan.gains, parts, strict=True))


@dataclass(frozen=True)
class BatchSharingIncentive(PlanProperty):
    """Every tenant earns at least what it earns alone, on its own part of the servers, under the same algorithm.

    ``alone``: the policy that gives each tenant its part. The paper says it of the jobs of one batch; over several
    batches it is decided for all together.

    Source: Astraea (posted prices) Sec. 4.1.
    """

    name = "batch_sharing_incentive"
    head = "at least what it earns alone"
    broken = "{who} would earn more alone"
    source = f"{SOURCE} Sec. 4.1"
    definition = "g_u >= g_u(alone) for each tenant"
    alone: Policy

    def cases(self, plan: Plan) -> Iterable[SlackCase]:
        """Yield each tenant."""
        alone = decide(self.alone, plan.batch)
        for name, has, needs in zip(plan.batch.tenants, plan.gains, alone.gains, strict=True):
            yield self.compared(name, has, needs)


def _admitted(plan: Plan) -> list[Admission]:
    found = [each for each in plan.admissions if each.admitted]
    if {each.job for each in found} != {each.job for each in plan.schedules}:
        counts = f"{counted(len(plan.schedules), 'job')} run and {len(found)} were admitted"
        raise NotCapable(f"{counts}; give a plan of a policy that admits jobs one by one")
    return found
