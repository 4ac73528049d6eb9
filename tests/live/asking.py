"""One tree: made in a live Slurm, exported by the documented commands, computed again, and set going."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cluster import Cluster, Settings
from trees import LIMITS_OF_QOS, QOS, Case, Job

from fairopt import audit
from fairopt.importing.live import SLURM
from fairopt.models import SlurmFairTree, SlurmMultifactor
from fairopt.models.slurm.scheduling import scheduled
from fairopt.models.slurm.slurm import SlurmQueue
from fairopt.models.slurm.tree import AssociationTree
from fairopt.problem import Market

#: With these SchedulerParameters nothing is started: the agent of backfill looks once a second whether its interval is
#: over or another (with bf_interval=-1 it sleeps for 30 s before). Source: Slurm 22.05.8, src/plugins/sched/backfill/
#: backfill.c, backfill_agent.
STILL, GOING = "sched_interval=-1,bf_interval=10000", "sched_interval=1,bf_interval=1"
#: With these the main scheduler goes before backfill.
FIRST = "sched_interval=1,bf_interval=10000"
#: Seconds without a start after which both schedulers have played a round, if they play one.
ROUNDS = 12
#: What Slurm states, by what the rule says; backfill looks again, so that with it the order's own are not told apart.
REASONS = {
    "is kept for": {"Priority"},
    "it needs": {"Resources", "ReqNodeNotAvail", "Nodes required for job are DOWN"},
    "the limit of|MaxWall": {"Assoc", "QOS", "Max"},
    "partition": {"Partition", "Job's"},
}
OF_ORDER = REASONS["is kept for"] | REASONS["it needs"]
#: sshare prints six decimals, of numbers that have more bits than ours need.
CLOSE = 2e-6


@dataclass
class Outcome:
    """What came out: how much was compared, what is ``wrong``, and what was left ``aside``."""

    case: Case
    values: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
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
    going, first, still = (
        replace(case.settings, further=(*case.settings.further, f"SchedulerParameters={each}{case.parameters}"))
        for each in (GOING, FIRST, STILL)
    )
    _qos(slurm, case)
    slurm.begin(going, case.accounts, case.usage)
    _limit_qos(slurm, case)
    if case.later:
        slurm.tell(case.later)
        end = (
            time.monotonic() + 70
        )  # fair-share of new associations is computed with the next PriorityCalcPeriod, a minute
        while not _computed(slurm) and time.monotonic() < end:
            time.sleep(1)
    for job in case.running:
        _submit(slurm, job)
    time.sleep(2.5 if case.running else 0)
    slurm.configure(still)
    for job in case.pending:
        _submit(slurm, job)
    time.sleep(0.5)
    export(slurm, folder)
    (folder / "sprio").write_text(slurm.run("sprio", "-h", "-o", "%i|%Y|%f"), encoding="utf-8")
    before = len(_happened(slurm))
    # backfill stops jobs for another seconds after those that the main scheduler stopped are gone, and a job stops
    # others again KillWait and MessageTimeout, 11 s, after it stopped some
    _go(slurm, first, going, (18 if case.settings.backfill else 14) if case.preempts else 3)
    happened = _happened(slurm)[before:]
    (folder / "started").write_text("\n".join(job for job, what in happened if what == "started"), encoding="utf-8")
    (folder / "stopped").write_text("\n".join(job for job, what in happened if what == "stopped"), encoding="utf-8")
    export(slurm, folder / "after")


def ended(folder: Path) -> set[str]:
    """Return the jobs that started and reached their time limit, a minute, before the schedulers came to rest."""
    squeue = (folder / "after" / "squeue.txt").read_text(encoding="utf-8").splitlines()
    return {*_lines(folder / "started")} - {*_lines(folder / "stopped")} - {line.partition("|")[0] for line in squeue}


def _go(slurm: Cluster, first: Settings, going: Settings, quiet: float) -> None:
    """Let jobs start, until for ``quiet`` seconds and as many rounds of the main scheduler nothing did.

    Of the two schedulers the main one has the first rounds, since which of them is the sooner is chance.
    Backfill, where it is on, has had a round by then; where nothing waits none is counted, so that neither is waited
    for longer than `ROUNDS` seconds.
    """
    at_first = _rounds(slurm)
    if going.backfill:
        slurm.configure(first)
        end = time.monotonic() + ROUNDS
        while _rounds(slurm)[0] < at_first[0] + 2 and time.monotonic() < end:
            time.sleep(0.3)
    slurm.configure(going)
    begun = since = time.monotonic()
    seen, own = len(_happened(slurm)), at_first[0]
    while time.monotonic() < begun + 150:
        time.sleep(0.5)
        (now, filled), happened = _rounds(slurm), len(_happened(slurm))
        if happened != seen:
            seen, since, own = happened, time.monotonic(), now
        waited = now >= own + quiet and (filled > at_first[1] or not going.backfill)
        if time.monotonic() >= since + (quiet if waited else max(quiet, ROUNDS)):
            return
    raise RuntimeError("the schedulers of this tree did not come to rest")


def _rounds(slurm: Cluster) -> list[int]:
    """Return how many rounds the main scheduler has played, and how many backfill has."""
    return [int(each) for each in re.findall(r"Total cycles:\s*(\d+)", slurm.run("sdiag"))]


def _computed(slurm: Cluster) -> bool:
    """Say whether slurmctld has computed what every user used, of all: it does so in one go."""
    rows = (line.split("|") for line in slurm.run("sshare", "-anP", "-o", "User,NormUsage").splitlines())
    return all(used for user, used, *_ in rows if user)


def compare(case: Case, folder: Path) -> Outcome:
    """Compare what Slurm stated and did, in ``folder``, with what is computed from its exports."""
    outcome = Outcome(case)
    files = [folder / name for name in SLURM if (folder / name).exists()]
    policy = policy_of(case.settings, known=(folder / "config.txt").exists())
    found = audit(files, importer="slurm", policies=[policy], properties=[])
    _values(outcome, found)
    _priorities(outcome, policy, found.market, (folder / "sprio").read_text(encoding="utf-8"))
    _start(outcome, policy, found.market, folder)
    _reasons(outcome, policy, folder / "after")
    return outcome


def export(slurm: Cluster, folder: Path) -> list[Path]:
    """Write the files of the documented commands."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in SLURM.items():
        (folder / name).write_text(slurm.run(*words), encoding="utf-8")
    return [folder / name for name in SLURM]


def policy_of(settings: Settings, *, known: bool) -> SlurmQueue:
    """Return the rule; with the weights of slurm.conf, where what was exported does not hold them (``known``)."""
    kind: Any = SlurmFairTree if settings.fair_tree else SlurmMultifactor
    weights = {f"weight_{name.lower()}": weight for name, weight in settings.weights.items()}
    made: SlurmQueue = kind() if known else kind(backfill=settings.backfill, one_partition=True, **weights)
    return made


def _qos(slurm: Cluster, case: Case) -> None:
    known = slurm.run("sacctmgr", "-nP", "show", "qos", "format=name").split()
    for name, priority in QOS.items():
        words = (
            f"{'modify' if name in known else 'add'} qos {name}{' set' if name in known else ''} priority={priority}"
        )
        slurm.tell([words])
    slurm.tell([f"modify qos high set preempt={'low' if case.preempts == 'qos' else ''}"])


def _limit_qos(slurm: Cluster, case: Case) -> None:
    """Take away the limits of the last tree, and set those of this one; slurmdbd knows of GPUs now."""
    none = " ".join(f"{limit}=-1" for limit in LIMITS_OF_QOS)
    slurm.tell([f"modify qos {','.join(QOS)} set {none}", *case.of_qos])


def _submit(slurm: Cluster, job: Job) -> None:
    words = ["sbatch", f"--uid={job.user}", f"--gid={job.user}", "-A", job.account, "-p", job.partition, "-q", job.qos]
    words += [f"--gres=gpu:{job.kind}:{job.gpus}", f"-n{job.cpus}", f"-N{job.nodes}", f"--nice={job.nice}"]
    words += ["-t", str(job.minutes)] if job.minutes else []
    try:
        slurm.run(*words, "-o", "/dev/null", "-D", "/tmp", "--wrap", "sleep 600")
    except subprocess.CalledProcessError as error:
        if "Batch job submission failed" not in str(error.stderr):  # a partition that does not take the job says so
            raise


def _values(outcome: Outcome, found: Any) -> None:
    """Compare every number of `sshare -l` but raw shares and usage, which are what is given."""
    known = 0
    for each in found.declared:
        if each.what == "RawShares" or each.name == "root" or each.name == "root/root":
            continue
        if each.computed is None:
            outcome.wrong.append(f"{each.name}, {each.what}: {each.stated} is not computed")
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
    factor = policy.as_set(owed).find(tree)[0]
    computed = policy.priorities(market, factor)
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
        if int(whole) not in computed[gang].values():  # of several partitions sprio states one
            outcome.wrong.append(f"job {name}: sprio states priority {whole}, computed {computed[gang]}")
    outcome.values["sprio"] = known


def _start(outcome: Outcome, policy: SlurmQueue, market: Market, folder: Path) -> None:
    """Compare which jobs started, in which order, which were stopped for them, and why the others wait.

    Where some were stopped the order is left out: it goes by how long these take to end.
    """
    owed = market.entitlements
    assert owed is not None
    rule = policy.as_set(owed)
    starter = rule.starter(market, rule.find(AssociationTree.from_entitlements(owed)[0])[0])
    room = scheduled(starter, backfill=bool(rule.backfill))
    started, stopped = (_lines(folder / name) for name in ("started", "stopped"))
    outcome.started = [job for job in started if job not in stopped]
    outcome.computed, outcome.stopped = [job for job in room.started if job not in room.stopped], stopped
    for what, stated, computed in (
        ("started", outcome.started, outcome.computed),
        ("stopped", stopped, list(room.stopped)),
    ):
        if (sorted(stated) != sorted(computed)) if stopped else (stated != computed):
            told = f"{what} {' '.join(stated) or 'none'}; computed {' '.join(computed) or 'none'}"
            outcome.wrong.append(told)
    stated = _stated((folder / "after" / "squeue.txt").read_text(encoding="utf-8"))
    outcome.values["reasons"] = 0
    # the scheduler's plugin lists jobs between rounds, too: then what is stated is which partition refuses one, or None
    # where one after it does not, until the next round
    refused = {each.gang.name for each in starter.site.jobs.values() if any(p.refuses(each) for p in each.partitions)}
    # and Resources is stated of a partition that could never have a job, where ours is why another does not
    never = {
        each.gang.name
        for each in starter.site.jobs.values()
        if not all(starter.fits_at_all(each, part.nodes) for part in each.partitions)
    }
    for job, reason in stated.items():
        why = room.waits.get(job)
        if why is None or job in room.stopped:
            continue
        outcome.values["reasons"] += 1
        kept, before, _ = why.partition(", as Slurm stated before")
        own = {kept} if before else next(names for words, names in REASONS.items() if re.search(words, why))
        also = OF_ORDER if rule.backfill and own <= OF_ORDER else own
        also = also | REASONS["partition"] | {"None"} if job in refused else also
        also = also | {"Resources"} if job in never else also
        if not any(reason.startswith(name) for name in also):
            outcome.wrong.append(f"job {job}: Slurm states {reason}; computed: {why}")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def _happened(slurm: Cluster) -> list[tuple[str, str]]:
    """Return the jobs that slurmctld started and stopped for others, in its order, by its log."""
    log = (slurm.folder / slurm.cluster / "slurmctld.log").read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"(?:(?:sched: Allocate|_start_job: Started)|(preempted)) JobId=(\d+)", log)
    return [(job, "stopped" if stopped else "started") for stopped, job in found]


def _reasons(outcome: Outcome, policy: SlurmQueue, folder: Path) -> None:
    """What waits states a reason: none may be unknown, and none of the rule's own be called none."""
    files = [folder / name for name in SLURM if (folder / name).exists()]
    outcome.reasons = list(_stated((folder / "squeue.txt").read_text(encoding="utf-8")).values())
    found = audit(files, importer="slurm", policies=[policy], properties=[])
    outcome.wrong += [f"reason {each.value}: {each.why}" for each in found.unplaced if "not known" in each.why]
    for user, reason in found.reasons.items():
        # jobs that are left aside count among those that backfill tests
        if "nothing in the file stops it" in str(reason) and "bf_max_job_test" not in outcome.case.parameters:
            outcome.wrong.append(f"{user}: {reason}")


def _stated(text: str) -> dict[str, str]:
    """Return why each job waits that squeue lists as pending."""
    head, *lines = (line.split("|") for line in text.splitlines())
    job, reason = head.index("JOBID"), head.index("NODELIST(REASON)")
    return {line[job]: line[reason].strip("()") for line in lines if line[reason].startswith("(")}
