"""Files that are there whole or not at all: written beside their place, and put into it in one step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE
from typing import Self

from fairopt.errors import BadInput

#: What links in these folders lead to is open already, such as /dev/stdout.
OPEN_ALREADY = (Path("/dev"), Path("/proc"))


class Replacing:
    """A file that is written beside the one at ``path``; `keep` puts it in its place; a context manager.

    Until then only its owner may read it; then it has the permissions of the one that it replaces, or those of a new
    file. What is not kept is removed at the end of the block, and an existing file stays. A link stays, and what it
    leads to is replaced. Where ``path`` is no ordinary file, such as a pipe, all bytes go straight there.

    ``beside`` is where the bytes go meanwhile, and ``stream`` takes them without a buffer. Errors: `OSError`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with Replacing(f"{folder}/one.txt") as file:
    ...         file.write(b"1")
    ...         before = Path(folder, "one.txt").exists()
    ...         file.keep()
    ...     before, Path(folder, "one.txt").read_text()
    (False, '1')
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        given = Path(path)
        straight = given.is_symlink() and any(each in given.absolute().parents for each in OPEN_ALREADY)
        self._path = self.beside = given if straight else Path(os.path.realpath(given))
        self._kept = straight or (self._path.exists() and not self._path.is_file())
        if self._kept:
            self.stream = open(self._path, "wb", buffering=0)  # noqa: SIM115
            return
        mode = S_IMODE(self._path.stat().st_mode) if self._path.exists() else None
        # a name that nobody foresees, with the same ending, in the same folder; no link is followed
        self.beside = self._path.with_name(f".{token_hex(8)}-{self._path.name[-50:]}")
        asked = partial(os.open, mode=0o666 if mode is None else 0o600)
        self.stream = open(self.beside, "xb", buffering=0, opener=asked)  # noqa: SIM115
        self._mode = S_IMODE(self.beside.stat().st_mode) if mode is None else mode
        os.chmod(self.beside, 0o600)

    def __enter__(self) -> Self:
        return self

    def write(self, data: bytes) -> None:
        """Write all of ``data``."""
        left = memoryview(data)
        while left:
            left = left[self.stream.write(left) :]

    def keep(self) -> None:
        """Put the file in its place, with what is written so far on the disk; what is written later follows."""
        if self._kept:
            return
        os.fsync(self.stream.fileno())
        os.chmod(self.beside, self._mode)
        os.replace(self.beside, self._path)
        self._kept = True

    def __exit__(self, *ended: object) -> None:
        self.stream.close()
        if not self._kept:
            self.beside.unlink(missing_ok=True)


@contextmanager
def replacing(path: str | PathLike[str], *, folders: bool = False) -> Iterator[Replacing]:
    """Write a file in a block, at whose end it is there; where the block ends by an error, the one before stays.

    ``folders``: whether those that it lies in are made. Errors: `BadInput` where it cannot be written.
    """
    with writable(path):
        if folders:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Replacing(path) as file:
            yield file
            file.keep()


@contextmanager
def writable(path: str | PathLike[str], place: str = "") -> Iterator[None]:
    """Say of an `OSError` in a block that a file, given at ``place``, cannot be written, as `BadInput`."""
    try:
        yield
    except BadInput:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = error.strerror or error if isinstance(error, OSError) else error
        remedy = "Check that the folder exists and is yours to write, and the space on the disk"
        raise BadInput(f"cannot write: {reason}", file=str(path), place=place, remedy=remedy) from error
