"""`python tests/torture`: a million trials, or as many as the time allows; the same command goes on."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from pathlib import Path

from campaign import read, run, summed, wanted
from catalogue import KINDS, TRIALS
from counting import put_into


def main() -> int:
    """Play what is still to do, print the counts and each fault; exit status 1 where there is one."""
    parser = ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--journal", type=Path, default=Path("build/torture.jsonl"), help="what is done already")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="stop after so many minutes")
    parser.add_argument("--jobs", type=int, default=2, help="so many processes")
    parser.add_argument("--only", default="", help="only kinds of this letter or name")
    parser.add_argument("--part", type=float, default=1.0, help="this part of the million")
    parser.add_argument("--write", type=Path, help="put the counts into this page")
    given = parser.parse_args()
    kinds = [kind for kind in KINDS if given.only in ("", kind.letter, kind.name)]
    done = read(given.journal)
    trials = {letter: round(count * given.part) for letter, count in TRIALS.items()}
    todo = wanted(kinds, {letter: n for letter, n in trials.items() if any(k.letter == letter for k in kinds)}, done)
    until, told = time.monotonic() + 60 * given.minutes, time.monotonic()
    for chunk in run(todo, given.journal, given.jobs, until):
        done.append(chunk)
        for fault in chunk.faults:
            print(
                f"FAULT in {chunk.kind}, seed {fault.get('seed')}: {fault.get('ending')}: {fault['says']}", flush=True
            )
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"torture: {sum(sum(each.counts.values()) for each in done):,} trials", file=sys.stderr, flush=True)
    counts = summed(done)
    for kind in KINDS:
        if kind.name in counts:
            words = ", ".join(f"{count:,} {ending}" for ending, count in counts[kind.name].most_common())
            print(f"({kind.letter}) {kind.name}: {words}")
    if given.write:
        given.write.write_text(put_into(given.write.read_text(encoding="utf-8"), done), encoding="utf-8")
    return int(any(chunk.faults for chunk in done))


if __name__ == "__main__":
    sys.exit(main())
