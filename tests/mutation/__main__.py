"""`python tests/mutation`: is every change of a verifier noticed? Interrupted, the same command goes on.

A mutant is killed where a file of the corpus is decided otherwise: another exit status, or another accepted statement.
The corpus is made where it is missing, by the tests; delete it to take up new ones, and try the survivors ``--again``.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from itertools import chain
from pathlib import Path
from typing import Any

from corpus import TOP, VERIFIER, File, collected, decision, front
from mutants import Mutant, mutants

#: Seconds of the processor that a mutant may take for one file, and for all: it has survived then; and bytes.
SECONDS, ALL_SECONDS, BYTES = 2, 2, 4 * 2**30


def started(check: Callable[[], bool]) -> int:
    """Return the process that runs a check; it ends well where a mutant survives, by saying so."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        noticed = True
        try:
            noticed = check()
        finally:  # an error of any kind is noticed
            os._exit(int(noticed))
    return child


def outcomes(todo: Iterable[Mutant], check: Callable[[Mutant], bool], processes: int) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant with how it fares, so many at once, whichever is done first."""
    under_way: dict[int, Mutant] = {}
    for mutant in chain(todo, [None] * processes):
        if under_way and (mutant is None or len(under_way) == processes):
            process, status = os.wait()
            yield under_way.pop(process), "killed" if status else "survived"
        if mutant is not None:
            under_way[started(partial(check, mutant))] = mutant


def put_in_place(path: Path, source: str) -> None:
    """Let a file be imported as if this were what it says."""
    honest = SourceFileLoader.get_code

    def code(self: SourceFileLoader, name: str) -> Any:
        return compile(source, self.path, "exec") if Path(self.path) == path else honest(self, name)

    SourceFileLoader.get_code = code  # type: ignore[method-assign]


def noticed_by(files: list[File], folder: Path, mutant: Mutant) -> bool:
    """Return whether a file is decided otherwise; only those are tried that run the changed statement."""
    put_in_place(VERIFIER / mutant.file, mutant.source)
    verifiers = front()
    inside = mutant.lines
    concerned = (
        each for each in files if inside is None or any(line in inside for line in each.lines.get(mutant.file, ()))
    )
    until = time.process_time() + ALL_SECONDS
    for each in concerned:  # the quickest first
        if time.process_time() > until:
            return False
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # what takes longer is ended, and so noticed
        if decision(verifiers, folder / each.name, each.tolerance) != each.decision:
            return True
    return False


def read(journal: Path) -> Iterator[dict[str, Any]]:
    """Yield what is done; a last line that breaks off is done again."""
    for line in journal.read_text(encoding="utf-8").splitlines(keepends=True) if journal.exists() else ():
        if line.endswith("\n"):
            yield json.loads(line)


def main() -> int:
    """Try the mutants that are still to do, print the survivors and the counts."""
    parser = ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("file", nargs="*", help="only these modules, such as decisions.py")
    parser.add_argument("--folder", type=Path, default=TOP / "build" / "mutation", help="corpus and journal")
    parser.add_argument("--again", action="store_true", help="try those again that survived")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="mutants that are tried at once")
    given = parser.parse_args()
    journal = given.folder / "journal.jsonl"
    done = {(each["file"], each["digest"], each["mutant"]): each for each in read(journal)}
    files = collected(given.folder / "corpus")
    front()  # what it imports of Python's library is there for all
    counts: dict[str, Counter[str]] = {}
    with journal.open("a", encoding="utf-8") as stream:
        for path in sorted(VERIFIER.glob("*.py")):
            if given.file and path.name not in given.file:
                continue
            digest = sha256(path.read_bytes()).hexdigest()[:12]
            found = {each.name: each for each in mutants(path, path.name)}
            old = {name: done[path.name, digest, name] for name in found if (path.name, digest, name) in done}
            known = {name: each for name, each in old.items() if not given.again or each["outcome"] == "killed"}
            todo = [each for name, each in found.items() if name not in known]
            check = partial(noticed_by, files, given.folder / "corpus")
            for mutant, outcome in outcomes(todo, check, given.processes):
                told = {"file": path.name, "digest": digest, "mutant": mutant.name, "outcome": outcome}
                known[mutant.name] = told | {"line": mutant.line, "change": mutant.change}
                stream.write(json.dumps(known[mutant.name]) + "\n")
                stream.flush()
            counts[path.name] = Counter(each["outcome"] for each in known.values())
            for name in (name for name in found if known[name]["outcome"] == "survived"):
                print(f"{path.name}:{found[name].line} {name}: {found[name].change}", flush=True)
            print(f"{path.name}: {dict(counts[path.name])}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
