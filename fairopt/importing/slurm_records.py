"""What Slurm's commands print: tables with "|", blocks of KEY=VALUE, or --json, one record after another."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairopt.discovery import library
from fairopt.errors import BadInput
from fairopt.importing.documents import LARGEST, SMALL
from fairopt.importing.lines import lines_of
from fairopt.importing.slurm_site import PARTITION_NAMES, QOS_NAMES
from fairopt.importing.slurm_values import CONFIGURATION
from fairopt.problem.files.documents import parse_json
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath, naming, read_text
from fairopt.problem.numbers import shown

#: Objects inside each other in what --json prints; Slurm prints six.
_NESTED = 20
#: An account further down is a mistake: Slurm's own trees have a few levels.
DEEPEST = 100
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z_]*(?:[:/][A-Za-z_]+)*)=")


class SlurmCommand(enum.Enum):
    """What a record is, and the command that prints it."""

    SHARE = "sshare -alP"
    ASSOCIATION = "sacctmgr show assoc tree -P"
    QOS = "sacctmgr show qos -P"
    JOB = "sacct -aXP, squeue or scontrol show job"
    NODE = "scontrol show node"
    PARTITION = "scontrol show partition"
    CONFIG = "scontrol show config"
    RESERVATION = "scontrol show reservation"


#: A row or block of what a command printed: its fields as text, by name in small letters.
Record = tuple[SlurmCommand, ObjectPart]

#: The columns by which a table is recognised.
_TABLES: tuple[tuple[SlurmCommand, frozenset[str]], ...] = (
    (SlurmCommand.SHARE, frozenset({"account", "user", "rawshares"})),
    (SlurmCommand.ASSOCIATION, frozenset({"account", "user", "share"})),
    (SlurmCommand.QOS, frozenset({"name", "priority", "preempt"})),
    (SlurmCommand.JOB, frozenset({"jobid", "account"})),
)
_BLOCKS = {
    "NodeName": SlurmCommand.NODE,
    "JobId": SlurmCommand.JOB,
    "PartitionName": SlurmCommand.PARTITION,
    "ReservationName": SlurmCommand.RESERVATION,
}
#: How `squeue` calls what `sacct` calls otherwise.
_SAME = {
    "st": "state",
    "nodelist(reason)": "nodelist",
    "nodes": "nnodes",
    "submit_time": "submit",
    "start_time": "start",
}


def table_rows(lines: Iterator[tuple[str, str]], separator: str = "|") -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a table by column, in small letters; the first line that is not blank names the columns.

    Errors: `BadInput` for a row of another length, and for a column that stands twice.
    """
    names: Sequence[str] = ()
    for place, line in lines:
        if not line.strip():
            continue
        cells = line.split(separator)
        if not names:
            names = [_SAME.get(name, name) for name in (cell.strip().lower() for cell in cells)]
            if names and not names[-1]:  # -p ends each line with a separator, -P does not
                names = names[:-1]
            for at, name in enumerate(names):
                if name in names[:at]:
                    raise BadInput(f"the column {shown(name)} stands twice", place=place, remedy="Name each once")
            continue
        if len(cells) == len(names) + 1 and not cells[-1].strip():
            cells = cells[:-1]
        if len(cells) != len(names):
            remedy = f"Give one for each of the columns {', '.join(names)[:120]}"
            raise BadInput(f"{len(cells)} cells for {len(names)} columns", place=place, remedy=remedy)
        yield place, dict(zip(names, cells, strict=True))


def text_records(path: AnyPath) -> Iterator[Record]:
    """Yield the records of a text file; which command printed it is seen from the file itself.

    Errors: `BadInput` where no such command prints it. Source: Slurm, src/sshare/process.c, src/sacctmgr/common.c,
    src/sacct/sacct.c, src/api/node_info.c, src/api/job_info.c, src/api/partition_info.c.
    """
    with naming(path):
        first = next(((place, line) for place, line in lines_of(path) if line.strip()), None)
        if first is None:
            raise BadInput("the file is empty", place="line 1", remedy="Give what the command printed")
        place, line = first
        if line.startswith(CONFIGURATION):
            yield _options(lines_of(path))
            return
        if line.startswith("No reservations in the system"):
            return
        found = _FIELD.match(line)
        if found is not None and found[1] in _BLOCKS:
            yield from _blocks(lines_of(path))
            return
        header = {_SAME.get(name, name) for name in (cell.strip().lower() for cell in line.split("|"))}
        kind = next((kind for kind, columns in _TABLES if columns <= header), None)
        if kind is None:
            words = set(line.lower().split())
            if meant := next((kind for kind, columns in _TABLES if columns <= words), None):
                got = f'the columns have no "|" between them, as {meant.value} prints it'
                raise BadInput(got, place=place, remedy="Print it again with -P")
            commands = ", ".join(each.value for each in SlurmCommand)
            raise BadInput(f"got {shown(line[:200])}", place=place, remedy=f"Give what one of these prints: {commands}")
        rows = table_rows(lines_of(path))
        yield from (
            (kind, ObjectPart(*each))
            for each in (_tree(rows) if kind in (SlurmCommand.SHARE, SlurmCommand.ASSOCIATION) else rows)
        )


def _options(lines: Iterator[tuple[str, str]]) -> Record:
    """Return the options that `scontrol show config` prints, NAME = VALUE, as one record."""
    fields: dict[str, str] = {}
    for _, line in lines:
        name, equals, value = line.partition("=")
        if equals and name.strip():
            fields[name.strip().lower()] = value.strip()
    return SlurmCommand.CONFIG, ObjectPart("line 1", fields)


def _tree(rows: Iterator[tuple[str, dict[str, str]]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Add the column "parentname" that the indentation of accounts says."""
    above: list[tuple[int, str]] = []
    for place, row in rows:
        account = row["account"]
        depth, name = len(account) - len(account.lstrip(" ")), account.strip()
        while above and above[-1][0] >= depth:
            above.pop()
        if row["user"].strip():
            yield place, row
            continue
        if above:
            row.setdefault("parentname", above[-1][1])
        above.append((depth, name))
        if len(above) > DEEPEST:
            raise BadInput(f"more than {DEEPEST} accounts", place=place, remedy="Give a tree of fewer levels")
        yield place, row


def _blocks(lines: Iterator[tuple[str, str]]) -> Iterator[Record]:
    """Yield the blocks of KEY=VALUE, each from the line that names its node, job or partition."""
    record: Record | None = None
    fields: dict[str, str] = {}
    for place, line in lines:
        found = list(_FIELD.finditer(line))
        first, indented = found[0][1] if found else "", line[:1].isspace()
        if first == "NodeName" and indented and record is not None and record[0] is SlurmCommand.RESERVATION:
            continue  # its cores on a node
        if first in _BLOCKS and not (indented and first == "ReservationName"):  # which a node has, too
            if record is not None:
                yield record
            fields = {}
            record = _BLOCKS[first], ObjectPart(place, fields)
        elif not line.strip():
            continue
        if record is None:
            raise BadInput(f"got {shown(line)}", place=place, remedy=f"Begin with {', '.join(_BLOCKS)}")
        if not found and fields:  # a long Reason goes on in the next line
            last = next(reversed(fields))
            fields[last] = f"{fields[last]} {line.strip()}"
        for each, following in zip(found, [*found, None][1:], strict=True):
            value = line[each.end() : following.start() if following else len(line)].strip()
            name = each[1].lower()
            if name in fields and fields[name] != value and name in ("nodename", "jobid", "partitionname"):
                raise BadInput(f"{each[1]} stands twice", place=place, remedy="Begin a new line with it")
            fields[name] = value
    if record is not None:
        yield record


# -- the same records as --json prints them -------------------------------------------------------------------------
#: The lists of records in a document, by their path in it.
_LISTS = {
    "shares.shares": SlurmCommand.SHARE,
    "associations": SlurmCommand.ASSOCIATION,
    "qos": SlurmCommand.QOS,
    "nodes": SlurmCommand.NODE,
    "jobs": SlurmCommand.JOB,
    "partitions": SlurmCommand.PARTITION,
    "reservations": SlurmCommand.RESERVATION,
}
#: What a field is called in the text of the same command. Source: Slurm, src/plugins/data_parser/v0.0.46/parsers.c.
_NAMES: Mapping[SlurmCommand, Mapping[str, str]] = {
    SlurmCommand.SHARE: {
        "shares": "rawshares",
        "shares_normalized": "normshares",
        "usage": "rawusage",
        "usage_normalized": "normusage",
        "effective_usage": "effectvusage",
        "fairshare/factor": "fairshare",
        "fairshare/level": "levelfs",
        "tres/group_minutes": "grptresmins",
        "tres/run_seconds": "tresrunmins",
        "tres/usage": "grptresraw",
    },
    SlurmCommand.ASSOCIATION: {
        "shares_raw": "share",
        "parent_account": "parentname",
        "max/tres/total": "grptres",
        "max/tres/group/minutes": "grptresmins",
        "max/tres/group/active": "grptresrunmins",
        "max/tres/per/job": "maxtres",
        "max/tres/per/node": "maxtrespernode",
        "max/tres/minutes/per/job": "maxtresmins",
        "max/jobs/per/count": "grpjobs",
        "max/jobs/active": "maxjobs",
        "max/jobs/per/wall_clock": "maxwall",
        "default/qos": "def qos",
    },
    SlurmCommand.QOS: QOS_NAMES,
    SlurmCommand.NODE: {
        "name": "nodename",
        "tres": "cfgtres",
        "tres_used": "alloctres",
        "gres_used": "gresused",
        "cpus": "cputot",
    },
    SlurmCommand.PARTITION: PARTITION_NAMES,
    SlurmCommand.CONFIG: {},
    SlurmCommand.RESERVATION: {"name": "reservationname", "node_list": "nodes"},
    SlurmCommand.JOB: {
        "job_id": "jobid",
        "job_state": "state",
        "state_reason": "reason",
        "state/current": "state",
        "user_name": "user",
        "association/account": "account",
        "association/user": "user_of_association",
        "submit_time": "submit",
        "start_time": "start",
        "end_time": "end",
        "time/submission": "submit",
        "time/start": "start",
        "time/end": "end",
        "time/elapsed": "elapsedraw",
        "tres_req_str": "reqtres",
        "tres_alloc_str": "alloctres",
        "tres/requested": "reqtres",
        "tres/allocated": "alloctres",
        "tres_per_node": "trespernode",
        "node_count": "nnodes",
        "allocation_nodes": "nnodes",
        "nodes": "nodelist",
        "name": "jobname",
    },
}
#: What Slurm stores for Fairshare=parent. Source: Slurm, slurm/slurmdb.h, SLURMDB_FS_USE_PARENT.
_USE_PARENT = "2147483647"


def json_records(path: AnyPath) -> Iterator[Record]:
    """Yield the records of a file that a command wrote with --json; a large one is read piece by piece.

    Errors: `BadInput` that names the file and the place for what is no such file.
    """
    with naming(path):
        size = Path(path).stat().st_size
        if size > LARGEST:
            raise BadInput(f"{size} bytes, at most {LARGEST}", place="the file", remedy="Give a smaller one")
        found = False
        for kind, number, item in _items(path) if size <= SMALL else _streamed(path):
            found = True
            place = f"{kind.name.lower()} {number}"
            if not isinstance(item, Mapping):
                raise BadInput(f"got {shown(item)}", place=place, remedy="Give an object, as --json prints")
            yield kind, ObjectPart(place, _as_text(kind, _flat(item, "", place, 0)))
        if not found:
            remedy = f"Give what a command of Slurm prints with --json: {', '.join(_LISTS)}"
            raise BadInput("no list of records", place="the top level", remedy=remedy)


def _items(path: AnyPath) -> Iterator[tuple[SlurmCommand, int, Any]]:
    document: Any = parse_json(read_text(path))
    for name, kind in _LISTS.items():
        items: Any = document
        for step in name.split("."):
            items = items.get(step) if isinstance(items, Mapping) else None
        if items is None:
            continue
        if not isinstance(items, list):
            raise BadInput(f"got {shown(items)}", place=name, remedy="Give a list, as --json prints")
        for number, item in enumerate(items, start=1):
            yield kind, number, item


def _streamed(path: AnyPath) -> Iterator[tuple[SlurmCommand, int, Any]]:
    ijson = library("ijson", "a file of more than 50 MB", "import")
    with open(path, "rb") as stream:
        start = stream.read(2**16)  # each list asked for is another pass over the file
    near = [name for name in _LISTS if f'"{name.partition(".")[0]}"'.encode() in start]
    for name in near or _LISTS:
        kind = _LISTS[name]
        try:
            with open(path, "rb") as stream:
                for number, item in enumerate(ijson.items(stream, f"{name}.item"), start=1):
                    yield kind, number, item
        except (ijson.JSONError, UnicodeDecodeError, RecursionError) as error:
            remedy = "Correct the syntax there"
            raise BadInput(f"not JSON: {error}", place=f"the list {name}", remedy=remedy) from error


def _flat(value: Mapping[str, Any], before: str, place: str, depth: int) -> dict[str, str]:
    """Return the fields of an object by path, as text; a number with `set` and `infinite` beside it is that number."""
    if depth > _NESTED:
        raise BadInput(f"more than {_NESTED} levels", place=place, remedy="Give what Slurm prints, which has fewer")
    flat: dict[str, str] = {}
    for name, each in value.items():
        path = f"{before}{name}"
        if isinstance(each, Mapping) and {"set", "infinite", "number"} == each.keys():
            number = "inf" if each["infinite"] is True else each["number"] if each["set"] is True else None
            flat[path] = _worded(number, place, depth)
        elif isinstance(each, Mapping):
            flat |= _flat(each, f"{path}/", place, depth + 1)
        else:
            flat[path] = _worded(each, place, depth)
    return flat


def _as_text(kind: SlurmCommand, flat: Mapping[str, str]) -> dict[str, str]:
    """Return the fields under the names, and in the words, of the text of the same command."""
    names = _NAMES[kind]
    fields: dict[str, str] = {}
    for path, value in flat.items():
        name = names.get(path, path)
        fields[name] = value if value or name not in fields else fields[name]
    if kind is SlurmCommand.SHARE:
        person = "USER" in fields.get("type", "")
        own, above = fields.pop("name", ""), fields.pop("parent", "")
        fields |= {"account": above, "user": own} if person else {"account": own, "user": "", "parentname": above}
    for share in ("rawshares", "share"):
        if fields.get(share) in (_USE_PARENT, "inf"):
            fields[share] = "parent"
    return fields


def _worded(value: Any, place: str, depth: int) -> str:
    if depth > _NESTED:
        raise BadInput(f"more than {_NESTED} levels", place=place, remedy="Give what Slurm prints, which has fewer")
    if isinstance(value, list):
        words = [_resource(each) if isinstance(each, Mapping) else _worded(each, place, depth + 1) for each in value]
        return ",".join(filter(None, words))
    return "" if value is None else str(value)


def _resource(each: Mapping[str, Any]) -> str:
    """Return "gres/gpu:a100=4" for a trackable resource; other objects in lists are shown."""
    kind, name = each.get("type"), each.get("name")
    count = each.get("count", each.get("value"))
    if isinstance(count, Mapping):
        count = count.get("number") if count.get("set") is True else None
    if not isinstance(kind, str) and not isinstance(name, str):
        return shown(dict(each))
    return "" if count is None else "/".join(str(part) for part in (kind, name) if part) + f"={count}"
