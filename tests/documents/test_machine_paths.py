"""Nothing in the repository names a folder of one machine: what a test needs is beside it, or asked for by name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Folders of a user's or of a build machine.
OWN = re.compile(rb"(?<![\w.~$}>-])/(?:work|root|home/\w+|Users/\w+)/[\w.-]+")
#: What Slurm prints, made up: home folders of made-up users, and the names of associations.
PRINTED = "fairopt/datasets/clusters/slurm/"


def test_no_tracked_file_names_a_folder_of_one_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("git lists the files of a checkout only")
    found = [
        f"{name}: {match[0].decode()}"
        for name in listed.stdout.split("\0")
        if name and not name.startswith(PRINTED) and (ROOT / name).is_file()
        for match in OWN.finditer((ROOT / name).read_bytes())
    ]
    assert not found


@pytest.mark.parametrize("folder", ["work", "root", "home/ada", "Users/ada"])
def test_such_a_folder_is_found_out(folder: str) -> None:
    assert OWN.search(f'Path("/{folder}/data")'.encode())
    assert not OWN.search(f"https://example.org/{folder}/data".encode())
