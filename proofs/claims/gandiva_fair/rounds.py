"""Gandiva_fair in rounds: Table 2's rows and the workloads of Sec. 5.1 to 5.3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from random import Random
from statistics import fmean, stdev

from fairopt.models.gandiva_fair.gandiva_fair import GandivaFair
from fairopt.models.gandiva_fair.lottery import backfilled, gang_aware
from fairopt.models.gandiva_fair.split_stride import SplitStride
from fairopt.models.gandiva_fair.stride import GangAwareStride
from fairopt.models.gandiva_fair.tickets import entitled, in_units
from fairopt.policy import Policy
from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.problem.trace import Trace
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import listed, percent, prints_as
from fairopt.simulation import Change, Round, run

#: Table 2's mix: GPUs of the jobs of A, B and C, on 4 GPUs; and its rows, of which the second is over 100 quanta.
SIZES, GPUS = (1, 1, 2, 2, 4, 4), 4
PRINTED_STRIDE = "66.7 66.7 33.3 33.3 16.7 16.7"
PRINTED_BACKFILLING = "71.8 71.8 36.7 36.7 12.4 11.4"
PRINTED_LOTTERY = "66 66.5 46 24 20 12"
FAIR = tuple(Fraction(2, 3 * size) for size in SIZES)
ENDLESS = 10**6


# -- Table 2 -----------------------------------------------------------------------------------------------------------
def _mix(sizes: Sequence[int], owners: str) -> Trace:
    return Trace(Jobs.of(gpus=sizes, work=[ENDLESS] * len(sizes), types=["GPU"], tenant=list(owners)))


def _parts(policy: Policy, trace: Trace, rounds: int) -> list[Fraction]:
    """Return the part of ``rounds`` quanta that each job runs on one server of 4 GPUs."""
    ran: Counter[str] = Counter()
    for record in run(policy, trace, Cluster.uniform({"GPU": (1, GPUS)}), length=1, rounds=rounds):
        ran.update(one.job for one in record.ran)
    return [Fraction(ran[name], rounds) for name in trace.jobs.names]


def table_2_stride() -> Finding:
    """Algorithm 1 on Table 2's mix, and on the pair of jobs of Sec. 3.3."""
    trace = _mix(SIZES, "AABBCC")
    schedule = [
        "+".join(f"{one.gpus}" for one in record.ran)
        for record in run(GangAwareStride(), trace, Cluster.uniform({"GPU": (1, GPUS)}), length=1, rounds=6)
    ]
    parts, again = _parts(GangAwareStride(), trace, 6), _parts(GangAwareStride(), trace, 12)
    agree = all(prints_as(100 * part, text) for part, text in zip(parts, PRINTED_STRIDE.split(), strict=True))
    same = [_parts(policy, trace, 6) == parts for policy in (SplitStride(), GandivaFair())]
    others = {rounds: _parts(GangAwareStride(by_size=False), trace, rounds) for rounds in (6, 7)}
    pair = _mix([1, 4], "AB")
    idle = {
        "size over tickets": _parts(GangAwareStride(readjust=False), pair, 140),
        "size over effective tickets": _parts(GangAwareStride(), pair, 140),
        "one over tickets": _parts(GangAwareStride(by_size=False, readjust=False), pair, 140),
    }
    return Finding(
        Ruling.REPRODUCED if agree and again == parts and all(same) else Ruling.REFUTED,
        f"With strides of size over tickets, and ties in the order of arrival, the six quanta run jobs of "
        f"{', '.join(schedule)} GPUs: each job runs {listed(map(str, dict.fromkeys(parts)))} of them, exactly, and "
        "again in the next six; split stride and the whole scheduler do the same on one server. Strides of one over "
        f"tickets, which is what the text says, give the jobs {listed(map(str, dict.fromkeys(others[7])))} each over "
        "seven quanta, since by Eq. (3) all six have the same tickets. Sec. 3.3 says that a 1-GPU and a 4-GPU job with "
        "equal tickets alternate: "
        + "; ".join(f"by {name} they get {parts[0]} and {parts[1]}" for name, parts in idle.items())
        + ". The stride that makes Table 2 is not the one that makes this example.",
    )


# -- lotteries ---------------------------------------------------------------------------------------------------------
def backfilling_exactly(chances: Sequence[Fraction], sizes: Sequence[int], gpus: int) -> list[Fraction]:
    """Return the probability that each job runs in one quantum of the lottery with backfilling."""

    def go(left: int, chosen: frozenset[int], weight: Fraction) -> Iterable[tuple[frozenset[int], Fraction]]:
        able = [job for job, size in enumerate(sizes) if size <= left and job not in chosen]
        if not able:
            yield chosen, weight
        whole = sum((chances[job] for job in able), Fraction(0))
        for job in able:
            yield from go(left - sizes[job], chosen | {job}, weight * chances[job] / whole)

    outcomes = list(go(gpus, frozenset(), Fraction(1)))
    require(all(sum(sizes[job] for job in chosen) == gpus for chosen, _ in outcomes), "backfilling leaves no GPU idle")
    return [sum((weight for chosen, weight in outcomes if job in chosen), Fraction(0)) for job in range(len(sizes))]


def _sampled(seed: int, quanta: int, chances: Sequence[int], *, waits: bool) -> list[float]:
    """Return the part of ``quanta`` that each job ran under a lottery, gang-aware where winners wait."""
    dice, ran, waiting = Random(seed), [0] * len(SIZES), list[int]()
    for _ in range(quanta):
        if waits:
            chosen, waiting = gang_aware(dice, chances, SIZES, GPUS, waiting)
        else:
            chosen = backfilled(dice, chances, SIZES, GPUS)
        for job in chosen:
            ran[job] += 1
    return [count / quanta for count in ran]


def _interval(values: Sequence[float]) -> str:
    """Return the mean of a sample with its 95% confidence interval, in percent."""
    mean, half = fmean(values), 1.96 * stdev(values) / sqrt(len(values))
    return f"{100 * mean:.1f} ± {100 * half:.1f}"


def lotteries() -> Finding:
    """Table 2's two rows of lotteries: exactly where it can be, and by seeded samples."""
    by_size = [Fraction(1, size) for size in SIZES]
    readings = {"tickets over size": by_size, "tickets alone": [Fraction(1)] * len(SIZES)}
    exact = {name: backfilling_exactly(chances, SIZES, GPUS) for name, chances in readings.items()}
    printed = [Fraction(text) / 100 for text in PRINTED_BACKFILLING.split()]
    busy = sum((part * size for part, size in zip(printed, SIZES, strict=True)), Fraction(0)) / GPUS
    chances = [in_units(chance) for chance in by_size]
    sampled = [_sampled(seed, 1000, chances, waits=False) for seed in range(30)]
    spread = [_interval([sample[job] for sample in sampled]) for job in (0, 2, 4)]
    off = {}
    for quanta in (100, 300, 1000, 3000):
        samples = [_sampled(seed, quanta, chances, waits=True) for seed in range(30)]
        worst = [
            max(abs(got - fair) / fair for got, fair in zip(each, map(float, FAIR), strict=True)) for each in samples
        ]
        off[quanta] = _interval(worst), sum(value <= 0.1 for value in worst)
        if quanta == 100:
            low, high = (
                [min(each) for each in zip(*samples, strict=True)],
                [max(each) for each in zip(*samples, strict=True)],
            )
    lottery = [float(text) / 100 for text in PRINTED_LOTTERY.split()]
    within = sum(least <= value <= most for least, value, most in zip(low, lottery, high, strict=True))
    unfair = all(tuple(parts) != FAIR for parts in exact.values())
    digits = [
        name
        for name, parts in exact.items()
        if all(prints_as(100 * part, text) for part, text in zip(parts, PRINTED_BACKFILLING.split(), strict=True))
    ]
    settles = off[100][1] < off[1000][1] <= off[3000][1]
    shown = "; ".join(
        f"{name}: {listed(percent(part, 1) for part in (parts[0], parts[2], parts[4]))}"
        for name, parts in exact.items()
    )
    return Finding(
        Ruling.REFUTED if not (unfair and settles) else Ruling.REPRODUCED if digits else Ruling.QUALIFIED,
        f"Backfilling is unfair, but not by the printed numbers. A job of 1, 2 and 4 GPUs runs with exact probability, "
        f"by {shown} (30 seeds of 1000 quanta give {', '.join(spread)} for the first). The printed row lies between "
        f"the two and uses {percent(busy, 1)} of the GPUs, where backfilling always uses all four with these jobs. The "
        "gang-aware lottery, in which a winner that does not fit, or runs already, waits for each of its wins: the job "
        "that is farthest from its fair part is off by, in percent of it, "
        + "; ".join(f"{interval} over {quanta} quanta" for quanta, (interval, _) in off.items())
        + " (30 seeds, 95% confidence); within a tenth are "
        + listed(f"{count} of 30 runs of {quanta}" for quanta, (_, count) in off.items())
        + f". Of the six parts printed for 100 quanta {within} lie within the range of our 30 runs.",
    )


# -- the workloads of Sec. 5.1 to 5.3 ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class UserGroup:
    """``count`` users or jobs of one kind: jobs of ``gpus`` with ``minutes`` of work; one user each if ``apart``."""

    count: int
    gpus: int
    minutes: int
    apart: bool = False


def _workload(groups: Mapping[str, UserGroup], arrivals: Random | None = None) -> tuple[Trace, dict[str, str]]:
    """Return the trace of some groups, and each job's group; ``arrivals`` spreads them over the first hour."""
    group = [name for name, users in groups.items() for _ in range(users.count)]
    owner = [f"{name}-{n}" if groups[name].apart else name for n, name in enumerate(group)]
    jobs = Jobs.of(
        gpus=[groups[name].gpus for name in group],
        work=[groups[name].minutes for name in group],
        types=["GPU"],
        arrival=[arrivals.randint(0, 60) if arrivals else 0 for _ in group],
        tenant=owner,
        tenant_weight={
            one: groups[name].gpus if groups[name].apart else 100 for one, name in zip(owner, group, strict=True)
        },
        names=[f"{name}#{n}" for n, name in enumerate(group)],
    )
    return Trace(jobs), {name: name.partition("#")[0] for name in jobs.names}


@dataclass(frozen=True)
class Played:
    """A workload that was played: GPUs of each group in each minute, and when its first and last jobs were done."""

    users: tuple[str, ...]
    gpus: tuple[Mapping[str, int], ...]
    first: Mapping[str, int]
    done: Mapping[str, int]
    migrations: int

    def mean(self, begin: int, end: int) -> dict[str, Fraction]:
        """Return the mean GPUs of each group in the minutes from ``begin`` to ``end``."""
        total: Counter[str] = Counter()
        for minute in self.gpus[begin:end]:
            total.update(minute)
        return {group: Fraction(total[group], end - begin) for group in self.users}


def _play(groups: Mapping[str, UserGroup], servers: int, minutes: int, arrivals: Random | None = None) -> Played:
    trace, group = _workload(groups, arrivals)
    gpus: list[Mapping[str, int]] = []
    first: dict[str, int] = {}
    done: dict[str, int] = {}
    moves = 0
    records: Iterable[Round] = run(
        GandivaFair(), trace, Cluster.uniform({"GPU": (servers, 4)}), length=1, rounds=minutes
    )
    for record in records:
        minute: Counter[str] = Counter()
        for one in record.ran:
            minute[group[one.job]] += one.gpus
            moves += one.change is Change.MIGRATE
            if one.completed:
                first.setdefault(group[one.job], record.index)
                done[group[one.job]] = record.index + 1
        gpus.append(minute)
    return Played(tuple(groups), tuple(gpus), first, done, moves)


def workloads() -> Finding:
    """Sec. 5.1 to 5.3: who holds how many GPUs in the mean, in rounds of a minute."""
    three_users = {"User1": UserGroup(128, 1, 55), "User2": UserGroup(128, 4, 30), "User3": UserGroup(128, 2, 5)}
    seventy = {
        "1-GPU": UserGroup(62, 1, 400, apart=True),
        "2-GPU": UserGroup(3, 2, 400, apart=True),
        "4-GPU": UserGroup(3, 4, 400, apart=True),
        "8-GPU": UserGroup(2, 8, 60, apart=True),
    }
    one = _play({"User1": UserGroup(4, 1, 80), "User2": UserGroup(4, 2, 160), "User3": UserGroup(4, 4, 20)}, 1, 300)
    two = _play({"User1": UserGroup(1, 8, 30), "User2": UserGroup(2, 2, 200), "User3": UserGroup(4, 1, 200)}, 2, 120)
    many, three = _play(seventy, 12, 300, Random(0)), _play(three_users, 16, 250)
    begun, gone = one.first["User3"], max(one.done[user] for user in ("User1", "User3"))
    windows = [
        SteadyWindow(
            "5.1, three users", one, 0, begun, dict.fromkeys(("User1", "User2", "User3"), Fraction(4, 3)), "1.33"
        ),
        SteadyWindow("5.1, User2 alone", one, gone, 300, {"User2": Fraction(4)}, "4"),
        SteadyWindow("5.2, three users", two, 0, two.done["User1"], dict.fromkeys(two.users, Fraction(8, 3)), "2.66"),
        SteadyWindow(
            "5.2, without User1", two, two.done["User1"], 120, dict.fromkeys(("User2", "User3"), Fraction(4)), "4"
        ),
        SteadyWindow("5.3, 70 users", many, 60, many.first["8-GPU"], _classes(seventy, 48, tuple(seventy)), ""),
        SteadyWindow(
            "5.3, without large jobs", many, many.done["8-GPU"], 300, _classes(seventy, 48, tuple(seventy)[:3]), ""
        ),
        SteadyWindow(
            "5.3, three users", three, 0, three.first["User3"], dict.fromkeys(three.users, Fraction(64, 3)), "21.3"
        ),
        SteadyWindow(
            "5.3, without User3",
            three,
            three.done["User3"],
            three.first["User1"],
            dict.fromkeys(("User1", "User2"), Fraction(32)),
            "32",
        ),
    ]
    farthest = max(windows, key=lambda window: window.off)
    worst = farthest.off
    least = min(window.busy for window in windows)
    misprinted = [window for window in windows if window.printed and not window.prints]
    near = worst <= Fraction(1, 5) and least >= Fraction(95, 100)
    return Finding(
        Ruling.REPRODUCED if near else Ruling.REFUTED,
        "GandivaFair in rounds of a minute; the paper gives no durations, so ours are chosen to let users leave when "
        "its do. Mean GPUs, ideal (tickets, and demands) in brackets: "
        + "; ".join(window.text for window in windows)
        + f". No mean is farther than {percent(worst, 1)} from its ideal ({farthest.name}), and together they are "
        f"never below {percent(least, 1)} of the ideal's total; {many.migrations} and {three.migrations} migrations in "
        "the two workloads of Sec. 5.3. "
        + " ".join(f"The {window.printed} of the text is {next(iter(window.ideal.values()))}." for window in misprinted)
        + " In the last one the text gives the cluster to User3 in the end, which has left by then; it must be User2.",
    )


def _classes(groups: Mapping[str, UserGroup], gpus: int, present: Sequence[str]) -> dict[str, Fraction]:
    """Return what each class of users is entitled to where every user has one job and tickets equal to its size."""
    demand = {name: groups[name].count * groups[name].gpus for name in present}
    return {
        name: Fraction(share)
        for name, share in entitled({n: Fraction(d) for n, d in demand.items()}, demand, gpus).items()
    }


@dataclass(frozen=True)
class SteadyWindow:
    """Some minutes of a workload in which nobody comes or goes, and what its users are entitled to."""

    name: str
    played: Played
    begin: int
    end: int
    ideal: Mapping[str, Fraction]
    printed: str

    @property
    def got(self) -> dict[str, Fraction]:
        """Mean GPUs of those who are entitled to some."""
        mean = self.played.mean(self.begin, self.end)
        return {name: mean[name] for name in self.ideal}

    @property
    def off(self) -> Fraction:
        """By what part the farthest mean is off its ideal."""
        return max(abs(self.got[name] - ideal) / ideal for name, ideal in self.ideal.items())

    @property
    def busy(self) -> Fraction:
        """Mean GPUs in use over the ideal's total."""
        return Fraction(sum(self.played.mean(self.begin, self.end).values()) / sum(self.ideal.values()))

    @property
    def prints(self) -> bool:
        """Whether the ideal rounds to the printed number."""
        return all(prints_as(value, self.printed) for value in self.ideal.values())

    @property
    def text(self) -> str:
        """The window in words."""
        means = ", ".join(f"{float(self.got[name]):.2f} ({float(ideal):.2f})" for name, ideal in self.ideal.items())
        return f"{self.name}, minutes {self.begin} to {self.end}: {means}"
