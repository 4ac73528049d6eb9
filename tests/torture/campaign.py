"""Trials by the million: in chunks, over processes, with a journal from which the same command goes on.

A line of the journal is a chunk that is done: its kind, its number, how many trials ended how, and each fault with the
seed that repeats it. A chunk that is begun and not done is begun again. A process that dies, or does not come back from
a library in time, is a fault of the chunk that it was at.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path

from trials import Ending, Kind

#: Milliseconds that a chunk takes, about.
CHUNK = 5_000.0
#: So many faults of a chunk are kept in full.
KEPT = 5


@dataclass
class Chunk:
    """What came of one chunk of trials of a kind."""

    kind: str
    number: int
    counts: dict[str, int] = field(default_factory=dict)
    faults: list[dict[str, object]] = field(default_factory=list)
    seconds: float = 0.0


def size_of(kind: Kind) -> int:
    """Return how many trials a chunk of this kind has."""
    return max(1, round(CHUNK / kind.cost))


def play(kind: Kind, number: int, count: int) -> Chunk:
    """Carry out the trials of a chunk."""
    kind.prepare()
    begun, counts, chunk = time.perf_counter(), Counter[str](), Chunk(kind.name, number)
    first = number * size_of(kind)
    for seed in range(first, first + count):
        ending, says = kind.trial(seed)
        counts[ending.value] += 1
        if ending.fault and len(chunk.faults) < KEPT:
            chunk.faults.append({"seed": seed, "ending": ending.value, "says": says})
    chunk.counts, chunk.seconds = dict(counts), round(time.perf_counter() - begun, 2)
    return chunk


def _play_by_name(name: str, number: int, count: int) -> Chunk:
    """Carry out a chunk in another process, which gets the name, since a kind cannot be sent."""
    from catalogue import KINDS  # imports all that is tried: not where chunks are only counted

    return play(next(kind for kind in KINDS if kind.name == name), number, count)


def read(journal: Path) -> list[Chunk]:
    """Return the chunks that a journal has; a last line that breaks off is begun again."""
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True) if journal.exists() else []
    return [Chunk(**json.loads(line)) for line in lines if line.endswith("\n")]


def wanted(kinds: Sequence[Kind], trials: dict[str, int], done: Iterable[Chunk]) -> Iterator[tuple[Kind, int, int]]:
    """Yield the chunks that are still to do, of each kind in turn; ``trials``: so many of each letter."""
    there = {(chunk.kind, chunk.number) for chunk in done}
    left: list[Iterator[tuple[Kind, int, int]]] = []
    for letter, total in trials.items():
        own = [kind for kind in kinds if kind.letter == letter]
        shares = _shares(own, total)
        left += [_chunks(kind, shares[kind.name], there) for kind in own]
    while left:
        for each in list(left):
            found = next(each, None)
            if found is None:
                left.remove(each)
            else:
                yield found


def _shares(kinds: Sequence[Kind], total: int) -> dict[str, int]:
    """Return how many trials each kind gets: alike, but no more than its most."""
    shares: dict[str, int] = {}
    for done, kind in enumerate(sorted(kinds, key=lambda each: each.most)):
        shares[kind.name] = min(kind.most, -(-(total - sum(shares.values())) // (len(kinds) - done)))
    return shares


def _chunks(kind: Kind, trials: int, there: set[tuple[str, int]]) -> Iterator[tuple[Kind, int, int]]:
    size = size_of(kind)
    for number in range(-(-trials // size)):
        if (kind.name, number) not in there:
            yield kind, number, min(size, trials - number * size)


def run(todo: Iterator[tuple[Kind, int, int]], journal: Path, processes: int, until: float) -> Iterator[Chunk]:
    """Play chunks until the time is over, keep each in the journal, and yield it."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    _mend(journal)
    with journal.open("a", encoding="utf-8") as stream:
        for chunk in _played(todo, processes, until):
            stream.write(json.dumps(asdict(chunk)) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
            yield chunk


def _mend(journal: Path) -> None:
    """Cut off a last line that breaks off."""
    if journal.exists():
        data = journal.read_bytes()
        if not data.endswith(b"\n"):
            journal.write_bytes(data[: data.rfind(b"\n") + 1])


def _played(todo: Iterator[tuple[Kind, int, int]], processes: int, until: float) -> Iterator[Chunk]:
    if processes == 1:
        for each in todo:
            if time.monotonic() > until:
                return
            yield play(*each)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context)
    running: dict[Future[Chunk], tuple[Kind, int, int]] = {}
    try:
        while True:
            while len(running) < processes and time.monotonic() < until and (more := next(todo, None)):
                kind, number, count = more
                running[pool.submit(_play_by_name, kind.name, number, count)] = more
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                kind, number, _ = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    yield Chunk(kind.name, number, {Ending.TRACEBACK.value: 1}, [{"says": "a process died"}])
                    pool = ProcessPoolExecutor(processes, context)
    finally:
        pool.shutdown(cancel_futures=True)


def summed(chunks: Iterable[Chunk]) -> dict[str, Counter[str]]:
    """Return how many trials of each kind ended how."""
    found: dict[str, Counter[str]] = {}
    for chunk in chunks:
        found.setdefault(chunk.kind, Counter()).update(chunk.counts)
    return found
