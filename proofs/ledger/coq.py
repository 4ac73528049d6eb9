"""What a file of theorems states, and what Coq says that each theorem rests on; standard library only.

``python3 coq.py FOLDER [LIBRARY]`` asks Coq about every ``Theorem`` of a folder that has been compiled, prints a line
for each, and exits with 1 unless all are proved and rest on nothing. The text is read as well, because Coq does not say
where a thing is assumed: comments and strings are left out, and each statement is called by its full name, with the
modules that it stands in, so that a theorem in a module is never taken for its namesake outside.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

LIBRARY = "FairSharing"
#: What Coq prints of a theorem that rests on no axiom and on no check that was turned off.
CLOSED = "Closed under the global context"
#: Asking Coq about one file takes some seconds, most of them to load mathcomp.
SECONDS = 300

#: Comments nest; a string in a comment may hold their marks, and ``""`` is a quotation mark in a string.
TOKEN = re.compile(r'\(\*|\*\)|"(?:[^"]|"")*"|[^(*"]+|.', re.DOTALL)
SENTENCE = re.compile(r"\.(?=\s|$)")
#: What may stand before the first word of a sentence: bullets, braces, attributes, and words that change how it counts.
BEFORE = re.compile(r"(?:[-+*{}\s]|#\[[^\]]*\]|(?:Local|Global|Polymorphic|Monomorphic|Program|Time|Timeout\s+\d+)\b)*")
ASSUMES = re.compile(
    r"\b(?:Axioms?|Conjectures?|Parameters?|Admitted|Admit|admit|give_up|bypass_check|Declare\s+M(?:odule|L)|Load"
    r"|(?:Guard|Positivity|Universe)\s+Checking)\b"
)
#: These are assumed for good where no section is open that they end with.
OF_A_SECTION = re.compile(r"(?:Variables?|Hypothes[ie]s|Context)\b")
STATED = re.compile(r"(Theorem|Lemma)\s+([\w']+)")
OPENS = re.compile(r"(Section|Module\s+Type|Module)\s+(?:Import\s+|Export\s+)?([\w']+)")
NEEDED = re.compile(rf"(?:From\s+{LIBRARY}\s+)?Require\b(?:\s+(?:Import|Export)\b)?([\s\w.']+)")


class CoqFails(Exception):
    """Coq rejects a file, does not answer, or is not there; the message is what it said."""


@dataclass(frozen=True)
class Statement:
    """A theorem or lemma: its kind, its name with the modules that it stands in ("Inner.easy"), and its line."""

    kind: str
    name: str
    line: int


@dataclass(frozen=True)
class Source:
    """What one file says: its statements, what it assumes, each as "line 3: Axiom", and the files that it needs."""

    statements: tuple[Statement, ...]
    assumes: tuple[str, ...]
    needs: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Source:
        """Read a file of theorems."""
        said = code(text)
        assumes = [(_line(said, word.start()), " ".join(word[0].split())) for word in ASSUMES.finditer(said)]
        statements: list[Statement] = []
        needs: list[str] = []
        blocks: list[tuple[str, str]] = []  # the kind and the name of each block that is open
        for line, sentence in _sentences(said):
            outside = not any(kind == "Section" for kind, _ in blocks)
            if outside and (word := OF_A_SECTION.match(sentence)):
                assumes.append((line, f"{word[0]} outside a section"))
            if stated := STATED.match(sentence):
                inside = [name for kind, name in blocks if kind != "Section"]
                statements.append(Statement(stated[1], ".".join([*inside, stated[2]]), line))
            elif (opened := OPENS.match(sentence)) and ":=" not in sentence:
                blocks.append((opened[1], opened[2]))
            elif blocks and re.match(rf"End\s+{blocks[-1][1]}$", sentence):
                blocks.pop()
            elif found := NEEDED.match(sentence):
                mine = sentence.startswith("From")
                needs += [each.split(".")[-1] for each in found[1].split() if mine or each.startswith(f"{LIBRARY}.")]
        return cls(tuple(statements), tuple(f"line {line}: {what}" for line, what in sorted(assumes)), tuple(needs))


def code(text: str) -> str:
    """Return a text without its comments and strings, line by line where it was."""
    kept, depth = [], 0
    for token in TOKEN.findall(text):
        depth += (token == "(*") - (token == "*)" and depth > 0)
        hidden = depth > 0 or token == "*)" or (token[0] == '"' and len(token) > 1)
        kept.append("\n" * token.count("\n") + " " if hidden else token)
    return "".join(kept)


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence from its first word on, with the line on which that stands."""
    at = 0
    for sentence in SENTENCE.split(text):
        found = BEFORE.match(sentence)
        begins = found.end() if found else 0
        yield _line(text, at + begins), sentence[begins:].rstrip()
        at += len(sentence) + 1


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def rests_on(folder: Path, names: Mapping[str, Sequence[str]], library: str = LIBRARY) -> dict[tuple[str, str], str]:
    """Return what Coq says that each statement rests on, by file and full name: `CLOSED`, or what it assumes.

    ``folder`` holds the compiled files. Errors: `CoqFails` where Coq does not answer about every one.
    """
    asked = [(file, name) for file, own in names.items() for name in own]
    project = folder / "_CoqProject"
    said_there = project.read_text(encoding="utf-8") if project.exists() else ""
    others = [(path, name) for path, name in re.findall(r"^-R (\S+) (\S+)$", said_there, re.MULTILINE) if path != "."]
    loads = [each for path, name in [(".", library), *others] for each in ("-R", str(folder / path), name)]
    requires = "".join(f"From {library} Require {file}.\n" for file in names)

    def said(questions: str) -> str:
        with NamedTemporaryFile("w", suffix=".v") as script:
            script.write(requires + questions)
            script.flush()
            return run(["coqtop", "-q", "-batch", *loads, "-w", "none", "-l", script.name])

    if len(asked) > 1 and _together(asked, library, said) == CLOSED:
        return dict.fromkeys(asked, CLOSED)
    each_alone = (
        f'Goal True. idtac "about {file} {name}". Abort.\nPrint Assumptions {library}.{file}.{name}.\n'
        for file, name in asked
    )
    parts = re.split(r"^about (\S+) (\S+)$", said("".join(each_alone)), flags=re.MULTILINE)[1:]
    answers = {(file, name): answer.strip() for file, name, answer in zip(*[iter(parts)] * 3, strict=True)}
    if answers.keys() != set(asked):
        raise CoqFails(f"Coq does not say what {sorted(set(asked) - answers.keys())} rest on")
    return answers


def _together(asked: Sequence[tuple[str, str]], library: str, said: Callable[[str], str]) -> str:
    """Return what all statements together rest on: of each alone, Coq walks through the libraries again."""
    terms = "".join(f"  let _ := @{library}.{file}.{name} in\n" for file, name in asked)
    try:
        return said(f"Definition all_together : True :=\n{terms}  I.\nPrint Assumptions all_together.\n").strip()
    except CoqFails as fails:  # about each alone, Coq says which one it is
        return str(fails)


def run(command: Sequence[str], folder: Path | None = None) -> str:
    """Return what a command of Coq prints. Errors: `CoqFails` where it fails, is not there, or takes too long."""
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CoqFails(str(error)) from error
    if ran.returncode:
        raise CoqFails((ran.stderr or ran.stdout).strip()[-500:])
    return ran.stdout


def main(folder: Path, library: str = LIBRARY) -> int:
    """Ask Coq about every ``Theorem`` of a folder; print a line for each; return 0 if all are proved, else 1."""
    sources = {path.stem: Source.read(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.v"))}
    assumed = [f"{file}.v, {what}" for file, source in sources.items() for what in source.assumes]
    theorems = {file: [each.name for each in own.statements if each.kind == "Theorem"] for file, own in sources.items()}
    answers = rests_on(folder, theorems, library)
    for (file, name), answer in answers.items():
        verdict = "proved, no axioms" if answer == CLOSED else f"NOT PROVED: {' '.join(answer.split())}"
        print(f"{name:<52} {file + '.v':<20} {verdict}")
    proved = sum(answer == CLOSED for answer in answers.values())
    print(f"{proved} of {len(answers)} theorems proved without axioms", *assumed, sep="\nassumed in ")
    return 0 if answers and proved == len(answers) and not assumed else 1


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
    except CoqFails as error:
        sys.exit(str(error))
