"""The directives ``findings``, ``finding-counts`` and ``policy-numbers``: the ledger of claims, as it is installed.

Each claim is a box with classes that ``_static/findings.js`` filters by; without JavaScript all of them are shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from building import folded, html, paragraph, section, table
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from fairopt.proofs.ledger.entries import OWN, Entry, PrintedAndFound, Ruling, ledger
from fairopt.proofs.ledger.figures import HEADS, cells


class Paper(NamedTuple):
    """How a paper is called here, the notebook about it if any, and what its reader should know of our studies."""

    title: str
    notebook: str
    about: str = ""


PAPERS = {
    "oef": Paper(
        "OEF (Middleware 2024)",
        "oef_running_example",
        "In rounds its shares matter little: with the same rounding and placer, mean completion times under OEF, "
        "trading and max-min differ by about one percent, not 17 or 19 (`oef-jct`). What is printed comes out "
        "beside whole rivals, Gandiva_fair and Gavel's rounds, if all jobs come at once: OEF lets a tenant's jobs "
        "take turns. Where jobs come one by one Gavel's are done sooner. OEF puts more workers across types than "
        "its rivals' shares do, not fewer (`oef-straggler`), though only some three percent of the GPU-time is in "
        "such gangs.",
    ),
    "gandiva": Paper(
        "Gandiva_fair (EuroSys 2020)",
        "gandiva_fair",
        "Its own figures are small enough to be computed exactly. In studies it is a baseline of the others. On half "
        "days of real jobs of Venus its tenants are served unfairly less often than YARN-CS's, as ASTRAEA prints, and "
        "never less often than ASTRAEA's for sure (`ltgf-tenantfair`). As a whole scheduler it is not what OEF "
        "compares its shares with: that is its trading, with OEF's placer (`oef-jct`).",
    ),
    "fft": Paper(
        "FFT (ICS 2025)",
        "fft",
        "The evaluation gives no loads, speeds, lengths or code, so we played its set-up in every reading. Its "
        "printed advantages in completion time come out only against rivals that do not go by what remains: Gavel's "
        "max-min or finish-time fairness, PAL and Tiresias by least attained service. Gavel's shortest first, which "
        "the paper itself calls Gavel's best, is as a rule better than FFT; so is SRTF (`fft-jct`). Where FFT wins "
        "is waiting, as printed and under load: the longest wait for a first round is below that of policies that go "
        "by what remains (`fft-starvation`). Its makespans are seldom the longer ones. What it does depends on the "
        "unit of work, since the compensation is in its square (`fft-eq4`). Finish-time fairness as "
        "Sec. 6.1.5 defines it is never below 1 (`fft-ftf`).",
    ),
    "ltgf": Paper(
        "ASTRAEA, long-term GPU-time fairness (TPDS 2022)",
        "ltgf",
        "Fairness to tenants is where ASTRAEA wins: under every reading of weights and intervals no rival serves fewer "
        "tenants unfairly for sure, and YARN-CS serves more of them so nearly always (`ltgf-tenantfair`). The printed "
        "shares come out by Eq. (8) only; the printed 9.4 times against Tiresias-L at the paper's size only, on two "
        "weeks and 100 hosts (`ltgf-tenantfair-whole`). There Themis serves 3.3 times as many jobs unfairly, where 2.8 "
        "is printed (`ltgf-jobfair-whole`). On half a day it is fairer to jobs than YARN-CS always, than Themis at a "
        "light load only; it is less fair than Themis at a heavy one and, with real quotas, in the paper's intervals "
        "of 10 seconds, and how wrong the lengths are that Themis is told changes little (`ltgf-jobfair`). The printed "
        "shares of jobs need a convention of the published simulator: a "
        "third of Venus' jobs are so short that the wait for the next 10 seconds alone puts them below 0.95, if it "
        "counts. Leases of an hour are worse than those of 900 seconds, as printed; shorter ones are not "
        "(`ltgf-lease`, `ltgf-lease-whole`).",
    ),
    "astraea": Paper(
        "Astraea, posted prices (IEEE TC 2022)",
        "astraea",
        "Its evaluation is of batches whose owners, machines and baselines are not told, so that most printed factors "
        "cannot be computed again (`astraea-revenue`). What can be depends on the utilities: linear ones keep nearly "
        "all of the offline optimum's revenue, convex ones lose most of it while jobs wait for their round "
        "(`astraea-ratio`), and first come, first served over all that is free earns more in both.",
    ),
    "drf": Paper(
        "Dominant Resource Fairness (NSDI 2011)", "", "Decided for divisible tasks, as the paper's theorems are."
    ),
    "karma": Paper("Karma (OSDI 2023)", "", "Decided on small instances, with the published library's own ties."),
    "armada": Paper(
        "Armada (documents and code of 2026)", "", "A model of the documented cycle; no live cluster was run."
    ),
    "kueue": Paper(
        "Kueue (documents and code of 2026)",
        "",
        "Its rules for fair sharing on small cohorts; no live cluster was asked.",
    ),
    "kai": Paper(
        "KAI Scheduler (documents and code of 2026)", "", "Division and reclaiming; no live cluster was asked."
    ),
    "volcano": Paper("Volcano (documents and code of 2026)", "", "Worked numbers; no live cluster was asked."),
    "yarn": Paper("YARN capacity scheduler (documents and code)", "", "Worked numbers; no live cluster was asked."),
    "slurm": Paper(
        "Slurm (documents and code of 2026)", "", "Its rules for fair share on small trees; no live cluster was asked."
    ),
    OWN: Paper("Our own", "", "What no paper says; in full, by subject, on a page of its own: Beyond the papers."),
}
#: What each verdict means, in the order of the table.
MEANING = {
    Ruling.REPRODUCED: "our computation gives what is printed",
    Ruling.PROVED: "a proof for all sizes, checked by Coq or by what the row names",
    Ruling.HOLDS_BOUNDED: "decided for every instance up to a stated size",
    Ruling.REFUTED: "an exact counterexample is stored and checked again in every test run",
    Ruling.INCONSISTENT: "the paper contradicts itself; both readings are computed",
    Ruling.QUALIFIED: "true in part, or under a reading; it says which",
    Ruling.NOT_DECIDABLE_HERE: "needs hardware or data that is not public",
    Ruling.OPEN: "not decided yet; it says what it waits for",
}


def title(paper: str) -> str:
    """Return the paper's title, or its identifier for a paper that this page does not know."""
    return PAPERS[paper].title if paper in PAPERS else paper


def sentence(text: str) -> tuple[str, str]:
    """Return the first sentence, and the rest."""
    text = " ".join(text.split())
    for end in re.finditer(r"[.] (?=[A-Z(])", text):
        if not text[: end.start()].endswith(("Eq", "Sec", "Fig", "vs", "cf", "Alg")):
            return text[: end.start() + 1], text[end.end() :]
    return text, ""


def box(row: Entry) -> nodes.container:
    """Return what is known of one claim: the claim, the verdict, the numbers, and how to run it again."""
    head = nodes.paragraph(classes=["finding-head"])
    head += nodes.inline("", row.verdict.value, classes=["verdict", f"verdict-{row.verdict.value}"])
    head += [nodes.Text(" "), nodes.strong(text=row.where), nodes.Text(f" ({row.kind}) ")]
    head += nodes.reference("", "", nodes.literal(text=row.id), refid=row.id, classes=["finding-id"])
    tags = [f"is-{row.verdict.value}", f"of-{row.paper}", f"a-{row.kind}"]
    made = nodes.container(ids=[row.id], classes=["finding", *tags])
    made += [head, paragraph(row.says, "finding-says")]
    short, *more = row.evidence.splitlines() or [""]
    first, rest = sentence(short)
    made += paragraph(f"Found: {first}")
    if hidden := [paragraph(each) for each in (rest, *more) if each]:
        made += folded("The rest of it", *hidden)
    if row.table:
        made += table([name.capitalize() for name in PrintedAndFound._fields], row.table)
    if not row.run:
        made += paragraph(f"It waits for {row.waits_for}", "finding-again")
        return made
    said = {"takes minutes": row.slow, "its numbers differ from run to run": row.measured}
    notes = [note for note, applies in said.items() if applies]
    about = f" ({', '.join(notes)})" if notes else ""
    made += paragraph(f"Again: `fairopt claims {row.id} --run`{about}", "finding-again")
    return made


def papers(rows: Sequence[Entry]) -> list[str]:
    """Return the papers of these claims: those that this page knows in its order, then others."""
    there = dict.fromkeys(row.paper for row in rows)
    return [*(paper for paper in PAPERS if paper in there), *(paper for paper in there if paper not in PAPERS)]


class Findings(SphinxDirective):
    """All claims, a section for each paper, with the controls of the filter in front."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        rows = ledger()
        made: list[nodes.Node] = [html('<div id="finding-filter" hidden></div>')]
        for paper in papers(rows):
            boxes = [box(row) for row in rows if row.paper == paper]
            made.append(section(title(paper), f"of-{paper}", *introduction(paper), *boxes))
        return made


def introduction(paper: str) -> list[nodes.Node]:
    """Return what is to be known of a paper, where there is something, and a line that links its notebook."""
    if paper not in PAPERS:
        return []
    about = [paragraph(PAPERS[paper].about)] if PAPERS[paper].about else []
    if not PAPERS[paper].notebook:
        return [*about]
    target = f"/notebooks/{PAPERS[paper].notebook}"
    link = pending_xref(refdomain="std", reftype="doc", reftarget=target, refexplicit=False, refwarn=True)
    link += nodes.inline(text=target)
    return [*about, nodes.paragraph("", "", nodes.Text("Notebook: "), link)]


class FindingCounts(SphinxDirective):
    """How many claims of each paper got which verdict, and what the verdicts mean."""

    def run(self) -> list[nodes.Node]:
        """Return the two tables."""
        rows = ledger()
        used = [ruling for ruling in Ruling if any(row.verdict is ruling for row in rows)]
        heads = ["Paper", *(ruling.value for ruling in used)]
        return [
            table(heads, counts(rows, used), "counts"),
            table(("Verdict", "Meaning"), [(r.value, MEANING[r]) for r in used]),
        ]


class PolicyNumbers(SphinxDirective):
    """What rows of the ledger say of each policy in numbers, and of its properties."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        return [table([head.capitalize() for head in HEADS], cells(ledger()), "policy-numbers")]


def counts(rows: Sequence[Entry], used: Sequence[Ruling]) -> list[list[str]]:
    """Return a row of numbers for each paper."""
    made = []
    for paper in papers(rows):
        found = Counter(row.verdict for row in rows if row.paper == paper)
        made.append([title(paper), *(str(found[ruling] or "") for ruling in used)])
    return made


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("findings", Findings)
    app.add_directive("finding-counts", FindingCounts)
    app.add_directive("policy-numbers", PolicyNumbers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
