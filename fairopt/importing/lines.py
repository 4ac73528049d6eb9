"""The lines of a text file that nobody vouches for, one after another."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

from fairopt.errors import BadInput
from fairopt.importing.documents import LARGEST
from fairopt.problem.files.storage import AnyPath, naming, read_text

#: A longer line is no line of a table.
LONGEST = 1_000_000


def lines_of(path: AnyPath, *, most: int = LARGEST) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text file, packed where it ends in .gz, with their places; the whole file is never read.

    Errors: `BadInput` that names the file and the line, for what cannot be read, for more than ``most`` bytes, and for
    what is no text.
    """
    with naming(path):
        if not Path(path).is_file():
            read_text(path)  # says what is wrong
        size = Path(path).stat().st_size
        if size > most:
            raise BadInput(f"{size} bytes, at most {most}", place="the file", remedy="Give a smaller one")
        with gzip.open(path) if Path(path).suffix.lower() == ".gz" else open(path, "rb") as stream:
            read, coding = 0, "utf-8-sig"
            for number in count(1):
                place = f"line {number}"
                if not (line := _line(stream, place)):
                    return
                read += len(line)
                if read > most:
                    raise BadInput(f"more than {most} bytes", place="the file", remedy="Give a smaller one")
                if len(line) > LONGEST:
                    raise BadInput(f"more than {LONGEST} bytes", place=place, remedy="Give text in lines")
                try:
                    text = line.decode(coding)
                except UnicodeDecodeError as error:
                    raise BadInput("not UTF-8 text", place=place, remedy="Save the file as UTF-8 text") from error
                yield place, text.rstrip("\r\n")
                coding = "utf-8"


def _line(stream: BinaryIO | gzip.GzipFile, place: str) -> bytes:
    try:
        return stream.readline(LONGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"cannot read: {error}", place=place, remedy="Give the whole file, or unpack it") from error
