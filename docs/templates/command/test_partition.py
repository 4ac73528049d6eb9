import json
import subprocess
import sys

from fairopt.datasets import dataset_path


def fairopt(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fairopt", *arguments], capture_output=True, text=True, check=False)


def test_fairopt_has_the_command() -> None:
    ran = fairopt("partition", str(dataset_path("oef_example.toml")), "--json")
    assert json.loads(ran.stdout) == {"u1": 2 / 3, "u2": 2 / 3, "u3": 2 / 3}


def test_bad_input_ends_with_2_and_one_line() -> None:
    ran = fairopt("partition", "missing.toml")
    assert ran.returncode == 2
    assert ran.stderr.startswith("fairopt: missing.toml")
