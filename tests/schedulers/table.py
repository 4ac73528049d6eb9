"""The page of schedulers' own tests: how many cases agree, and why others do not.

``python tests/schedulers/table.py`` plays all cases and writes docs/schedulers/own-tests.md; a test compares it.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from playing import FOLDER, WANTED, Case, cases_of, play, source_of

PAGE = FOLDER.parents[1] / "docs" / "schedulers" / "own-tests.md"
#: What each scheduler is called, in the order of the page.
CALLED = {"kueue": "Kueue", "kai": "KAI Scheduler", "volcano": "Volcano", "armada": "Armada", "yarn": "YARN"}
#: So many files have a line each.
FILES = 12
HEAD = """# Schedulers' own tests

The set-ups and expected outcomes of schedulers' own tests, as objects that kubectl would print, read by the importers
and decided by the policies. They were taken before an outcome was seen, and are new: the rows on each scheduler's page
are not among them. Each case stands in `tests/schedulers/SCHEDULER.json` with the file, line and name of its test.
`python tests/schedulers/table.py` plays them and writes this page.

A case *agrees* where who starts, who is stopped and, for Kueue, on which flavor is what the test expects. It is *not
modelled* where the outcome differs, or the files are refused, and what the importer lists names the cause; the test
asserts that it does. It is *silent* where the outcome differs and nothing is listed. It *disagrees* where the rule is
modelled and the outcome differs.

"""


#: Of a case: its scheduler, file, and line (and round), or the name of its method.
Key: TypeAlias = tuple[str, str, int | str]


class Verdicts(NamedTuple):
    """What is recorded of the cases that do not agree: the text that the importer lists, or why they disagree."""

    said: Mapping[Key, str]
    why: Mapping[Key, str]


def recorded() -> Verdicts:
    """Return the recorded verdicts, by scheduler, file and line."""
    data = tomllib.loads((FOLDER / "verdicts.toml").read_text(encoding="utf-8"))
    found = []
    for kind, key in (("not_modelled", "said"), ("disagree", "why")):
        rows = data.get(kind, [])
        found.append(
            {
                (row["scheduler"], file, line): row[key]
                for row in rows
                for file, lines in row.items()
                if isinstance(lines, list)
                for line in lines
            }
        )
    return Verdicts(*found)


BEGIN, END = "<!-- cases: written by tests/schedulers/table.py -->\n", "<!-- cases: end -->\n"


def key_of(case: Case) -> Key:
    """Return by what a verdict is recorded: of a test with several rounds each is a case."""
    line, turn = case.said["line"], case.said.get("round")
    return case.scheduler, case.said["file"], line if turn is None else f"{line}, round {turn}"


def verdict(case: Case, folder: Path, known: Verdicts) -> tuple[str, str]:
    """Return what becomes of a case, and the recorded cause; a record that does not hold is silent."""
    played = play(case, folder)
    if not played.refused and played.found == WANTED[case.scheduler](case):
        return "agree", ""
    key = key_of(case)
    if key in known.said and known.said[key] in played.listed:
        return "not modelled", known.said[key]
    return ("disagree", known.why[key]) if key in known.why else ("silent", played.listed)


def page(found: Iterable[tuple[Case, str, str]]) -> str:
    """Return the page for cases with their verdicts and causes."""
    rows = list(found)
    lines = [HEAD, BEGIN]
    kinds = ("agree", "disagree", "not modelled", "silent")
    lines.append(f"| scheduler | cases | {' | '.join(kinds)} |\n|---|---:|{'---:|' * len(kinds)}\n")
    for scheduler, called in CALLED.items():
        counts = Counter(kind for case, kind, _ in rows if case.scheduler == scheduler)
        numbers = " | ".join(str(counts[kind]) for kind in kinds)
        lines.append(f"| {called} | {sum(counts.values())} | {numbers} |\n")
    total = Counter(kind for _, kind, _ in rows)
    lines.append(f"| together | {len(rows)} | {' | '.join(str(total[kind]) for kind in kinds)} |\n")
    for scheduler, called in CALLED.items():
        own = [(case, kind, cause) for case, kind, cause in rows if case.scheduler == scheduler]
        lines.append(f"\n## {called}\n\n{source_of(scheduler)}.\n\n")
        lines.append(f"| file | cases | {' | '.join(kinds[:3])} |\n|---|---:|---:|---:|---:|\n")
        files = {case.said["file"] for case, _, _ in own}
        many = len(files) > FILES  # then folders stand for their files
        kept = [(str(Path(case.said["file"]).parent) if many else case.said["file"], kind) for case, kind, _ in own]
        for place in dict.fromkeys(place for place, _ in kept):
            counts = Counter(kind for each, kind in kept if each == place)
            lines.append(f"| {place} | {sum(counts.values())} | {' | '.join(str(counts[k]) for k in kinds[:3])} |\n")
        causes = Counter(cause for _, kind, cause in own if kind == "not modelled")
        if causes:
            lines.append("\n| not modelled, and listed as | cases |\n|---|---:|\n")
            lines += [f"| {cause} | {count} |\n" for cause, count in causes.most_common()]
        for cause in dict.fromkeys(cause for _, kind, cause in own if kind == "disagree"):
            where = [f"`{case.said['file']}`, {key_of(case)[2]}" for case, _, why in own if why == cause]
            lines.append(f"\n*Disagrees*: {', '.join(where)}. {cause}.\n")
    return "".join([*lines, END])


def played() -> list[tuple[Case, str, str]]:
    """Return all cases with their verdicts and causes."""
    known = recorded()
    with tempfile.TemporaryDirectory() as folder:
        return [(case, *verdict(case, Path(folder), known)) for name in CALLED for case in cases_of(name)]


if __name__ == "__main__":
    PAGE.write_text(page(played()), encoding="utf-8")
