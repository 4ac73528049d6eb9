"""The zip that KAI Scheduler answers to ``/get-snapshot``: read at once, or piece by piece where it is large."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

from fairopt.discovery import library
from fairopt.errors import BadInput
from fairopt.importing.documents import DEEPEST, SMALL, Document, bounded, json_documents, opened_zip
from fairopt.problem.files.storage import AnyPath

#: What is yielded as one piece: an object in a list, or another part of the snapshot.
_PIECE = re.compile(r"rawObjects\.(\w+)\.item|config|schedulerParams|discovery")
#: Values in one object of a large snapshot; a node's or a pod's are some hundreds.
LONGEST = 1_000_000


def snapshot(path: AnyPath) -> Iterator[Document]:
    """Yield a snapshot, or its pieces, each as a snapshot that has nothing else.

    Errors: `BadInput` for what is no zip file, unpacks to too much, or has no snapshot.json.
    """
    with opened_zip(path) as (packed, entries):
        chosen = [entry for entry in entries if entry.filename.rpartition("/")[2] == "snapshot.json"] or entries
        if len(chosen) != 1:
            remedy = "Give the zip that /get-snapshot answers, with snapshot.json in it"
            raise BadInput(f"{len(chosen)} files and no snapshot.json", place="the zip file", remedy=remedy)
        with packed.open(chosen[0]) as stream:
            found = (
                _pieces(stream) if chosen[0].file_size > SMALL else json_documents(_text(stream, chosen[0].filename))
            )
            yield from (Document(f"{chosen[0].filename}, {place}", value) for place, value in found)


def _text(stream: IO[bytes], name: str) -> str:
    try:
        return stream.read(SMALL + 1).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"no UTF-8: {error}", place=name, remedy="The zip file is damaged") from error


def _pieces(stream: IO[bytes]) -> Iterator[Document]:
    ijson = library("ijson", "a snapshot of more than 50 MB", "import")
    builder: Any = None
    whole, number, count = "", 0, 0
    try:
        for prefix, event, value in ijson.parse(stream):
            if prefix.count(".") > DEEPEST:
                remedy = "Give what the scheduler answers, which has fewer"
                raise BadInput(f"more than {DEEPEST} levels", place=f"object {number}", remedy=remedy)
            if builder is None and event == "start_map" and _PIECE.fullmatch(prefix):
                builder, whole, number, count = ijson.ObjectBuilder(), prefix, number + 1, 0
            if builder is not None:
                builder.event(event, value)
                count += 1
                if count > LONGEST:
                    remedy = "Give what the scheduler answers, in which none is as large"
                    raise BadInput(
                        f"more than {LONGEST} values in one object", place=f"{whole} {number}", remedy=remedy
                    )
                if (prefix, event) == (whole, "end_map"):
                    yield Document(f"{whole} {number}", _alone(whole, bounded(builder.value)))
                    builder = None
    except (ijson.JSONError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(
            f"not JSON: {error}", place=f"after object {number}", remedy="Correct the syntax there"
        ) from error
    if not number:
        raise BadInput("no rawObjects", place="the top level", remedy="Give what /get-snapshot answers")


def _alone(prefix: str, value: Any) -> dict[str, Any]:
    """Return a snapshot that has only one piece."""
    found = re.match(r"rawObjects\.(\w+)", prefix)
    return {"rawObjects": {found[1]: [value]}} if found else {prefix: value, "rawObjects": {}}
