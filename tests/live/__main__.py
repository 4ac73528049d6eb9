"""Ask a live Slurm, tree by tree, and compare what it states and starts with what fairopt computes from its exports.

`python tests/live [--seeds 44] [--first 0] [--keep FOLDER] [--again FOLDER] [--write PAGE]`; `cluster.py` says what
runs.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from asking import Outcome, ask, compare, ended
from cluster import Cluster
from table import plain, rows_of, written
from trees import NODES, drawn

#: How often a tree is asked at most, where jobs end while it is.
ATTEMPTS = 3


def main() -> int:
    """Return 0 where everything that is modelled agrees, 1 where something differs, 2 where time was over."""
    parser = argparse.ArgumentParser(prog="tests/live", description=__doc__)
    parser.add_argument("--seeds", type=int, default=80)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=120, help="begin no further tree after this long")
    parser.add_argument("--keep", type=Path, help="keep what was exported here, a folder for each tree")
    parser.add_argument("--again", type=Path, help="ask nothing; compare what was kept here")
    parser.add_argument("--write", type=Path, help="the page into which the summary goes")
    asked = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):  # so that everything is ended and removed
        signal.signal(number, lambda which, frame: sys.exit(128 + which))
    outcomes: list[Outcome] = []
    seeds = range(asked.first, asked.first + asked.seeds)
    if asked.again:
        for seed in seeds:
            outcomes.append(_told(compare(drawn(seed), asked.again / f"tree-{seed}")))
        version = (asked.again / "version").read_text(encoding="utf-8").strip()
    else:
        began = time.monotonic()
        with Cluster(NODES) as slurm:
            version, kept = slurm.version, asked.keep or slurm.folder / "exports"
            kept.mkdir(parents=True, exist_ok=True)
            (kept / "version").write_text(version, encoding="utf-8")
            for seed in seeds:
                if time.monotonic() - began > asked.minutes * 60:
                    print(f"{asked.minutes:g} minutes are over after {len(outcomes)} trees", file=sys.stderr)
                    return 2
                for _ in range(ATTEMPTS):
                    ask(slurm, drawn(seed), kept / f"tree-{seed}")
                    if not ended(kept / f"tree-{seed}"):  # else others may have started in their place
                        break
                outcomes.append(_told(compare(drawn(seed), kept / f"tree-{seed}")))
    print(plain(rows_of(outcomes)))
    reasons = Counter(reason for outcome in outcomes for reason in outcome.reasons)
    print("reasons seen:", ", ".join(f"{name} {count}" for name, count in sorted(reasons.items())))
    if asked.write:
        asked.write.write_text(written(asked.write.read_text(encoding="utf-8"), version, outcomes), encoding="utf-8")
    return int(any(outcome.wrong for outcome in outcomes))


def _told(outcome: Outcome) -> Outcome:
    print(outcome.line(), flush=True)
    for line in [*outcome.wrong, *outcome.aside]:
        print(f"    {line}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
