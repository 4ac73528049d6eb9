"""What Slurm's commands print as text: tables with "|", and blocks of KEY=VALUE, one record after another."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fairopt.errors import BadInput
from fairopt.importing.documents import LARGEST
from fairopt.problem.files.storage import AnyPath, naming, read_text
from fairopt.problem.numbers import shown

#: A longer line is no line of Slurm's.
LONGEST = 1_000_000
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


class Printed(NamedTuple):
    """A row or block: what it is, where it stands, and its fields as text, by name in small letters."""

    kind: SlurmCommand
    place: str
    fields: Mapping[str, str]


#: The columns by which a table is recognised.
_TABLES: tuple[tuple[SlurmCommand, frozenset[str]], ...] = (
    (SlurmCommand.SHARE, frozenset({"account", "user", "rawshares"})),
    (SlurmCommand.ASSOCIATION, frozenset({"account", "user", "share"})),
    (SlurmCommand.QOS, frozenset({"name", "priority", "preempt"})),
    (SlurmCommand.JOB, frozenset({"jobid", "account"})),
)
_BLOCKS = {"NodeName": SlurmCommand.NODE, "JobId": SlurmCommand.JOB, "PartitionName": SlurmCommand.PARTITION}
#: How `squeue` calls what `sacct` calls otherwise.
_SAME = {
    "st": "state",
    "nodelist(reason)": "nodelist",
    "nodes": "nnodes",
    "submit_time": "submit",
    "start_time": "start",
}


def begins(path: AnyPath) -> str:
    """Return the first letter of a file that is no blank. Errors: `BadInput` for what cannot be read."""
    with naming(path):
        if not Path(path).is_file():
            read_text(path)  # says what is wrong
        with open(path, "rb") as stream:
            return stream.read(4096).decode("utf-8-sig", errors="replace").lstrip()[:1]


def lines_of(path: AnyPath, *, most: int = LARGEST) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text file with their places, without reading the whole file.

    Errors: `BadInput` that names the file and the line, for what cannot be read, for more than ``most`` bytes, and for
    what is no text.
    """
    with naming(path):
        if not Path(path).is_file():
            read_text(path)  # says what is wrong
        size = Path(path).stat().st_size
        if size > most:
            raise BadInput(f"{size} bytes, at most {most}", place="the file", remedy="Give a smaller one")
        with open(path, "rb") as stream:
            number = 0
            while line := stream.readline(LONGEST + 1):
                number += 1
                if len(line) > LONGEST:
                    raise BadInput(f"more than {LONGEST} bytes", place=f"line {number}", remedy="Give text in lines")
                try:
                    yield f"line {number}", line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    remedy = "Save the file as UTF-8 text"
                    raise BadInput("not UTF-8 text", place=f"line {number}", remedy=remedy) from error


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


def text_records(path: AnyPath) -> Iterator[Printed]:
    """Yield the records of a text file; which command printed it is seen from the file itself.

    Errors: `BadInput` where no such command prints it. Source: Slurm, src/sshare/process.c, src/sacctmgr/common.c,
    src/sacct/sacct.c, src/api/node_info.c, src/api/job_info.c, src/api/partition_info.c.
    """
    with naming(path):
        first = next(((place, line) for place, line in lines_of(path) if line.strip()), None)
        if first is None:
            raise BadInput("the file is empty", place="line 1", remedy="Give what the command printed")
        place, line = first
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
            Printed(kind, *each)
            for each in (_tree(rows) if kind in (SlurmCommand.SHARE, SlurmCommand.ASSOCIATION) else rows)
        )


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


def _blocks(lines: Iterator[tuple[str, str]]) -> Iterator[Printed]:
    """Yield the blocks of KEY=VALUE, each from the line that names its node, job or partition."""
    record: Printed | None = None
    fields: dict[str, str] = {}
    for place, line in lines:
        found = list(_FIELD.finditer(line))
        if found and found[0][1] in _BLOCKS:
            if record is not None:
                yield record
            fields = {}
            record = Printed(_BLOCKS[found[0][1]], place, fields)
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
