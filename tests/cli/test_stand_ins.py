"""What stands in for speedups that nobody measured is said beside the numbers that come of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ran_command import Ran


def test_whose_speedups_nobody_measured_is_said(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    market = tmp_path / "market.toml"
    text = 'schema = 1\ntypes = ["K80", "V100"]\ncapacity = [2, 3]\n[[user]]\nname = "a"\nspeedup = {}\n'
    for speedup, said in (('"unknown"', True), ('[1, "unknown"]', True), ("[1, 2]", False), ("[1, [1, 3]]", False)):
        market.write_text(text.format(speedup))
        for command in (("solve", market, "--policy", "max-min"), ("compare", market, "--policy", "max-min")):
            assert ("Not all speedups of a are known." in fairopt(*command).out) is said
