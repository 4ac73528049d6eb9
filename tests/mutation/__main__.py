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
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from corpus import TOP, VERIFIER, File, collected, decision, front
from mutants import Mutant, mutants

#: Seconds of the processor that a mutant may take for one file, and for all: it has survived then; and bytes.
SECONDS, ALL_SECONDS, BYTES = 2, 2, 4 * 2**30


def killed(check: Callable[[], bool]) -> str:
    """Return how a mutant fares in a process of its own: "killed" where the check says so, or where it ends."""
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
    return "survived" if os.waitpid(child, 0)[1] == 0 else "killed"


def put_in_place(path: Path, source: str) -> None:
    """Let a file be imported as if this were what it says."""
    honest = SourceFileLoader.get_code

    def code(self: SourceFileLoader, name: str) -> Any:
        return compile(source, self.path, "exec") if Path(self.path) == path else honest(self, name)

    SourceFileLoader.get_code = code  # type: ignore[method-assign]


def noticed_by(files: list[File], folder: Path, mutant: Mutant) -> bool:
    """Return whether a file is decided otherwise; only those are tried that are in the mutant's function."""
    put_in_place(VERIFIER / mutant.file, mutant.source)
    verifiers = front()
    inside = mutant.lines
    concerned = (
        each
        for each in files
        if inside is None or any(line in inside and line != inside.start for line in each.lines.get(mutant.file, ()))
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
            digest, count = sha256(path.read_bytes()).hexdigest()[:12], counts.setdefault(path.name, Counter())
            for mutant in mutants(path, path.name):
                name = f"{mutant.operator} {mutant.occurrence}"
                before = done.get((path.name, digest, name))
                if before is None or (given.again and before["outcome"] == "survived"):
                    begun = time.perf_counter()
                    outcome = killed(lambda mutant=mutant: noticed_by(files, given.folder / "corpus", mutant))
                    before = {"file": path.name, "digest": digest, "mutant": name, "outcome": outcome}
                    before |= {"line": mutant.line, "change": mutant.change}
                    before |= {"seconds": round(time.perf_counter() - begun, 2)}
                    stream.write(json.dumps(before) + "\n")
                    stream.flush()
                count[before["outcome"]] += 1
                if before["outcome"] == "survived":
                    print(f"{path.name}:{before['line']} {name}: {before['change']}", flush=True)
            print(f"{path.name}: {dict(count)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
