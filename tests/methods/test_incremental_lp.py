"""A program that grows: what HiGHS does not take is an error at once."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.errors import NotSolved
from fairopt.methods.incremental_lp import BY_LARGEST, Blocks, IncrementalLP
from fairopt.program import INFINITY, Array


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
    place = np.zeros(1, dtype=np.int64)
    with pytest.raises(NotSolved, match="did not take what was added to some"):
        program.add_rows(np.zeros(1), np.ones(1), (place, place, np.array([np.inf])))


def test_a_third_attempt_scales_the_numbers_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    program, plain, ways = growing(), IncrementalLP._run, list[int]()

    def run(self: IncrementalLP) -> tuple[Array, Array, Array] | None:
        ways.append(self._highs.getOptionValue("simplex_scale_strategy")[1])
        return plain(self) if len(ways) == 3 else None

    monkeypatch.setattr(IncrementalLP, "_run", run)
    program.solve()
    assert program.x.tolist() == [1, 1]
    assert ways[0] == ways[1] != ways[2] == BY_LARGEST


def test_a_polished_vertex_has_no_error_left() -> None:
    random = np.random.default_rng(0)
    blocks = Blocks()
    columns = blocks.columns(random.uniform(1, 2, 12))
    table = random.uniform(0.1, 1, (8, 12))
    rows = blocks.rows(-INFINITY, np.ones(8), 8)
    blocks.entries(np.repeat(rows, 12), np.tile(columns, 8), table.ravel())
    program = IncrementalLP(blocks.program("some"), tolerance=1e-4)
    program.solve()
    far = program.x + 1e-3
    program.x = program.x + 1e-8
    program.polish()
    binds = program.dual > 0
    assert binds.any()
    assert np.abs(table[binds] @ program.x - 1).max() <= 4e-16
    assert np.abs(program.reduced[program.x > 0]).max() <= 1e-15
    program.x = far
    program.polish()
    assert program.x is far
