"""Install a wheel or an sdist in a new environment, and run every command in an empty folder.

    python tests/packaging/check_installed.py dist/fairopt-1.0.0-py3-none-any.whl [PYTHON...]

For each PYTHON (this one by default) it says which commands ran, and ends with status 1 if one did not end as it
should. Versions are those of constraints.txt; nothing of the checkout is on the path.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: A trace on its cluster.
RUN = "DATA/philly_1000.csv --cluster DATA/philly_cluster.toml"
#: Throughputs for the plan: a file that a user has measured.
THROUGHPUT = "user,h100,a100\nvision,2,1\nsearch,3,1\nnlp,5,1\nads,1.2,1\n"
#: Each command, DATA for the folder of the bundled files, with the exit status that it ends with.
COMMANDS: tuple[tuple[int, str], ...] = (
    (0, "--version"),
    (0, "--help"),
    (0, "policies"),
    (0, "policies --json"),
    (0, "backends"),
    (0, "properties"),
    (0, "plugins"),
    (0, "datasets"),
    (0, "datasets oef-example --out example.toml"),
    (0, "compare DATA/oef_example.toml"),
    (0, "compare DATA/gavel.toml --policy max-min --certificates evidence"),
    (0, "check evidence"),
    (0, "solve DATA/gavel.toml --policy oef-cooperative --json"),
    (0, "solve @gavel --policy max-min --unique"),
    (0, "compare @oef-example --policy nash-welfare --allocations --floats --time-limit 60"),
    (0, "policies fft"),
    (1, "lie DATA/gavel.toml --policy max-min"),
    (0, f"run {RUN} --policy srtf --rounds 9 --floats --record r.jsonl"),
    (0, "check r.jsonl --tolerance 1e-6"),
    (0, "schedule DATA/astraea_example.toml --policy posted-prices"),
    (1, "audit DATA/clusters/kueue/cluster.json"),
    (0, "audit DATA/clusters/slurm --metrics metrics.txt"),
    (0, "explain DATA/clusters/kueue/cluster.json search"),
    (0, "whatif DATA/clusters/kueue/cluster.json --set search.h100.quota=16"),
    (0, "frontier DATA/oef_example.toml"),
    (0, "incentives DATA/oef_example.toml"),
    (0, "study list"),
    (0, "plugins"),
    (0, "claims"),
    (0, "claims oef-eq1 --run"),
    (0, "bench list"),
    # a library that is not installed is named, with the command that installs it
    (3, "audit DATA/clusters/kueue/cluster.json --html audit.html"),
    (3, "plan DATA/clusters/kueue/cluster.json --policy oef-cooperative --throughput throughput.csv --out plan"),
    (3, "solve DATA/gavel.toml --policy max-min --backend ecos"),
    (2, "compare nowhere.toml"),
)


def main() -> int:
    """Return how many commands ended otherwise than they should."""
    package, pythons = Path(sys.argv[1]).resolve(), sys.argv[2:] or [sys.executable]
    return min(sum(_wrong(package, python) for python in pythons), 1)


def _wrong(package: Path, python: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder, environment = Path(name, "empty"), Path(name, "environment")
        folder.mkdir()
        Path(folder, "throughput.csv").write_text(THROUGHPUT, encoding="utf-8")
        _run([python, "-m", "venv", environment], folder)
        installed = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
        _run([installed, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", package], folder)
        data = _run(
            [installed, "-c", "import fairopt.datasets as d; print(d.dataset_path('gavel.toml').parent)"], folder
        )
        wrong = 0
        for status, command in COMMANDS:
            words = [word.replace("DATA", data.strip()) for word in command.split()]
            ran = _ended([installed, "-m", "fairopt", *words], folder)
            if ran.returncode != status or "Traceback" in ran.stderr:
                wrong += 1
                print(f"WRONG: fairopt {command}: status {ran.returncode}, not {status}\n{ran.stderr}", flush=True)
        print(f"{package.name} on {python}: {len(COMMANDS) - wrong} of {len(COMMANDS)} commands", flush=True)
        return wrong


def _run(words: list[str | Path], folder: Path) -> str:
    ran = _ended(words, folder)
    if ran.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: status {ran.returncode}\n{ran.stderr}")
    return ran.stdout


def _ended(words: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(words, cwd=folder, env=plain, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
