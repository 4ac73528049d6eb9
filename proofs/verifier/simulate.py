"""What a run comes to: from who was put where, everything that follows, round by round, in fractions.

Between two changes a job's progress follows from how long it ran. So it is looked at only in the rounds in
which something may happen to it, however many lie between.

Time counts from the beginning of the round. Where numbers are floats, two moments closer than the tolerance
times the length of a round are one moment; which came first is then what the record says.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, floor, inf
from typing import Any

from .profile import made, takes
from .reading import MOST_DIGITS, ZERO, Number, shown, within
from .trace import Job, Outage, Setting, Spots


@dataclass
class JobState:
    """How a job stands at the beginning of round ``since``; from there on it goes on as it does."""

    job: Job
    row: int
    fits: bool
    remaining: Fraction
    since: int = 0
    attained: Fraction = ZERO
    setup: Fraction = ZERO
    course: list[tuple[Fraction, Fraction]] = field(default_factory=list)  # speeds by the work done
    last: Spots = ()
    running: bool = False
    lease: Number = ZERO
    said: int = -1  # the round in which the lease was said
    started: Number = inf
    token: int = 0  # of what is known of its completion

    def held(self) -> int:
        """Return the GPUs that it ran on last."""
        return sum(gpus for _, gpus in self.last)


@dataclass
class Chosen:
    """What a record says of a round that is not worked out, but chosen, or too close to call."""

    placed: dict[str, Spots] = field(default_factory=dict)
    stop: set[str] = field(default_factory=set)
    lease: dict[str, Number] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    whole: bool = False  # whether what every job did is asked for
    down: set[int] | None = None  # None: as before


@dataclass
class JobRun:
    """What a job did in a round, by the keys of a record; a number may be off a part of its scale."""

    until: Fraction
    completed: bool
    lost: bool
    words: dict[str, Any]
    numbers: dict[str, tuple[Fraction, Fraction]]


@dataclass
class Played:
    """What came of a round; ``wrong`` says what was not allowed."""

    index: int
    begin: Fraction
    wrong: list[str] = field(default_factory=list)
    arrived: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    unschedulable: list[str] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)
    placed: dict[str, tuple[str, Spots, Spots]] = field(default_factory=dict)  # change, where, where before
    ran: dict[str, JobRun] = field(default_factory=dict)

    @property
    def complete(self) -> dict[str, Fraction]:
        """The jobs that are completed, and when."""
        return {name: ran.until for name, ran in self.ran.items() if ran.completed}

    @property
    def lost(self) -> dict[str, Fraction]:
        """The jobs whose host failed, and when."""
        return {name: ran.until for name, ran in self.ran.items() if ran.lost}

    def happened(self) -> str:
        """Return what happened in a round in which nobody was placed, in words."""
        said = [words.format(name) for key, words in HAPPENED.items() for name in getattr(self, key)]
        return ", ".join([*self.wrong, *said][:3])


#: What may happen in a round without a decision.
HAPPENED = {
    "arrived": "job {!r} arrives",
    "failed": "host {!r} fails",
    "back": "host {!r} comes back",
    "complete": "job {!r} is completed",
    "lost": "job {!r} loses its host",
    "stop": "job {!r} stops",
}


class Simulation:
    """A run that is played again: `play` plays one round, `quiet` those that have no line."""

    def __init__(self, setting: Setting, tolerance: Fraction) -> None:
        self.setting, self.length = setting, setting.length
        self.slack = tolerance * self.length
        self.present: dict[str, JobState] = {}
        self.running: set[str] = set()
        self.index = self.able = self.arrived = self.completed = 0
        self.down: set[int] = set()
        self.used: Counter[int] = Counter()
        self.on: dict[int, set[str]] = {}  # by host, the jobs that run there
        self.held: set[tuple[int, str]] = set()  # (host, dataset)
        self.coming: list[Job] = []
        self._due: list[tuple[int, int, str]] = []  # (round, count, job): when it may be completed
        self._count = 0
        self._open: list[Outage] = []  # those that may be on in the round
        self._next = 0  # the first that may not
        moments = [each for outage in setting.outages for each in (outage.begin, outage.end) if each != inf]
        around = {at for moment in moments for at in self._around(Fraction(moment))}
        self._watch = sorted(around, reverse=True)

    # -- time ------------------------------------------------------------------------------------------------
    def _around(self, moment: Fraction) -> range:
        """Return the rounds in which an outage that begins or ends then may be seen."""
        first, last = (moment - self.slack) / self.length, (moment + self.slack) / self.length
        return range(floor(first), ceil(last) + 1)

    def at_most(self, one: Fraction, other: Fraction, if_close: bool) -> bool:
        """Return whether ``one`` <= ``other``; where they are too close to tell, what is ``told``."""
        return if_close if self.slack and abs(one - other) <= self.slack else one <= other

    @property
    def idle(self) -> bool:
        """Whether nobody is present who can run."""
        return not self.able

    def quiet(self, until: int) -> Iterator[str]:
        """Go on to round ``until``, and say where something happens before and there is no line."""
        while not self.idle and (at := self._next_event(until)) < until:
            if happened := self.play(at, Chosen()).happened():
                yield f"round {at} has no line, and {happened}"

    def _next_event(self, until: int) -> int:
        """Return the next round in which something may happen by itself, ``until`` for none before."""
        while self._watch and self._watch[-1] < self.index:
            self._watch.pop()
        while self._due and self._stale(*self._due[0]):
            heappop(self._due)
        due = max(self._due[0][0], self.index) if self._due else until
        return min(due, self._watch[-1] if self._watch else until)

    def _stale(self, _: int, count: int, name: str) -> bool:
        one = self.present.get(name)
        return one is None or not one.running or one.token != count

    # -- one round -------------------------------------------------------------------------------------------
    def play(self, index: int, chosen: Chosen) -> Played:
        """Play round ``index`` with what is told of it, and return what came of it."""
        played = Played(index, index * self.length)
        self._hosts(played, chosen)
        self._arrive(played)
        self._stop(played, chosen)
        for name, spots in chosen.placed.items():
            self._place(played, name, spots)
        if self.setting.local_data:  # what is fetched is there from the next round on
            for name, (_, spots, _) in played.placed.items():
                self.held |= {(host, self.present[name].job.dataset) for host, _ in spots}
        self._leases(played, chosen)
        self._booked(played)
        self._happens(played, chosen)
        self.index = index + 1
        return played

    def _hosts(self, played: Played, chosen: Chosen) -> None:
        now, outages = played.begin, self.setting.outages
        while self._next < len(outages) and outages[self._next].begin < now + self.length + self.slack:
            self._open.append(outages[self._next])
            self._next += 1
        self._open = [each for each in self._open if each.end > now - self.slack]
        possible = {each.host for each in self._open if each.begin <= now + self.slack}
        sure = [each for each in self._open if each.begin + self.slack <= now and now + self.slack < each.end]
        said = self.down if chosen.down is None else chosen.down
        down = {each.host for each in sure} | (said & possible)
        names = self.setting.hosts
        played.failed = [names[host].name for host in sorted(down - self.down)]
        played.back = [names[host].name for host in sorted(self.down - down)]
        self.down = down

    def _arrive(self, played: Played) -> None:
        for job in self.coming:
            if not self.at_most(job.arrival, played.begin, True):
                played.wrong.append(
                    f"job {job.name!r} arrives at {shown(job.arrival)}, after the round begins"
                )
            if played.index and self.at_most(job.arrival, played.begin - self.length, False):
                late = f"job {job.name!r} arrived at {shown(job.arrival)} and is not there before this round"
                played.wrong.append(late)
            fits = self.setting.fits(job)
            self.present[job.name] = JobState(
                job, self.arrived, fits, job.work, played.index, lease=played.begin
            )
            self.arrived += 1
            self.able += fits
            played.arrived.append(job.name)
            if not fits:
                played.unschedulable.append(job.name)
        self.coming = []

    def _stop(self, played: Played, chosen: Chosen) -> None:
        halted = {name for host in self.down for name in self.on.get(host, ())}
        for name in halted:  # a job on a host that is down neither goes on nor holds a lease
            self._leave(self.present[name], played.index)
        stopping = (chosen.stop & self.running) - chosen.placed.keys()
        for name in stopping:
            self._keeps_lease(played, self.present[name])
            self._leave(self.present[name], played.index)
        played.stop = sorted(
            (halted | stopping) - chosen.placed.keys(), key=lambda name: self.present[name].row
        )

    def _keeps_lease(self, played: Played, one: JobState) -> None:
        if one.running and one.lease > played.begin + self.slack:
            lease = f"has a lease until {shown(one.lease)}"
            played.wrong.append(f"job {one.job.name!r} {lease} and is not where it was")

    def _place(self, played: Played, name: str, spots: Spots) -> None:
        one = self.present.get(name)
        if one is None:
            played.wrong.append(f"job {name!r}: it ran and is not present: not arrived, or completed before")
            return
        hosts, given = [host for host, _ in spots], sum(gpus for _, gpus in spots)
        if given not in one.job.sizes or hosts != sorted(set(hosts)):
            needs = f"it needs {' or '.join(map(str, sorted(one.job.sizes)))} GPUs at once, hosts rising"
            played.wrong.append(f"job {name!r}: {needs}, and gets {given}")
        suits = [self.setting.suits(one.job, kind) for kind in self.setting.kinds(spots)]
        course = self.setting.course(one.job, spots) if spots else []
        if not spots or not one.fits or not all(suits) or not course[0][1]:
            played.wrong.append(f"job {name!r}: it cannot run there")
            return
        stays, before = one.running and one.last == spots, one.last
        if not stays:
            self._keeps_lease(played, one)
        setup = one.setup if stays else self._loading(one, spots, played.index)
        self._leave(one, played.index)
        paused = "resume" if set(hosts) <= {host for host, _ in before} else "migrate"
        played.placed[name] = "start" if not before else "stay" if stays else paused, spots, before
        one.setup, one.course, one.last, one.running = setup, course, spots, True
        one.lease, one.started = played.begin, min(one.started, played.begin)
        self.running.add(name)
        for host, gpus in spots:
            self.used[host] += gpus
            self.on.setdefault(host, set()).add(name)
        self._expect(one, played.index)

    def _loading(self, one: JobState, spots: Spots, index: int) -> Fraction:
        """Return the time that a job loads where it did not run in the round before."""
        setting, job, left = self.setting, one.job, self.at(one, index)[1]
        before, now = ({host for host, _ in where} for where in (one.last, spots))
        lacking = {host for host in now if (host, job.dataset) not in self.held}
        moved = setting.copying(job.state_size, before | now) if before and now - before else ZERO
        reads = setting.local_data and job.dataset and lacking
        read = setting.copying(job.dataset_size, lacking) if reads else ZERO
        begin = setting.begins(job, bool(before))
        return max(begin, left if now <= before else ZERO) + moved + read

    def _expect(self, one: JobState, least: int) -> None:
        """Note the first round in which a job may be completed."""
        self._count += 1
        one.token = self._count
        time = one.setup + takes(one.course, one.job.work - one.remaining, one.job.work)
        due = max(least, one.since + ceil((time - self.slack) / self.length) - 1)
        heappush(self._due, (due, one.token, one.job.name))

    def _leave(self, one: JobState, index: int) -> None:
        """Bring a job up to the beginning of a round, and take it from its GPUs."""
        one.remaining, one.setup, one.attained = self.at(one, index)
        bits = max(each.denominator.bit_length() for each in (one.remaining, one.setup, one.attained))
        within(bits, MOST_DIGITS, f"job {one.job.name!r}", "bits of what is left to do")
        one.since = index
        if one.running:
            one.running = False
            self.running.discard(one.job.name)
            for host, gpus in one.last:
                self.used[host] -= gpus
                self.on[host].discard(one.job.name)

    def at(self, one: JobState, index: int) -> tuple[Fraction, Fraction, Fraction]:
        """Return what is left of a job's work and of its loading, and its GPU-time, when a round begins."""
        if not one.running or index == one.since:
            return one.remaining, one.setup, one.attained
        loaded = min(one.setup, passed := (index - one.since) * self.length)
        progress = made(one.course, one.job.work - one.remaining, passed - loaded, self.slack > 0)
        return max(one.remaining - progress, ZERO), one.setup - loaded, one.attained + one.held() * passed

    def _leases(self, played: Played, chosen: Chosen) -> None:
        for name, until in chosen.lease.items():
            if name not in self.running:
                played.wrong.append(f"job {name!r} gets a lease and does not run")
                continue
            one = self.present[name]
            if one.lease > played.begin + self.slack:
                if until < one.lease - self.slack:
                    lease = shown(one.lease)
                    played.wrong.append(
                        f"job {name!r}: its lease until {lease} is cut short to {shown(until)}"
                    )
                until = max(until, one.lease)  # else it could be cut a little in every round
            one.lease, one.said = until, played.index

    def lease(self, one: JobState, index: int) -> Number:
        """Return the lease that a job has after a round: what was said, else the end of the round."""
        said = one.running and (one.said == index or one.lease > index * self.length + self.slack)
        return one.lease if said else (index + 1) * self.length

    def _booked(self, played: Played) -> None:
        for at in sorted({host for _, spots, _ in played.placed.values() for host, _ in spots}):
            host = self.setting.hosts[at]
            there = 0 if at in self.down else host.gpus
            if self.used[at] > there:
                said = f"gives out {self.used[at]} GPUs and has {there} that work"
                played.wrong.append(f"host {host.name!r} {said}")

    # -- what happens within a round -------------------------------------------------------------------------
    def _happens(self, played: Played, chosen: Chosen) -> None:
        failing = self._failing(played.begin)
        due = set[str]()
        while self._due and self._due[0][0] <= played.index:
            entry = heappop(self._due)
            if not self._stale(*entry):
                due.add(entry[2])
        concerned = due | {name for host in failing for name in self.on.get(host, ())}
        if chosen.whole:
            concerned |= self.running
        for name in sorted(concerned, key=lambda name: self.present[name].row):
            ran = self._ran(played, self.present[name], chosen, failing)
            played.ran[name] = ran
            if ran.completed or ran.lost:
                self._finish(played, self.present[name], ran)
            elif name in due:
                self._expect(self.present[name], played.index + 1)

    def _failing(self, now: Fraction) -> dict[int, Fraction]:
        """Return the hosts that fail within the round, and when: with its beginning, or else first."""
        coming = [each for each in self._open if each.begin > now - self.slack and each.host not in self.down]
        found = {each.host: each.begin for each in coming if each.begin <= now + self.slack}
        for each in coming:
            found.setdefault(each.host, each.begin)
        return found

    def _ran(self, played: Played, one: JobState, chosen: Chosen, failing: dict[int, Fraction]) -> JobRun:
        """Return what a job that runs does in a round."""
        name, now, end = one.job.name, played.begin, played.begin + self.length
        remaining, setup, _ = self.at(one, played.index)
        done = now + setup + takes(one.course, did := one.job.work - remaining, one.job.work)
        in_time = self.at_most(done, end, name in chosen.complete)
        until = done if in_time else end
        ends = [failing[host] for host, _ in one.last if host in failing]
        failed = min(
            (at for at in ends if not self.at_most(until, at, name not in chosen.lost)), default=None
        )
        until = until if failed is None else failed
        spent = min(setup, max(until - now, ZERO))
        progress = remaining if in_time else made(one.course, did, until - now - spent, self.slack > 0)
        speed = next(speed for mark, speed in reversed(one.course) if mark <= did)
        progress = ZERO if failed is not None else progress
        change, _, before = played.placed.get(name, ("stay", one.last, one.last))
        completed, lost = in_time and failed is None, failed is not None
        names = self.setting.names
        words = {"types": names(one.last), "before": names(before), "change": change}
        numbers = {
            "begin": (now, self.length),
            "end": (until, self.length),
            "setup": (spent, self.length),
            "speed": (speed, speed),
            "progress": (progress, speed * self.length),
            "remaining": (max(remaining - progress, ZERO), speed * self.length),
        }
        return JobRun(until, completed, lost, words | {"completed": completed, "lost": lost}, numbers)

    def _finish(self, played: Played, one: JobState, ran: JobRun) -> None:
        """Take a job that is completed, or whose host failed, from its GPUs."""
        self._leave(one, played.index)
        one.attained += one.held() * (ran.until - played.begin)
        if ran.completed:
            del self.present[one.job.name]
            self.completed += 1
            self.able -= 1
