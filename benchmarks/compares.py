"""What `fairopt compare` costs, each time in a process of its own; with ``--before``, beside another checkout.

    .venv/bin/python benchmarks/compares.py                            # 5 users x 4 types and 200 users x 10 types
    .venv/bin/python benchmarks/compares.py --before ../older --turns 3

Printed are seconds of processor, the least of all turns, and of the other checkout the same with the ratio. The large
market is drawn from a seed; ``--policy`` compares some policies alone, which says where the time goes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairopt.benchmarks.large_clusters import measured
from fairopt.benchmarks.misreports import random_market
from fairopt.datasets import dataset_path
from fairopt.problem import write_market


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append", default=[], help="this policy alone; may be given again")
    parser.add_argument("--markets", nargs="*", type=Path, help="files of markets in place of the two")
    parser.add_argument("--before", type=Path, help="the root of another checkout that has a .venv")
    parser.add_argument("--turns", type=int, default=1)
    given = parser.parse_args()
    drawn = Path("build", "compare-200x10.toml")
    if not given.markets:
        drawn.parent.mkdir(exist_ok=True)
        write_market(random_market(200, 10, 0), drawn)
    more = [word for name in given.policy for word in ("--policy", name)]
    here = Path(sys.executable).with_name("fairopt")
    there = given.before and given.before / ".venv" / "bin" / "fairopt"
    for market in given.markets or [dataset_path("gavel.toml"), drawn]:
        best: dict[Path, float] = {}
        for _ in range(given.turns):
            for program in filter(None, (there, here)):
                seconds, _, code, printed = measured([str(program), "compare", str(market), *more])
                if code:
                    sys.exit(f"{program} ends with {code}:\n{printed.decode()}")
                best[program] = min(seconds, best.get(program, seconds))
        beside = f", before {best[there]:.2f} s, ratio {best[here] / best[there]:.2f}" if there else ""
        print(f"{market.name}: {best[here]:.2f} s of processor{beside}", flush=True)


if __name__ == "__main__":
    main()
