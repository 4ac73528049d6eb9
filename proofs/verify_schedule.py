"""The name under which schedules were verified before: the same program as ``proofs/verify.py``."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).with_name("verify.py")), run_name="__main__")
