"""A program that grows: what HiGHS does not take is an error at once."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.errors import NotSolved
from fairopt.methods.incremental_lp import Blocks, IncrementalLP, Sparse
from fairopt.program import INFINITY


def growing() -> IncrementalLP:
    """Return a program with two columns and a row."""
    blocks = Blocks()
    columns = blocks.columns(np.ones(2), np.zeros(2), np.ones(2))
    row = blocks.rows(-INFINITY, np.array([1.0]), 1)
    blocks.entries(row, columns[:1], np.ones(1))
    return IncrementalLP(blocks.program("some"))


def test_a_row_that_is_no_numbers_is_refused() -> None:
    program = growing()
    program.solve()
    place = np.zeros(1, dtype=np.int32)
    with pytest.raises(NotSolved, match="did not take what was added to some"):
        program.add_rows(np.zeros(1), np.ones(1), Sparse(place, place, np.array([np.inf])))
