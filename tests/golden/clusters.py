"""Files of six schedulers, with numbers changed by a seed, and what is asked of each: audit, import, explain, whatif.

The samples are those that fairopt brings. They are changed as texts, so that a change may be one that an importer
refuses: then its refusal is observed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from generate import Problem
from plan import Step

SAMPLES = Path(__file__).parents[2] / "fairopt" / "datasets" / "clusters"
#: How many problems there are.
COUNT = 210
#: A whole number of at most three digits that stands alone.
_NUMBER = re.compile(r"""(?<=[\s:"=|>,\[])\d{1,3}(?=["\s|<,\]])""")


class Sample(NamedTuple):
    """A scheduler's files; users, and one change of a quota, that the questions name."""

    importer: str
    files: tuple[str, ...]
    users: tuple[str, ...]
    change: str


SAMPLES_OF: Sequence[Sample] = (
    Sample("kueue", ("cluster.json",), ("vision", "search"), "search.h100.quota+=2"),
    Sample("kueue", ("older.yaml",), ("maths", "physics"), "physics.v100.quota=5"),
    Sample("kai", ("cluster.yaml",), ("llm", "vision"), "llm.h100.quota+=2"),
    Sample("kai", ("snapshot.json",), ("team-a", "team-b"), "team-b.default.quota=3"),
    Sample("volcano", ("capacity.json",), ("vision", "language"), "language.nvidia.com/a100.cap=10"),
    Sample("volcano", ("hdrf.yaml",), ("sci", "prod"), "sci.weight=3"),
    Sample("armada", ("cluster.json", "scheduler.yaml", "submit.yaml"), ("serving", "research"), "serving.weight=4"),
    Sample(
        "yarn",
        ("capacity-scheduler.xml", "scheduler.json", "metrics.json"),
        ("root.research.language", "root.serving"),
        "root.serving.a100.quota+=1",
    ),
    Sample("yarn", ("absolute.xml", "metrics.json"), ("root.train", "root.infer"), "root.infer.default.cap=6"),
    Sample(
        "slurm",
        ("sshare.txt", "assoc.txt", "qos.txt", "nodes.txt", "squeue.txt", "partitions.txt"),
        ("hep/bo", "hep"),
        "hep/bo.weight=7",
    ),
    Sample("slurm", ("sshare.json", "assoc.json", "nodes.json", "squeue.json"), ("hep/bo", "hep"), "a100.capacity+=4"),
    Sample("slurm", ("sshare.txt", "assoc.txt", "nodes.txt", "sacct.txt"), ("hep/bo", "hep"), "h100.capacity=8"),
    Sample("slurm", ("assoc.txt", "nodes.txt", "jobs.txt"), ("hep/bo", "hep"), "hep.weight=2"),
)


def cluster(number: int) -> Problem:
    """Return problem ``number``: the files of a sample; the first of each sample are as they are."""
    random, sample = Random(f"golden cluster {number}"), SAMPLES_OF[number % len(SAMPLES_OF)]
    files = {name: (SAMPLES / sample.importer / name).read_text(encoding="utf-8") for name in sample.files}
    if number >= len(SAMPLES_OF):
        for _ in range(random.choice([1, 1, 2, 3, 5])):
            name = random.choice(sorted(files))
            files[name] = _changed(files[name], random)
    return Problem(f"c{number:04d}", "clusters", number, files, {"sample": sample})


def _changed(text: str, random: Random) -> str:
    found = random.choice([*_NUMBER.finditer(text)])
    value = int(found[0])
    other = random.choice([0, 1, value // 2, value + 1, 2 * value, 3 * value + 2])
    return f"{text[: found.start()]}{other}{text[found.end() :]}"


def steps(number: int, facts: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the commands of a problem."""
    sample: Sample = facts["sample"]
    files, user = sample.files, sample.users[number // len(SAMPLES_OF) % len(sample.users)]
    if number % 5 == 0:
        yield Step(("audit", *files, "--json", "--certificates", "evidence"), keep=("evidence",))
        yield Step(("check", "evidence"))
    else:
        yield Step(("audit", *files, "--json"))
    yield Step(("audit", *files, *(("--verbose",) if number % 2 else ("--from", sample.importer))))
    yield Step(("import", sample.importer, *files, "--out", "market.toml", "--json"), keep=("market.toml",))
    yield Step(("explain", *files, user, *(("--json",) if number % 2 else ())))
    yield Step(("whatif", *files, "--set", sample.change, *(("--json",) if number % 3 else ())))
    match number % 4:
        case 0:
            yield Step(("audit", *files, "--html", "page.html"), keep=("page.html",))
        case 1:
            yield Step(("compare", "market.toml", "--json"))
        case 2:
            yield Step(("whatif", *files, "--set", sample.change, "--emit", sample.importer))
        case 3:
            yield Step(("whatif", *files, "--set", sample.change, "--html", "page.html"), keep=("page.html",))
