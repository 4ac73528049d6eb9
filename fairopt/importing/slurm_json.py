"""What Slurm's commands print with --json, as the same records as their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairopt.discovery import library
from fairopt.errors import BadInput
from fairopt.importing.documents import LARGEST, SMALL
from fairopt.importing.slurm_text import Printed, SlurmCommand
from fairopt.problem.files.documents import parse_json
from fairopt.problem.files.storage import AnyPath, naming, read_text
from fairopt.problem.numbers import shown

#: Objects inside each other; Slurm prints six.
DEEPEST = 20

#: The lists of records in a document, by their path in it.
_LISTS = {
    "shares.shares": SlurmCommand.SHARE,
    "associations": SlurmCommand.ASSOCIATION,
    "qos": SlurmCommand.QOS,
    "nodes": SlurmCommand.NODE,
    "jobs": SlurmCommand.JOB,
    "partitions": SlurmCommand.PARTITION,
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
        "default/qos": "def qos",
    },
    SlurmCommand.QOS: {"limits/max/tres/total": "grptres", "limits/grace_time": "gracetime", "preempt/list": "preempt"},
    SlurmCommand.NODE: {"name": "nodename", "tres": "cfgtres", "tres_used": "alloctres", "gres_used": "gresused"},
    SlurmCommand.PARTITION: {"name": "partitionname", "tres/billing_weights": "tresbillingweights"},
    SlurmCommand.JOB: {
        "job_id": "jobid",
        "job_state": "state",
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


def json_records(path: AnyPath) -> Iterator[Printed]:
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
            yield Printed(kind, place, _as_text(kind, _flat(item, "", place, 0)))
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
    if depth > DEEPEST:
        raise BadInput(f"more than {DEEPEST} levels", place=place, remedy="Give what Slurm prints, which has fewer")
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
    if depth > DEEPEST:
        raise BadInput(f"more than {DEEPEST} levels", place=place, remedy="Give what Slurm prints, which has fewer")
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
