"""`python tests/mutation`: is every change of a verifier or property checker noticed? Interrupted, it goes on.

A mutant is killed where a file of the corpus is decided otherwise: by a verifier, another exit status or another
accepted statement; by a checker, another verdict, witness or number.
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

from corpus import SUBJECTS, TOP, File, Subject, collected
from mutants import Mutant, mutants

#: Seconds of the processor that a mutant may take for one file, and for all: it has survived then; and bytes.
SECONDS, ALL_SECONDS, BYTES = 2, 0.5, 4 * 2**30
#: Seconds after which a mutant's process is ended, whatever it waits for.
ENDED = 60


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


def read_once() -> None:
    """Let every other file be compiled only once, for all processes to come."""
    honest, found = SourceFileLoader.get_code, dict[str, Any]()

    def code(self: SourceFileLoader, name: str) -> Any:
        if self.path not in found:
            found[self.path] = honest(self, name)
        return found[self.path]

    SourceFileLoader.get_code = code  # type: ignore[method-assign]


def noticed_by(subject: Subject, files: list[File], folder: Path, mutant: Mutant) -> bool:
    """Return whether a file is decided otherwise; only those are tried that take the mutant's line."""
    signal.alarm(ENDED)  # who waits uses no processor
    put_in_place(subject.folder / mutant.file, mutant.source)
    subject.anew()
    inside = mutant.lines
    through = [(each, each.lines.get(mutant.file, ())) for each in files]
    concerned = [each for each, lines in through if inside and mutant.line in lines and mutant.line != inside.start]
    if inside and not concerned:  # a line of several may not be noted
        concerned = [each for each, lines in through if any(line in inside and line != inside.start for line in lines)]
    if not inside:  # who goes through the file comes first, and there who tells all that it has, without an answer
        concerned = sorted(files, key=lambda each: (mutant.file not in each.lines, each.decision[0] != ""))
    until = time.process_time() + ALL_SECONDS
    for each in concerned:
        if time.process_time() > until:
            return False
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # what takes longer is ended, and so noticed
        if subject.decision(folder / each.name, each.tolerance) != each.decision:
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
    parser.add_argument("--only", choices=SUBJECTS, help="only the verifiers, or the checkers of properties")
    parser.add_argument("--folder", type=Path, default=TOP / "build" / "mutation", help="corpora and journals")
    parser.add_argument("--again", action="store_true", help="try those again that survived")
    given = parser.parse_args()
    read_once()
    for name, subject in SUBJECTS.items():
        if given.only in (None, name):
            tried(subject, given.folder / name, given.file, again=given.again)
    return 0


def tried(subject: Subject, folder: Path, only: list[str], *, again: bool) -> None:
    """Try a subject's mutants."""
    journal, corpus = folder / "journal.jsonl", folder / "corpus"
    done = {(each["file"], each["digest"], each["mutant"]): each for each in read(journal)}
    files = collected(subject, corpus)
    subject.anew()
    for each in files[::50]:  # what they import is there for all
        subject.decision(corpus / each.name, each.tolerance)
    counts: dict[str, Counter[str]] = {}
    with journal.open("a", encoding="utf-8") as stream:
        for path in sorted(subject.folder.rglob("*.py")):
            file = path.relative_to(subject.folder).as_posix()
            if only and file not in only:
                continue
            digest, count = sha256(path.read_bytes()).hexdigest()[:12], counts.setdefault(file, Counter())
            for mutant in mutants(path, file):
                name = f"{mutant.operator} {mutant.occurrence}"
                before = done.get((file, digest, name))
                if before is None or (again and before["outcome"] == "survived"):
                    begun = time.perf_counter()
                    outcome = killed(lambda mutant=mutant: noticed_by(subject, files, corpus, mutant))
                    before = {"file": file, "digest": digest, "mutant": name, "outcome": outcome}
                    before |= {"line": mutant.line, "change": mutant.change}
                    before |= {"seconds": round(time.perf_counter() - begun, 2)}
                    stream.write(json.dumps(before) + "\n")
                    stream.flush()
                count[before["outcome"]] += 1
                if before["outcome"] == "survived":
                    print(f"{file}:{before['line']} {name}: {before['change']}", flush=True)
            print(f"{file}: {dict(count)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
