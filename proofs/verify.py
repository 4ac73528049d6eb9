"""Decide certificates, runs and schedules: ``python proofs/verify.py FILE-OR-FOLDER...``. See `verifier.front`.

The program is this file and the folder ``verifier`` beside it. It needs Python's standard library only, and nothing of
fairopt.
"""

import sys
from pathlib import Path

if __package__:  # as a part of fairopt
    from .verifier.certificates import verify
    from .verifier.front import main
    from .verifier.reading import Rejected
else:  # as a program, wherever it lies
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from verifier.certificates import verify
    from verifier.front import main
    from verifier.reading import Rejected

__all__ = ["Rejected", "main", "verify"]

if __name__ == "__main__":
    sys.exit(main())
