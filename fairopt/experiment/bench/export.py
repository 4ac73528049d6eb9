"""Instances of a specification as files that any solver reads, each with what is proven of its optimum.

An MPS file holds decimals. So each number of the program is rounded to the digits that stand in the file, and what
is proven is proven of *that* program, in fractions. A folder has, for each instance, NAME.mps.gz, NAME.json (an
`Exported`) and certificates/NAME.json.gz; NAME begins the SHA-256 of the MPS text. index.json, index.csv and README.md
are about all of them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from hashlib import sha256
from importlib.metadata import version
from math import inf, nextafter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.highs import as_written, holds, write
from fairopt.backends.solution import Interval, Status
from fairopt.certificates import BOUND, Certificate
from fairopt.codec import decode, encode
from fairopt.errors import BadInput, NotCapable, NotSolved
from fairopt.evidence import certify_solution
from fairopt.experiment.bench import kinds
from fairopt.experiment.bench.kinds import Instance
from fairopt.experiment.bench.run import instances
from fairopt.experiment.bench.spec import Spec
from fairopt.numbers import in_full
from fairopt.program import Program
from fairopt.replacing import replacing

SCHEMA = 1
#: Seconds for proving one optimum.
TIME_LIMIT = 60.0
_NAME_DIGITS = 16
_COLUMNS = (
    *("file", "task", "family", "instance", "size", "seed", "sense", "rows", "variables", "nonzeros", "integers"),
    *("proven", "optimum", "lower", "upper", "certificate"),
)


@dataclass(frozen=True)
class Optimum:
    """What is proven of the optimum of the program in the file: it lies from ``lower`` to ``upper``.

    ``exact`` is the optimum where they meet, else None. These are fractions "p/q"; ``decimals`` are the nearest floats
    of lower and upper. ``certificate`` is the file, in the folder, that proves both; None where nothing is proven.
    """

    exact: str | None = None
    lower: str | None = None
    upper: str | None = None
    decimals: tuple[float, float] | None = None
    by: str = "nobody"
    certificate: str | None = None
    certificate_sha256: str | None = None


@dataclass(frozen=True)
class Exported:
    """The metadata of one file.

    ``sha256`` is the hash of the file, ``mps_sha256`` that of the text in it, whose first digits are the file's name.
    ``method``, what a method of fairopt proves, is asked for where the optimum is not proven; ``time_limit`` are the
    seconds that were allowed for that.
    """

    schema: int
    file: str
    sha256: str
    mps_sha256: str
    task: str
    instance: Instance
    sense: str
    rows: int
    variables: int
    nonzeros: int
    integers: int
    optimum: Optimum
    method: Interval | None
    time_limit: float
    fairopt: str


def export(
    spec: Spec, folder: Path, *, time_limit: float = TIME_LIMIT, say: Callable[[str], None] = lambda text: None
) -> Iterator[tuple[Instance, Exported | NotCapable]]:
    """Write the instances of a specification into a folder; yield each with its metadata, or why it is left out.

    What is there with the right hashes is kept, unless its optimum is not proven and more time is allowed now.

    Errors: `BadInput` for a folder that holds other things or cannot be written, and for a time limit that is not
    positive; `NotCapable` where the task has no program that a file could hold, and where nothing is written.
    """
    if not 0 < time_limit < inf:
        raise BadInput(f"got {time_limit:g}", place="time limit", remedy="Give seconds above 0")
    _check_folder(folder)
    task = kinds.task(spec.task)
    skipped: list[str] = []
    written = False
    try:
        for key in list(instances(spec)):
            problem = kinds.drawn(key).problem
            try:
                made = _Maker(task.program(problem), time_limit)
                found = _kept(folder, made.digest, time_limit)
                if found is None:
                    say(f"{key.name}: its optimum")
                    found = made.proved(spec.task, key, partial(task.interval, problem))
                    _add(folder, made, found)
            except NotCapable as error:
                skipped.append(f"{key.name}: {error}")
                yield key, error
                continue
            written = True
            yield key, found
    finally:
        if written:
            _write_index(folder)
    if not written:
        raise NotCapable(f"nothing is written: {skipped[0]}")


class _Maker:
    """The file of one program, which is ``program`` after rounding, and the proof of its optimum."""

    def __init__(self, given: Program, time_limit: float) -> None:
        self.given, self.time_limit = given, time_limit
        self.program = program = as_written(given)
        with TemporaryDirectory(prefix="fairopt-export-") as name:
            file = Path(name, "program.mps")
            floats = program.as_(float)
            write(floats, file)
            if not holds(file, floats):
                raise NotCapable("what HiGHS writes of its program is not what it reads: a coefficient is too small")
            self.text = file.read_bytes()
        self.digest = sha256(self.text).hexdigest()
        self.name = self.digest[:_NAME_DIGITS]
        self.certificate: bytes | None = None

    @cached_property
    def packed(self) -> bytes:
        """The MPS text, packed; no time in it, so that the same text gives the same bytes."""
        return gzip.compress(self.text, mtime=0)

    def proved(self, task: str, key: Instance, interval: Callable[[], Interval | None]) -> Exported:
        """Return the metadata, and make the certificate; ``interval`` is asked where the optimum is not proven."""
        optimum = self._optimum()
        program = self.program
        rows, variables = program.shape
        return Exported(
            schema=SCHEMA,
            file=f"{self.name}.mps.gz",
            sha256=sha256(self.packed).hexdigest(),
            mps_sha256=self.digest,
            task=task,
            instance=key,
            sense=program.sense.value,
            rows=rows,
            variables=variables,
            nonzeros=len(program.rows.value),
            integers=int(program.integer.sum()),
            optimum=optimum,
            method=self._by_method(interval()) if optimum.exact is None else None,
            time_limit=self.time_limit,
            fairopt=version("fairopt"),
        )

    def _by_method(self, found: Interval | None) -> Interval | None:
        """Return bounds on the optimum before rounding as bounds on that of the file, where only the cost was rounded.

        Then the objective of a point changes by |change of cost| times |variable|, added up, at most.
        """
        if found is None:
            return None
        given, program = self.given.as_(Fraction), self.program
        same = all(
            np.array_equal(old, new)
            for old, new in (
                (given.lower, program.lower),
                (given.upper, program.upper),
                (given.rows.value, program.rows.value),
                (given.rows.lower, program.rows.lower),
                (given.rows.upper, program.rows.upper),
            )
        )
        largest = np.maximum(abs(program.lower), abs(program.upper))
        change = abs(program.cost - given.cost)
        changed = change > 0
        if not same or np.isinf(largest[changed].astype(float)).any():
            return replace(found, of_file=False)
        moved = abs(Fraction(program.offset) - Fraction(given.offset)) + sum(change[changed] * largest[changed])
        lower, upper = Fraction(found.lower) - moved, Fraction(found.upper) + moved
        lowest, highest = nextafter(float(lower), -inf), nextafter(float(upper), inf)
        return Interval(lowest, highest, found.by, of_file=True)

    def _optimum(self) -> Optimum:
        found, by = self._bound()
        if found is None:
            return Optimum()
        lower, upper = sorted((Fraction(found.value), Fraction(found.bound)))
        self.certificate = gzip.compress(json.dumps(found.to_json()).encode(), mtime=0)
        return Optimum(
            exact=in_full(lower) if lower == upper else None,
            lower=in_full(lower),
            upper=in_full(upper),
            decimals=(float(lower), float(upper)),
            by=by,
            certificate=f"certificates/{self.name}.json.gz",
            certificate_sha256=sha256(self.certificate).hexdigest(),
        )

    def _bound(self) -> tuple[Certificate | None, str]:
        """Return what is proven exactly, None where nothing is, and by whom."""
        program = self.program
        if program.integer.any():
            found = Highs().solve(program, time_limit=self.time_limit, gap=0.0)
            by = "HiGHS's point and exact multipliers of the program without integrality"
            if found.x is not None:
                relaxed = replace(program, integer=np.zeros(len(program.cost), dtype=bool))
                dual = Exact().solve(relaxed, time_limit=self.time_limit).dual
                found = replace(found, x=np.where(program.integer, np.round(found.x), found.x), dual=dual)
        else:
            found = Exact().solve(program, time_limit=self.time_limit)
            by = f"fairopt's exact backend: {found.raw_status}"
        if found.status not in (Status.OPTIMAL, Status.LIMIT):
            raise NotCapable(f"its program has no optimum: {found.raw_status}")
        try:
            proof = certify_solution(program, found)
        except (NotCapable, NotSolved):  # no point, or no multipliers: what a method proves is asked instead
            return None, by
        assert proof.kind == BOUND
        return proof, by


def _check_folder(path: Path) -> None:
    """Refuse a folder of an export that is a file, or that holds other things."""
    if path.exists() and not path.is_dir():
        raise BadInput(f"{path} is a file", remedy="Name a folder")
    if path.is_dir() and any(path.iterdir()) and not (path / "index.json").is_file():
        remedy = "Name a new folder, an empty one, or one that an export has made"
        raise BadInput(f"{path} holds other things", remedy=remedy)


def _kept(folder: Path, digest: str, time_limit: float) -> Exported | None:
    """Return the metadata of what is there; None where a file is missing, changed, or worth another try."""
    found = _read(folder / f"{digest[:_NAME_DIGITS]}.json")
    if found is None or found.mps_sha256 != digest:
        return None
    files = [(found.file, found.sha256)]
    if found.optimum.certificate is not None:
        files.append((found.optimum.certificate, found.optimum.certificate_sha256 or ""))
    for name, wanted in files:
        file = folder / name
        if not file.is_file() or sha256(file.read_bytes()).hexdigest() != wanted:
            return None
    return found if found.optimum.exact is not None or found.time_limit >= time_limit else None


def _add(folder: Path, made: _Maker, found: Exported) -> None:
    """Write the files of an instance, the metadata last, since it vouches for the others."""
    if not (folder / "index.json").exists():
        _write_index(folder)
    _write(folder / found.file, made.packed)
    if found.optimum.certificate is not None and made.certificate is not None:
        _write(folder / found.optimum.certificate, made.certificate)
    _write(folder / f"{made.name}.json", _document(encode(found, finite=True)))


def _write_index(folder: Path) -> None:
    """Write what is about all instances of the folder, those of earlier exports too."""
    all_ = [found for path in folder.glob("[0-9a-f]" * _NAME_DIGITS + ".json") if (found := _read(path))]
    all_.sort(key=lambda each: (each.task, each.instance.family, each.instance.size, each.instance.name))
    listed = [encode(each, finite=True) for each in all_]
    _write(folder / "index.json", _document({"schema": SCHEMA, "instances": listed}))
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(_COLUMNS)
    rows.writerows(map(_row, all_))
    _write(folder / "index.csv", table.getvalue().encode())
    _write(folder / "README.md", README.encode())


def _read(path: Path) -> Exported | None:
    try:
        found: Exported = decode(Exported, json.loads(path.read_bytes()))
    except (OSError, ValueError):  # not there, or not whole: it is written anew
        return None
    return found if found.schema == SCHEMA else None


def _write(file: Path, data: bytes) -> None:
    """Write a file at once or not at all; its folder is made when there is none."""
    with replacing(file, folders=True) as whole:
        whole.write(data)


def _document(data: Any) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode()


def _row(of: Exported) -> list[object]:
    """Return the row of an instance in the table, in the order of the columns."""
    key, optimum = of.instance, of.optimum
    low, high = optimum.decimals or ("", "")
    sizes = of.sense, of.rows, of.variables, of.nonzeros, of.integers
    proven = ("yes", low) if optimum.exact is not None else ("no", "")
    found = *proven, low, high, optimum.certificate or ""
    return [of.file, of.task, key.family, key.name, key.size, key.seed, *sizes, *found]


README = """\
# Programs with proven optima

Each `NAME.mps.gz` is a linear or integer program in free MPS format, packed by gzip. NAME begins the SHA-256 of the
MPS text. `NAME.json` says where it is from and what is proven of its optimum. `index.json` and `index.csv` list all.

## Measure a solver

1. Solve the file. SCIP and HiGHS (1.15 or newer) read it as it is; for others, `gunzip` it first. Mind the objective's
   sense: it stands in the file (`OBJSENSE`), and as `sense` in the metadata.
2. Compare the objective with `optimum`: `exact` is the optimum as a fraction, `decimals` has the nearest floats.
   Where `exact` is null, the optimum lies from `lower` to `upper`.
3. State the relative difference beside your time. `fairopt bench` counts an answer as solved within 1e-6.

The usual mean of times is the shifted geometric one, exp(mean(log(t + s))) - s, with a shift of 1 s or 10 s.

## What is proven, and of what

A number of an MPS file is a decimal, here of at most 17 digits. The program is the one of these decimals, exactly as
they stand: they were rounded first, and the optimum was proven in fractions then. A solver that reads them as floats
solves a program whose numbers differ by 1e-16 of themselves.

`optimum.by` says who found the proof. It need not be believed: `certificates/NAME.json.gz` holds the program, a point
and multipliers, and anybody can check these by exact arithmetic, without a solver:

    fairopt check certificates
    python proofs/verify.py certificates/*.json.gz      # in fairopt's sources; the standard library is enough

Where `exact` is null, `method` has the bounds that a method of fairopt proves. They are often closer, and have no
certificate. `of_file` says whether they are bounds of the program in the file. If not, they are those of the program
before its numbers were rounded, and hold for the file but for the change that rounding makes.

`sha256` is the hash of the packed file, `mps_sha256` of the text in it, `instance.digest` of the problem that
the program was made from; `instance` says family, parameters and seed, which draw it again anywhere.
"""
