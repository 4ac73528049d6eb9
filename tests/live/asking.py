"""One tree: made in a live Slurm, exported by the documented commands, computed again, and set going."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cluster import Cluster, Settings
from trees import QOS, Case, Job

from fairopt import audit
from fairopt.importing.imported import Unplaced
from fairopt.importing.live import SLURM
from fairopt.models import SlurmFairTree, SlurmMultifactor
from fairopt.models.slurm.slurm import SlurmQueue, start
from fairopt.models.slurm.tree import AssociationTree
from fairopt.problem import Market

#: With these SchedulerParameters nothing is started.
STILL, GOING = "sched_interval=-1,bf_interval=-1", "sched_interval=1,bf_interval=1"
#: sshare prints six decimals, of numbers that have more bits than ours need.
CLOSE = 2e-6


@dataclass
class Outcome:
    """What came out: how much was compared, what is ``wrong``, and what is not modelled and said so."""

    case: Case
    values: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)  # what is not modelled, by which other jobs started
    started: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    ties: int = 0

    def line(self) -> str:
        """Return it as a line of the table."""
        settings, parts = self.case.settings, self.values
        kind = ("Fair Tree" if settings.fair_tree else "classic") + (", backfill" if settings.backfill else "")
        told = ", ".join(f"{count} {name}" for name, count in parts.items())
        verdict = "DIFFERS" if self.wrong else "agrees"
        return f"tree {self.case.seed:3d}  {kind:20s}  {told}  {self.ties} ties  {len(self.started)} started: {verdict}"


def ask(slurm: Cluster, case: Case, folder: Path) -> None:
    """Make the tree and export; then let jobs start, and export again. What was asked is in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    going = replace(case.settings, further=(f"SchedulerParameters={GOING}",))
    still = replace(case.settings, further=(f"SchedulerParameters={STILL}",))
    _qos(slurm, case)
    slurm.begin(going, case.accounts, case.usage)
    if case.later:
        slurm.tell(case.later)
        time.sleep(65)  # fair-share of new associations is computed with the next PriorityCalcPeriod, a minute at least
    for job in case.running:
        _submit(slurm, job, 60)
    time.sleep(2.5 if case.running else 0)
    slurm.configure(still)
    for job in case.pending:
        _submit(slurm, job, job.minutes)
    time.sleep(0.5)
    export(slurm, folder)
    (folder / "sprio").write_text(slurm.run("sprio", "-h", "-o", "%i|%Y|%f"), encoding="utf-8")
    before = len(_allocated(slurm))
    slurm.configure(going)
    longest = 36 if case.settings.backfill else 5  # backfill looks after 30 s whether it is switched on
    seen, since = before, time.monotonic()
    while time.monotonic() < since + longest:
        time.sleep(0.5)
        if (now := len(_allocated(slurm))) != seen:
            seen, since, longest = now, time.monotonic(), longest if seen == before else 5
    (folder / "started").write_text("\n".join(_allocated(slurm)[before:]), encoding="utf-8")
    export(slurm, folder / "after")


def compare(case: Case, folder: Path) -> Outcome:
    """Compare what Slurm stated and did, in ``folder``, with what is computed from its exports."""
    outcome = Outcome(case)
    policy = policy_of(case.settings)
    found = audit([folder / name for name in SLURM], importer="slurm", policies=[policy], properties=[])
    _values(outcome, found)
    _priorities(outcome, policy, found.market, (folder / "sprio").read_text(encoding="utf-8"))
    _start(outcome, policy, found.market, (folder / "started").read_text(encoding="utf-8").split(), found.unplaced)
    _reasons(outcome, folder / "after")
    return outcome


def export(slurm: Cluster, folder: Path) -> list[Path]:
    """Write the files of the documented commands."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in SLURM.items():
        (folder / name).write_text(slurm.run(*words), encoding="utf-8")
    return [folder / name for name in SLURM]


def policy_of(settings: Settings) -> SlurmQueue:
    """Return the rule with the weights of slurm.conf."""
    weights = {f"weight_{name.lower()}": weight for name, weight in settings.weights.items()}
    kind: Any = SlurmFairTree if settings.fair_tree else SlurmMultifactor
    made: SlurmQueue = kind(backfill=settings.backfill, one_partition=True, **weights)
    return made


def _qos(slurm: Cluster, case: Case) -> None:
    known = slurm.run("sacctmgr", "-nP", "show", "qos", "format=name").split()
    for name, priority in QOS.items():
        words = (
            f"{'modify' if name in known else 'add'} qos {name}{' set' if name in known else ''} priority={priority}"
        )
        slurm.tell([words])
    slurm.tell([f"modify qos high set preempt={'low' if case.settings.preempt else ''}"])


def _submit(slurm: Cluster, job: Job, minutes: int) -> None:
    words = ["sbatch", f"--uid={job.user}", f"--gid={job.user}", "-A", job.account, "-p", job.partition, "-q", job.qos]
    words += [f"--gres=gpu:{job.kind}:{job.gpus}", "-n1", "-t", str(minutes), "-o", "/dev/null", "-D", "/tmp"]
    slurm.run(*words, "--wrap", "sleep 600")


def _values(outcome: Outcome, found: Any) -> None:
    """Compare every number of `sshare -l` but raw shares and usage, which are what is given."""
    known = 0
    for each in found.declared:
        if each.what == "RawShares" or each.name == "root" or each.name == "root/root":
            continue
        if each.computed is None:
            outcome.wrong.append(f"{each.name}, {each.what}: {each.stated_text} is not computed")
            continue
        known += 1
        stated, computed = float(each.stated), float(each.computed)
        if each.differs or (stated != computed and not abs(stated - computed) <= CLOSE * max(1.0, abs(stated))):
            outcome.wrong.append(str(each))
    outcome.values["sshare"] = known
    outcome.ties = sum("level fair-shares tie" in each.why for each in found.unplaced)


def _priorities(outcome: Outcome, policy: SlurmQueue, market: Market, text: str) -> None:
    """Compare sprio's whole priority, and its normalised factor of fair-share, for each pending job."""
    owed = market.entitlements
    assert owed is not None
    tree, _ = AssociationTree.from_entitlements(owed)
    factor = policy.find(tree)[0]
    computed = policy.priorities(owed.gangs, factor)
    of = dict(zip(owed.gangs.names, range(len(owed.gangs.names)), strict=True))
    known = 0
    for line in text.splitlines():
        name, whole, fair = (part.strip() for part in line.split("|"))
        if name not in of:
            outcome.aside.append(f"job {name} of sprio is left aside")
            continue
        known += 2
        gang = of[name]
        mine = float(factor[int(owed.gangs.user[gang])])
        if abs(float(fair) - mine) > 1e-6:
            outcome.wrong.append(f"job {name}: sprio states fair-share {fair}, computed {mine:.7f}")
        if abs(int(whole) - computed[gang]) > 0:
            outcome.wrong.append(f"job {name}: sprio states priority {whole}, computed {computed[gang]}")
    outcome.values["sprio"] = known


def _start(
    outcome: Outcome, policy: SlurmQueue, market: Market, started: list[str], unplaced: Iterable[Unplaced]
) -> None:
    """Compare which jobs started, and in which order; other jobs are right only by what is said not to be modelled.

    Backfill passes over a long job where it would delay one before it, by their time limits, which no rule here has.
    """
    owed = market.entitlements
    assert owed is not None
    tree, _ = AssociationTree.from_entitlements(owed)
    order = policy.order(owed.gangs, policy.find(tree)[0])
    room = start(market, order, backfill=policy.backfill, one_partition=policy.one_partition)
    outcome.started, outcome.computed = started, room.started
    if outcome.started == outcome.computed:
        return
    said = f"started {' '.join(outcome.started) or 'none'}; computed {' '.join(outcome.computed) or 'none'}"
    settings, told = outcome.case.settings, " ".join(each.why for each in unplaced)
    preempts, limits = "those that they may stop" in told, "numbers of jobs" in told or "a limit on each job" in told
    case, passed = outcome.case, set(room.started) - set(started)
    long = {str(number) for number, job in enumerate(case.pending, 1 + len(case.running)) if job.minutes > 1}
    why = [
        *(["preemption"] if settings.preempt and preempts else []),
        *(["partitions"] if len(settings.partitions) > 1 and "a higher tier go first" in told else []),
        *(["limits on jobs"] if limits else []),
        *(["time limits"] if settings.backfill and passed and passed <= long else []),
    ]
    outcome.other = why
    (outcome.aside if why else outcome.wrong).append(f"{', '.join(why)}{': ' if why else ''}{said}")


def _allocated(slurm: Cluster) -> list[str]:
    """Return the jobs in the order in which slurmctld started them, by its log."""
    log = (slurm.folder / slurm.cluster / "slurmctld.log").read_text(encoding="utf-8", errors="replace")
    return re.findall(r"(?:sched: Allocate|_start_job: Started) JobId=(\d+)", log)


def _reasons(outcome: Outcome, folder: Path) -> None:
    """What waits states a reason, none of which may be unknown."""
    files = [folder / name for name in SLURM]
    outcome.reasons = list(_stated(files[-1].read_text(encoding="utf-8")))
    found = audit(files, importer="slurm", policies=[], properties=[])
    outcome.wrong += [f"reason {each.value}: {each.why}" for each in found.unplaced if "not known" in each.why]
    outcome.values["reasons"] = len(outcome.reasons)
    for user, reason in found.reasons.items():
        if "nothing in the file stops it" in str(reason):
            outcome.aside.append(f"{user}: {reason}")


def _stated(text: str) -> Iterator[str]:
    head, *lines = text.splitlines()
    at = head.split("|").index("NODELIST(REASON)")
    for line in lines:
        cell = line.split("|")[at]
        if cell.startswith("("):
            yield cell.strip("()")
