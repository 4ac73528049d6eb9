"""Specifications of the tests name contenders as bench_fakes:NAME, here and in the processes that are started."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = str(Path(__file__).parent)


@pytest.fixture(scope="module", autouse=True)
def _fakes_can_be_imported() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        patch.setenv("PYTHONPATH", FOLDER, prepend=os.pathsep)
        yield
    sys.modules.pop("bench_fakes", None)
