"""`python tests/mutation`: is every change of a verifier or property checker noticed? Interrupted, it goes on.

A mutant is killed where a file of the corpus is decided otherwise: by a verifier, another exit status or another
accepted statement; by a checker, another verdict, witness or number. What does no harm, by a rule or because it was
read when it had survived, is not tried.
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
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from itertools import chain
from pathlib import Path
from typing import Any

from corpus import SAMPLE, SUBJECTS, TOP, File, Subject, collected, passes
from explained import by_rule, read_ones
from mutants import Mutant, mutants
from tally import Tally

#: Seconds of the processor that a mutant may take for one file, for tests; and bytes.
SECONDS, UNIT_SECONDS, BYTES = 2, 20, 4 * 2**30
#: Seconds after which a mutant's process is ended, whatever it waits for, and what is noted then: it is tried anew.
ENDED, OUT_OF_TIME = 120, "out of time"


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


def outcomes(
    todo: Iterable[Mutant], check: Callable[[Mutant], bool], processes: int
) -> Iterator[tuple[Mutant, str, float]]:
    """Yield each mutant with how it fares and the processor's seconds, so many at once, whichever is done first."""
    under_way: dict[int, Mutant] = {}
    for mutant in chain(todo, [None] * processes):
        if under_way and (mutant is None or len(under_way) == processes):
            process, status, used = os.wait3(0)
            yield under_way.pop(process), fate(status), used.ru_utime + used.ru_stime
        if mutant is not None:
            under_way[started(partial(check, mutant))] = mutant


def fate(status: int) -> str:
    """Return how a mutant fares whose process ended so; that the clock ended it tells nothing on a busy machine."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return OUT_OF_TIME
    return "killed" if status else "survived"


def put_in_place(path: Path, source: str) -> None:
    """Let a file be imported as if this were what it says."""
    honest = SourceFileLoader.get_code

    def code(self: SourceFileLoader, name: str) -> Any:
        return compile(source, self.path, "exec") if Path(self.path).resolve() == path else honest(self, name)

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
    """Return whether a file is decided otherwise; only those are tried that run the changed statement."""
    signal.alarm(ENDED)  # who waits uses no processor
    put_in_place(subject.folder / mutant.file, mutant.source)
    subject.anew()
    inside = mutant.lines
    if inside is None:  # who goes through the file comes first, and there who tells all that it has, without an answer
        concerned = sorted(files, key=lambda each: (mutant.file not in each.lines, each.decision[0] != ""))
    else:
        concerned = [each for each in files if any(line in inside for line in each.lines.get(mutant.file, ()))]
    until = time.process_time() + subject.seconds
    for each in concerned:  # the quickest first
        if time.process_time() > until:
            break
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # what takes longer is ended, and so noticed
        if subject.decision(folder / each.name, each.tolerance) != each.decision:
            return True
    signal.setitimer(signal.ITIMER_PROF, UNIT_SECONDS)
    tests = subject.tests_of(mutant.file)
    return tests is not None and not passes(tests)


def require_passing(tests: tuple[str, ...] | None) -> None:
    """Raise `SystemExit` where tests fail on the unchanged code: every mutant would seem to be killed."""
    if tests and os.waitpid(started(lambda: not passes(tests)), 0)[1]:
        raise SystemExit(f"{' '.join(tests)} fail on the unchanged code: mend them, or all mutants seem killed")


def noted(journal: Path) -> Iterator[dict[str, Any]]:
    """Yield what is done; a last line that breaks off is done again."""
    for line in journal.read_text(encoding="utf-8").splitlines(keepends=True) if journal.exists() else ():
        if line.endswith("\n"):
            yield json.loads(line)


def main() -> int:
    """Try the mutants that are still to do, print the survivors that nobody has read, and the counts."""
    parser = ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("file", nargs="*", help="only these modules, such as decisions.py or shares/feasibility.py")
    parser.add_argument("--only", choices=SUBJECTS, help="only the verifiers, or the checkers of properties")
    parser.add_argument("--folder", type=Path, default=TOP / "build" / "mutation", help="corpora and journals")
    parser.add_argument("--again", action="store_true", help="try those again that survived")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="mutants that are tried at once")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="files of a test out of which the corpus is chosen")
    given = parser.parse_args()
    read_once()
    for name, subject in SUBJECTS.items():
        if given.only in (None, name):
            collection = collected(subject, given.folder / name / "corpus", given.sample)
            tried(subject, given.folder / name, collection, given.file, again=given.again, processes=given.processes)
    return 0


def tried(subject: Subject, folder: Path, files: list[File], only: list[str], *, again: bool, processes: int) -> None:
    """Try a subject's mutants."""
    journal, corpus = folder / "journal.jsonl", folder / "corpus"
    done = {(each["file"], each["digest"], each["mutant"]): each for each in noted(journal)}
    check = partial(noticed_by, subject, files, corpus)
    subject.anew()
    for each in files[::50]:  # what they import is there for all
        subject.decision(corpus / each.name, each.tolerance)
    ones, tally = read_ones(), Tally(folder.name)
    with journal.open("a", encoding="utf-8") as stream:
        for path in sorted(subject.folder.rglob("*.py")):
            file = path.relative_to(subject.folder).as_posix()
            if only and file not in only:
                continue
            digest = sha256(path.read_bytes()).hexdigest()[:12]
            found = list(mutants(path, file))
            rules = {each.name: by_rule(each) for each in found}
            tries = {each.name: done.get((file, digest, each.name), {}) for each in found}
            unread = [each for each in found if rules[each.name] is None and (file, each.change) not in ones]
            wanted = (None, OUT_OF_TIME, "survived") if again else (None, OUT_OF_TIME)
            todo = [each for each in unread if tries[each.name].get("outcome") in wanted]
            require_passing(subject.tests_of(file) if todo else None)
            for mutant, outcome, seconds in outcomes(todo, check, processes):
                told = {"file": file, "digest": digest, "mutant": mutant.name, "outcome": outcome}
                told |= {"line": mutant.line, "change": mutant.change, "seconds": round(seconds, 3)}
                stream.write(json.dumps(told) + "\n")
                stream.flush()
                tries[mutant.name] = told
            for each in found:
                rule, read, last = rules[each.name], ones.get((file, each.change)), tries[each.name]
                column = tally.add(file, last.get("outcome"), rule=rule, read=read, seconds=last.get("seconds", 0))
                if column == "not read":
                    print(f"{file}:{each.line} {each.name}: {each.change}", flush=True)
    print(tally, flush=True)


if __name__ == "__main__":
    sys.exit(main())
