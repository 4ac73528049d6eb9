"""`fairopt check --verified`: files go to the verifier that Coq proves, where it is built (`make verified`)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairopt import proofs
from fairopt.errors import BadInput, NotInstalled, NotSolved

PROGRAM = Path(proofs.__file__).parent / "verified" / "build" / "verify"
#: What the lines of the program begin with, and its exit status of such a file.
VERDICTS = {"accepted: ": 0, "REJECTED: ": 1, "cannot be read: ": 2, "NOT COVERED: ": 4}
#: So many files are handed over at once; a command line has room for them.
AT_ONCE = 200


def decide(files: Sequence[Path], program: Path = PROGRAM) -> Iterator[tuple[int, list[str]]]:
    """Yield an exit status for each file, and the line that is said of it, without its name: as `front.report` does.

    Errors: `NotInstalled` where the program is not built, `NotSolved` where it ends before it has answered.
    """
    if not program.exists():
        raise NotInstalled("the verifier that Coq proves is not built: run `make verified` in a checkout of fairopt")
    for begin in range(0, len(files), AT_ONCE):
        some = files[begin : begin + AT_ONCE]
        asked = subprocess.run([program, "--", *some], capture_output=True, check=False)
        lines = asked.stdout.decode("ascii").splitlines()
        if len(lines) != len(some):
            raise NotSolved(
                f"{program} ended with {asked.returncode} at {some[len(lines)]}: {asked.stderr.decode()[:200]}"
            )
        for line in lines:
            said = line.partition(": ")[2]  # no name of a file has a colon before a space
            yield next(status for verdict, status in VERDICTS.items() if said.startswith(verdict)), [said]


def worst(statuses: Sequence[int]) -> int:
    """Return the exit status of many files: 2 before 1, and that before 4, since what is not covered may be right.

    >>> worst([0, 4, 1]), worst([4, 0]), worst([])
    (1, 4, 0)
    """
    return next((each for each in (2, 1, 4) if each in statuses), 0)


def refuse_tolerance(tolerance: object) -> None:
    """Refuse a tolerance: it is for runs, and for prices of schedules, which the program does not know."""
    if tolerance is not None:
        remedy = "Leave one of them out: what it decides has no tolerance: no runs, and no prices of schedules"
        raise BadInput("not beside --verified", place="--tolerance", remedy=remedy)
