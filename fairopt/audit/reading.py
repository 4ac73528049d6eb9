"""Whatever can be audited, from files: a market, or a scheduler's own files by the importer that knows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairopt import discovery
from fairopt.errors import BadInput, FairoptError
from fairopt.importing.imported import Imported, files_of, read_with
from fairopt.importing.unplaced import UNPLACED
from fairopt.problem import Market, read_allocation, read_market
from fairopt.problem.files.documents import parse_json, parse_toml
from fairopt.problem.files.storage import AnyPath, naming, read_text
from fairopt.problem.labels import check_labels
from fairopt.problem.numbers import amount
from fairopt.program import cast, objects
from fairopt.report import Statement

#: Where files of a folder stand among what has no place.
IN_FOLDER = "the folder"
#: A file that is larger is read only once, so that somebody has to say what it is.
LARGE = 50 * 1024**2
#: What a file of fairopt's own has in its first characters, and how many these are.
_OURS, BEGINNING = re.compile(r'^\s*"?schema"?\s*[=:]', re.M), 10_000


def market_in(given: Any, importer: str, watch: Callable[[str], None]) -> Imported:
    """Return what files hold, as `audit` takes them; a market, or what was imported, as it is."""
    if isinstance(given, Market | Imported):
        return (given if isinstance(given, Imported) else Imported(given))._replace(importer=importer)
    watch("reading")
    return read_source(paths_of(given), importer)


def paths_of(given: Any) -> list[AnyPath]:
    """Return the files that are given; none where a market is."""
    if isinstance(given, Market | Imported):
        return []
    return [given] if isinstance(given, str) or hasattr(given, "__fspath__") else list(given)


def read_source(paths: Sequence[AnyPath], importer: str = "") -> Imported:
    """Return what files hold, and who read it; ``importer`` names who reads them, "" for whoever can.

    A folder stands for the files in it: those that the importer cannot read are left out, and named as `unplaced`. A
    market file with entitlements is read as one. Errors: `BadInput` where nobody can read the files, with what each
    says, where several can, and where what is read is no market.
    """
    if not paths:
        raise BadInput("no file", place="FILE", remedy="Give a market, or a scheduler's own files")
    paths, loose = _with_those_in_folders(paths)
    if importer:
        return _market_of(_read(discovery.load(discovery.IMPORTERS, importer), paths, loose), importer)
    for path in paths:
        with naming(path):
            size = Path(path).stat().st_size if Path(path).is_file() else 0
            if size > LARGE:
                raise BadInput(f"{size} bytes", place="the file", remedy="Say what it is: --from NAME")
    found: list[Imported] = []
    refused: list[tuple[str, FairoptError]] = []
    if len(paths) == 1 and Path(paths[0]).suffix.lower() in (".toml", ".json", ".csv", ".gz"):
        try:
            market = read_market(paths[0])
            return Imported(market)
        except BadInput as error:
            if _OURS.search(_beginning(paths[0])):
                raise
            refused.append(("a market", error))
    for name in discovery.names(discovery.IMPORTERS):
        try:
            reader = discovery.load(discovery.IMPORTERS, name)
            if len(files_of(reader) or paths) != len(paths):  # nobody gave it what it asks for
                continue
            found.append(_market_of(_read(reader, paths, loose), name))
        except FairoptError as error:
            refused.append((name, error))
    left_out = [sum(each.place == IN_FOLDER for each in read.unplaced) for read in found]
    found = [read for read, count in zip(found, left_out, strict=True) if count == min(left_out)]
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(each.importer for each in found)
        raise BadInput(f"{names} can read it", file=str(paths[0]), remedy="Say which: --from NAME")
    whys: dict[str, list[str]] = {}
    for name, refusal in refused:
        whys.setdefault(_short(refusal), []).append(name)
    if len(whys) == 1:
        raise refused[0][1]  # what stops all of them is not what the file holds
    whole = "; ".join(f"as {', '.join(names)}: {why}" for why, names in whys.items()) or "no importer is installed"
    remedy = "Name the importer, to see what it lacks: --from NAME"
    raise BadInput(f"no importer reads it: {whole}", file=str(paths[0]), remedy=remedy)


def files_in(given: AnyPath | Sequence[AnyPath]) -> list[AnyPath]:
    """Return the files that are given, one or several, with those in folders in the place of these."""
    paths = [given] if isinstance(given, str) or hasattr(given, "__fspath__") else list(given)
    return _with_those_in_folders(paths)[0]


def _with_those_in_folders(paths: Sequence[AnyPath]) -> tuple[list[AnyPath], frozenset[str]]:
    """Return the files, those in folders in their place, and the names of the latter."""
    files: list[AnyPath] = []
    loose: set[str] = set()
    for path in paths:
        folder = Path(path)
        if not folder.is_dir():
            files.append(path)
            continue
        inside = sorted(each for each in folder.iterdir() if each.is_file() and not each.name.startswith("."))
        if not inside:
            raise BadInput("there is no file in it", file=str(path), remedy="Give a folder with a scheduler's files")
        files += inside
        loose |= set(map(str, inside))
    return files, frozenset(loose)


def _read(reader: Callable[..., Imported], paths: Sequence[AnyPath], loose: Collection[str]) -> Imported:
    """Return what an importer reads of files, without those of ``loose`` ones that it refuses; these are named."""
    kept, left_out = list(paths), list[Statement]()
    while True:
        try:
            read = read_with(reader, kept)
        except BadInput as error:
            refused = str(error.file)
            if refused not in loose or len(kept) == 1 or refused not in map(str, kept):
                raise
            kept = [path for path in kept if str(path) != refused]
            left_out.append(UNPLACED.of(place=IN_FOLDER, value=Path(refused).name, why=f"left out: {_short(error)}"))
        else:
            return read._replace(unplaced=(*left_out, *read.unplaced))


def _beginning(path: AnyPath) -> str:
    with naming(path):
        return read_text(path)[:BEGINNING]


def _short(error: FairoptError) -> str:
    text = f"{error.place}: {error.problem}" if isinstance(error, BadInput) and error.place else str(error)
    return text if len(text) <= 150 else f"{text[:147]}..."


def _market_of(read: Imported, importer: str) -> Imported:
    if not isinstance(read.problem, Market):
        got = f"{importer} makes a {type(read.problem).__name__} of it"
        raise BadInput(got, place="--from", remedy="An audit is of a market: users, types and who is owed what")
    return read._replace(importer=importer)


def with_speedups(market: Market, path: AnyPath) -> Market:
    """Return the market with the speedups of a table of users and types, as an allocation is written."""
    table = cast(read_allocation(path, market), type(market.capacity[0]))
    with naming(path):
        if (table < 0).any() or not (table > 0).any(axis=1).all():
            raise BadInput("a user without a positive speedup", place="speedups", remedy="Give each user one")
    return replace(market, speedup=table, least=None, most=None)


def with_rates(market: Market, path: AnyPath) -> Market:
    """Return the market in which every user's speedups are the rates of a .toml or .json file: a number by type."""
    with naming(path):
        text = read_text(path)
        table = parse_json(text) if Path(path).suffix.lower() == ".json" else parse_toml(text)
        check_labels(list(table), market.types, "type", "rates")
        rates = objects(amount(table[name], f"rates, {name!r}", above=True) for name in market.types)
    row = cast(rates, type(market.capacity[0]))
    speedup = objects(list(row) * len(market.users)).reshape(market.shape).astype(market.speedup.dtype)
    return replace(market, speedup=speedup, least=None, most=None)
