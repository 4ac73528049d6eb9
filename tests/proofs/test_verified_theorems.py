"""The checkers that are proved: Coq compiles them, and their theorems rest on no axiom."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "proofs" / "theorems" / "check.sh"


@pytest.mark.slow  # `make verified` says the same, and .ci/run asks it
@pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")
def test_what_is_accepted_is_so_without_axioms() -> None:
    done = subprocess.run([CHECK, "../verified", "Verified"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert ["check_certificate_sound", "Check.v", "proved, no axioms"] in lines
    assert ["verify_sound", "Verify.v", "proved, no axioms"] in lines  # from the bytes of a file
    assert not [line for line in lines if "NOT" in line]


def test_page_quotes_what_statements_mean() -> None:
    root = CHECK.parents[2]
    page = (root / "docs" / "concepts" / "proved-meaning.md").read_text(encoding="utf-8")
    meant = "".join(
        (root / "proofs" / "verified" / name).read_text(encoding="utf-8")
        for name in ("Meaning.v", "Owed.v", "Gangs.v", "Plans.v", "SecondPrice.v")
    )
    blocks, meant = (
        re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)
        for text in ("\n".join(re.findall(r"```coq\n(.*?)```", page, re.DOTALL)), meant)
    )
    quoted = [line for line in blocks.splitlines() if line.strip()]
    assert len(quoted) >= 25
    assert [line for line in quoted if line not in meant.splitlines()] == []
