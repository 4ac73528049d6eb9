"""Small files of each kind that commands read, and the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairopt.cli.app import COMMANDS, load

SMALL = """
schema = 1
name = "small"
title = "Small"
task = "max-min"
repeats = 1
time_limit = 20
memory_limit = "2 GB"
[[instances]]
family = "uniform"
parameters = { users = [3], types = [2] }
[[contenders]]
contender = "fairopt"
label = "fairopt"
"""

NOW = """
schema = 1
types = ["H100"]
capacity = [8]
user = [
  { name = "train", speedup = "unknown", guarantee = [6] },
  { name = "batch", speedup = "unknown", guarantee = [2] },
]
gang = [{ name = "a", user = "train", gpus = 4 }, { name = "b", user = "batch", gpus = 6, on = "H100" }]
"""


STUDY = """
schema = 1
name = "small"
seeds = 2
policies = [{ policy = "srtf" }, { policy = "tiresias" }]
traces = [{ file = "FOLDER/two.csv" }]
clusters = [{ hosts = { T = [1, 2] } }]
compare = [{ measure = "jct_mean", better = "less" }]
"""


def write_small_files(folder: Path) -> None:
    """Write an allocation, a trace, a benchmark, a cluster that is audited, a study, and a page with places."""
    (folder / "shares.json").write_text(json.dumps({"allocation": [[1, 0.25], [0, 0.75]]}))
    (folder / "two.csv").write_text("job_id,submit_s,duration_s,gpus\na,0,100,1\nb,0,400,2\n")
    (folder / "small.toml").write_text(SMALL)
    (folder / "now.toml").write_text(NOW)
    (folder / "speeds.csv").write_text("user,H100\ntrain,2\nbatch,1\n")
    (folder / "study.toml").write_text(STUDY.replace("FOLDER", str(folder)))
    (folder / "page.md").write_text("<!-- bench goals: begin -->\n<!-- bench goals: end -->\n")


def subcommands() -> dict[str, Any]:
    """Return every command by name; those under another one by both names."""
    found: dict[str, Any] = {}
    for name in COMMANDS:
        command = load(name)
        below = getattr(command, "commands", {})
        found |= {f"{name} {each}": inner for each, inner in below.items()} or {name: command}
    return found
