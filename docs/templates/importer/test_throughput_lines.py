from pathlib import Path

import pytest
from throughput_lines import read_lines

from fairopt.errors import BadInput
from fairopt.problem import Market
from fairopt.testing.data_suites import importer_suite

EXAMPLE = "gpus K80 4\ngpus V100 2\n\nspeed ann K80 1\nspeed ann V100 3.5\nspeed bob K80 1\n"


def test_it_conforms(tmp_path: Path) -> None:
    example = tmp_path / "example.txt"
    example.write_text(EXAMPLE)
    importer_suite(example).run([read_lines]).require_complete()
    assert read_lines(example) == Market.of([[1, "3.5"], [1, 0]], [4, 2], users=["ann", "bob"], types=["K80", "V100"])


def test_a_line_that_says_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "wrong.txt").write_text(EXAMPLE + "memory 5\n")
    with pytest.raises(BadInput, match=r"wrong\.txt.*line 7"):
        read_lines(tmp_path / "wrong.txt")
