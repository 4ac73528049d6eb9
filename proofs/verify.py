"""Decide certificates, runs and schedules: ``python proofs/verify.py FILE-OR-FOLDER...``. See `verifier.front`.

It is this file and the folder ``verifier``. It needs Python's standard library only, and nothing of fairopt.
"""

import sys
from pathlib import Path

if __package__:  # imported as a part of fairopt
    from .verifier.certificates import verify as verify
    from .verifier.front import main as main
    from .verifier.reading import Rejected as Rejected

if __name__ == "__main__":  # run as a program, wherever it lies
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from verifier import front  # type: ignore[import-not-found]

    try:
        sys.exit(front.main())
    except BrokenPipeError:  # the reader of a pipe went away, as `head` does: nothing is rejected by that
        sys.stdout = None  # else Python would try again at exit
        sys.exit(141)
