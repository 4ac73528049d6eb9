"""The name under which schedules were verified before: the same program as ``proofs/verify.py``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from verifier import front  # type: ignore[import-not-found]

    sys.exit(front.main())
