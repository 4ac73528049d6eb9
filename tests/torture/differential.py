"""Two verifiers side by side: the one in Python and the one that Coq proves say the same of the same file.

`python tests/torture/differential.py` asks both about 300,000 certificates that both know, 20,000 of each kind that is
rare or new among them: two of three as policies, properties and programs write them, spelled in many ways, the third
forged as in the other trials. Interrupted, the same command goes on. A difference is a fault of one of the two: the
file is kept in the journal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import islice
from pathlib import Path
from random import Random
from typing import IO, Any

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("certificates", "proofs", "problem")]
from certificate_kinds import BY_HAND
from certificate_samples import of_entitlements, of_market, of_programs, within_entitlements
from changed import changed_bytes, changed_values
from evidence import changed
from newer import GROUPS, MADE, drawn_rounds, group
from tampering import is_number

from fairopt.cli.verified import PROGRAM, VERDICTS
from fairopt.models.astraea.batch_private import BatchPrivate
from fairopt.models.astraea.fcfs import FirstComeFirstServed
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.policy import decide
from fairopt.problem.utilities import CompletionUtility, Power
from fairopt.proofs.claims.astraea.batches import random_batch
from fairopt.proofs.verifier import front
from fairopt.proofs.verifier.certificates import OF_ENTITLEMENTS
from fairopt.proofs.verifier.reading import one_line
from fairopt.schedules.document import document
from fairopt.testing.samples import entitled_markets, guaranteed_market, sample_markets

CERTIFICATES = 300_000
#: At least so many of each of these; of which there are few, so many times as many are made.
EACH = 20_000
#: The proved verifier is asked about so many files at once.
AHEAD = 200
TIMES = {
    "rates that are told": 26,
    "bounds on Nash welfare": 40,
    "gangs": 24,
    "frontiers": 20,
    "programs inside certificates": 7,
    "ranges over optima": 11,
    "misreports": 6,
    "entitlements": 2,
    **dict.fromkeys(MADE, 13),
}
#: Of each certificate as it is written, so many with other names, and so many that are forged: a third of all.
RENAMED, FORGED = 3, 2
#: Where only one kind is asked about, so many times as many, since some kinds are rare.
OF_ONE_KIND = 30
#: Names that are given to users and types instead of their own.
NAMES = [
    "A",
    "u1",
    "T1",
    "O'Hara",
    'the "A"',
    "back\\slash",
    "é",
    "名前",
    "😀",
    "x" * 200,
    "a: b",
    "1/2",
    "nobody",
    "[",
    "null",
]
#: What the kind of a certificate is called beside, where its market has entitlements.
ENTITLED = " with entitlements"
#: What a plan of schedules is called in the counts, and which policies make some.
SCHEDULES = "schedules"
PLANNERS = [
    FirstComeFirstServed(),
    FirstComeFirstServed(shared=True),
    BatchPrivate(),
    PostedPricePacking(theta=(16, 16)),
]
#: Under these keys stand names of users, groups, types, and of jobs, tenants and servers.
NAMED = ["name", "types", "user", "envied", "fixed", "at_least", "buyer", "seller", "fast", "slow", "groups", "in"]
NAMED += ["job", "tenant", "workers", "ps", "worker_type", "ps_type"]
MEMORY = next((each for each in ("/dev/shm",) if Path(each).is_dir()), None)
BEGIN, END = "<!-- counts: begin, written by make differential -->", "<!-- counts: end -->"


@dataclass
class Block:
    """What came of the certificates of one seed: how often each answer, by kind, and where the two differ."""

    seed: int
    counts: dict[str, int] = field(default_factory=dict)
    differences: list[dict[str, str]] = field(default_factory=list)


class Proved:
    """The verifier that Coq proves, as a process that is asked about file after file."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([PROGRAM, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, paths: Iterable[Path]) -> None:
        """Ask about files; `answer` has the answers, in order."""
        into = _open(self._process.stdin)
        into.write("".join(f"{path}\n" for path in paths).encode())
        into.flush()

    def report(self, path: Path) -> tuple[int, str]:
        """Return the exit status of a file, and what is said of it."""
        self.ask([path])
        return self.answer()

    def answer(self) -> tuple[int, str]:
        """Return the exit status of the next file that was asked about, and what is said of it."""
        said = _open(self._process.stdout).readline().decode("ascii").rstrip("\n").partition(": ")[2]
        return next(status for verdict, status in VERDICTS.items() if said.startswith(verdict)), said

    def __enter__(self) -> Proved:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # at the end of its input it ends


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def genuine(seed: int, only: str = "") -> Iterator[Any]:
    """Yield certificates as they are written: of one market, of some programs, and some that are worked out by hand."""
    draw = Random(f"genuine {seed}")
    if only in ("", SCHEDULES):
        yield from planned(seed, draw)
    alone = only in OF_ENTITLEMENTS or only.endswith(ENTITLED)
    for market in entitled_markets(20 if alone else 3, seed=10_000 + seed):
        yield from (each.certificate.to_json() for each in of_entitlements(market, draw))
    for at in range(10 if alone else 1):
        owed = guaranteed_market(10_000 + 10 * seed + at)
        yield from (each.certificate.to_json() for each in within_entitlements(owed, draw))
    if alone:
        return  # no other holds one of these
    users, types = draw.choice([(1, 2), (2, 3), (2, 4)]), draw.choice([(1, 2), (2, 3), (2, 4)])
    for market in sample_markets(1, seed=10_000 + seed, users=users, types=types, demands=draw.random() < 0.6):
        yield from (each.certificate.to_json() for each in of_market(market, draw))
    yield from (each.certificate.to_json() for each in of_programs(draw, 40))
    yield from drawn_rounds(draw, 2)
    yield from draw.sample(list(BY_HAND.values()), 8)


def planned(seed: int, draw: Random) -> Iterator[Any]:
    """Yield what policies of schedules decide on a batch, each also without what they tell of the decision."""
    jobs, types = draw.choice([2, 4, 6]), (1 + seed % 2, 1 + seed // 2 % 2)
    drawn = (random_batch(100 * seed + at, jobs=jobs, types=types) for at in range(100))
    batch = next(each for each in drawn if all(_rational(utility) for utility in each.jobs.utility))
    for policy in draw.sample(PLANNERS, 2):
        data = document(decide(policy, batch))
        yield data
        yield data | {"bases": [], "admissions": [], "payments": []}


def _rational(utility: CompletionUtility) -> bool:
    return not isinstance(utility, Power) or utility.exponent == int(utility.exponent)


def respelled(data: Any, draw: Random) -> Any:
    """Return the same with some numbers written otherwise, and keys in another order."""
    if isinstance(data, dict):
        pairs = list(data.items())
        draw.shuffle(pairs)
        fixed = ("schema", "of_row", "split", "positions", "shares")
        return {key: value if key in fixed else respelled(value, draw) for key, value in pairs}
    if isinstance(data, list):
        # the words and positions of a multiplier, a term or a pair stay as they are
        begins = bool(data) and not isinstance(data[0], list | dict) and not is_number(data[0])
        return data if begins else [respelled(each, draw) for each in data]
    if isinstance(data, str) and is_number(data) and draw.random() < 0.2:
        number, by = Fraction(data), draw.choice([1, 2, 10, 10**20])
        zeros = draw.choice(["", "", "0", "000"])
        return f"{'-' if number < 0 else ''}{zeros}{abs(number.numerator) * by}/{zeros}{number.denominator * by}"
    return data


def spelled(data: Any, draw: Random) -> bytes:
    """Return a certificate as the bytes of a file, with blanks here or there."""
    layout = draw.choice([{"separators": (",", ":")}, {"indent": 1}, {}, {"ensure_ascii": False}])
    return json.dumps(data, **layout).encode("utf-8", "surrogatepass")


def forged(data: Any, others: list[Any], draw: Random) -> bytes:
    """Return a certificate that is changed: in places, with values out of place, with another's parts, in bytes."""
    how = draw.random()
    if how < 0.6:
        return spelled(changed(data, draw), draw)
    if how < 0.8:
        word = data.get("certificate")
        alike = draw.choice([each for each in others if each.get("certificate") == word])
        shared = [key for key in data if key in alike and key not in ("schema", "certificate")]
        return spelled(data | {key: alike[key] for key in draw.sample(shared, draw.randint(0, len(shared)))}, draw)
    return spelled(changed_values(data, draw), draw) if how < 0.92 else changed_bytes(spelled(data, draw), draw)


def renamed(data: Any, draw: Random) -> Any:
    """Return a certificate with other names of users and types, the same wherever one stands."""
    names = {name for word in ("name", "types", "groups") for name in _under(data, word)}
    others = draw.sample([each for each in NAMES if each not in names], min(len(names), 8))
    new = dict(zip(sorted(names), others, strict=False))

    def told(value: Any, key: object = None) -> Any:
        if isinstance(value, dict):
            return {key: told(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [told(each, key) for each in value]
        return new.get(value, value) if isinstance(value, str) and key in NAMED else value

    return told(data)


def _under(data: Any, word: str) -> Iterator[str]:
    """Yield the strings that stand under a key, however deep."""
    if isinstance(data, dict):
        for key, value in data.items():
            listed = value if isinstance(value, list) else [value]
            yield from (each for each in listed if key == word and isinstance(each, str))
            yield from _under(value, word)
    elif isinstance(data, list):
        for each in data:
            yield from _under(each, word)


def kind_of(data: Any) -> str:
    """Return what a certificate is called in the counts: the first of `TIMES` that it is among, or its kind."""
    if "certificate" not in data:
        return SCHEDULES
    return next((name for name in TIMES if name in GROUPS and GROUPS[name](data)), str(data["certificate"]))


def files(seed: int, only: str = "", enough: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a seed, or those of one kind: of each what it is called in the counts, and its bytes.

    ``enough`` names kinds of which no more than usual are made.
    """
    draw = Random(f"files {seed}")
    whole = [json.loads(json.dumps(each)) for each in (*genuine(seed, only), *(BY_HAND.values() if only else ()))]
    whole = [each for each in whole if only in ("", each.get("certificate"), each.get("property"), kind_of(each))]
    named = [(kind_of(each), each) for each in whole]
    for name in MADE:
        if only in ("", name):
            named += [(name, each) for each in draw.sample(group(name), 4)]
    others = [each for _, each in named]
    for kind, data in named:
        times = OF_ONE_KIND if only else 1 if kind in enough else TIMES.get(kind, 1)
        yield f"{kind}, as written", spelled(respelled(data, draw) if draw.random() < 0.5 else data, draw)
        for _ in range((1 + RENAMED) * times - 1):
            yield f"{kind}, renamed", spelled(respelled(renamed(data, draw), draw), draw)
        for _ in range(FORGED * times):
            yield f"{kind}, forged", forged(data, others, draw)


def differ(asked: tuple[int, str], proved: tuple[int, str]) -> bool:
    """Return whether two answers are not the same: the status, and of what is accepted the statement too."""
    if proved[0] == VERDICTS["NOT COVERED: "]:
        return False
    return asked != proved if front.FINE in (asked[0], proved[0]) else asked[0] != proved[0]


def play(seed: int, proved: Proved, path: Path, only: str = "", enough: Collection[str] = ()) -> Block:
    """Ask both verifiers about the files of a seed, or of one kind."""
    counts, block = Counter[str](), Block(seed)
    for name, content, here, there in _answers(files(seed, only, enough), proved, path):
        verdict = next(word for word, code in VERDICTS.items() if code == there[0]).rstrip(": ")
        counts[f"{name}: {'difference' if differ(here, there) else verdict}"] += 1
        if differ(here, there):
            shown = content.decode("utf-8", "replace")[:20_000]
            block.differences.append({"python": here[1], "coq": there[1], "file": shown})
    block.counts = dict(counts)
    return block


def _answers(
    made: Iterator[tuple[str, bytes]], proved: Proved, path: Path
) -> Iterator[tuple[str, bytes, tuple[int, str], tuple[int, str]]]:
    """Yield each file with what the two say of it; the proved one is asked ahead: neither waits for the other."""
    while some := list(islice(made, AHEAD)):
        paths = [path.with_stem(f"{path.stem}{at}") for at in range(len(some))]
        for each, (_, content) in zip(paths, some, strict=True):
            each.write_bytes(content)
        proved.ask(paths)
        for each, (name, content) in zip(paths, some, strict=True):
            status, said = front.report(each)
            yield name, content, (status, one_line(said[0])), proved.answer()


def read(journal: Path) -> list[Block]:
    """Return the blocks that a journal has; a last line that breaks off is played again."""
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True) if journal.exists() else []
    return [Block(**json.loads(line)) for line in lines if line.endswith("\n")]


def known(blocks: Iterable[Block], kind: str = "") -> int:
    """Return how many certificates there were that both know, or how many of one kind."""
    counts = summed(blocks).items()
    return sum(count for name, count in counts if name.startswith(kind) and not name.endswith(": NOT COVERED"))


def plenty(blocks: list[Block], each: int) -> list[str]:
    """Return the names in `TIMES` of which there were so many."""
    return [name for name in TIMES if known(blocks, f"{name}, ") >= each]


def summed(blocks: Iterable[Block]) -> Counter[str]:
    """Return how often each answer was given."""
    return sum((Counter(block.counts) for block in blocks), start=Counter[str]())


def rows(blocks: list[Block]) -> Iterator[str]:
    """Yield the counts as a table in Markdown, a row a kind."""
    counts, verdicts = summed(blocks), ["accepted", "REJECTED", "cannot be read", "NOT COVERED", "difference"]
    yield "| certificates | number | forged | accepted | rejected | cannot be read | not covered | different |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    told = dict[str, list[int]]()
    for name, count in counts.items():
        made, _, verdict = name.rpartition(": ")
        kind, _, how = made.rpartition(", ")
        row = told.setdefault(kind, [0] * (2 + len(verdicts)))
        for at in (0, *([1] if how == "forged" else []), 2 + verdicts.index(verdict)):
            row[at] += count
    whole = [sum(column) for column in zip(*told.values(), strict=True)]
    for kind, row in [*sorted(told.items()), ("**all**", whole)]:
        yield f"| {kind} | {' | '.join(f'{count:,}' for count in row)} |"


def put_into(text: str, blocks: list[Block]) -> str:
    """Return a page with the table of the counts."""
    before, _, rest = text.partition(BEGIN)
    return "\n".join([before + BEGIN, "", *rows(blocks), "", END + rest.partition(END)[2]])


def main() -> int:
    """Ask what is still to be asked, print differences and counts; exit status 1 where there is a difference."""
    parser = ArgumentParser(prog="differential", description=__doc__)
    parser.add_argument("--journal", type=Path, default=Path("build/differential.jsonl"), help="what is done already")
    parser.add_argument("--certificates", type=int, default=CERTIFICATES, help="so many that both know")
    parser.add_argument("--each", type=int, default=EACH, help="and so many of each kind that is rare or new")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="stop after so many minutes")
    parser.add_argument("--only", metavar="KIND", default="", help="of this kind or property; not beside --write")
    parser.add_argument("--write", type=Path, help="put the counts into this page")
    given = parser.parse_args()
    if given.only and given.write:
        parser.error("--only goes into no page: the table is of all kinds")
    if not PROGRAM.exists():
        parser.error("the verifier that Coq proves is not built: make verified")
    done, until = read(given.journal), time.monotonic() + 60 * given.minutes
    seed, asked = len(done), known(done)
    given.journal.parent.mkdir(parents=True, exist_ok=True)
    with (
        given.journal.open("w", encoding="utf-8") as stream,
        tempfile.TemporaryDirectory(dir=MEMORY) as folder,
        Proved() as proved,
    ):
        for block in done:  # without a line that broke off
            stream.write(json.dumps(asdict(block)) + "\n")
        while time.monotonic() < until:
            enough = plenty(done, given.each)
            if asked >= given.certificates and (given.only or len(enough) == len(TIMES)):
                break
            block = play(seed, proved, Path(folder) / "file.json", given.only, enough)
            done.append(block)
            stream.write(json.dumps(asdict(block)) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
            seed, asked = seed + 1, asked + known([block])
            for each in block.differences:
                print(f"DIFFERENCE, seed {block.seed}: {json.dumps(each)[:2000]}", flush=True)
            if seed % 20 == 0:
                print(f"differential: {asked:,} certificates", file=sys.stderr, flush=True)
    print("\n".join(rows(done)))
    if given.write:
        given.write.write_text(put_into(given.write.read_text(encoding="utf-8"), done), encoding="utf-8")
    return int(any(block.differences for block in done))


if __name__ == "__main__":
    sys.exit(main())
