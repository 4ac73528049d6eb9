"""Files of problems that tests write, and what is said of broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairopt.errors import BadInput


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refused(error: pytest.ExceptionInfo[BadInput], path: Path, *words: str) -> None:
    said = str(error.value)
    assert error.value.file == str(path)
    assert error.value.place, said
    assert error.value.remedy, said
    for word in words:
        assert word in said, said
