"""A third party's things, each in a package made from its template, are on the same footing as fairopt's own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import installing
import pytest
from ran_command import Ran

from fairopt.datasets import dataset_path
from fairopt.problem import read_market

TEMPLATES = Path(__file__).parents[1] / "docs" / "templates"
NAMES = sorted(path.name for path in TEMPLATES.iterdir() if path.is_dir())
MARKET = str(dataset_path("oef_example.toml"))


def install(template: str, to: Path) -> dict[str, Any]:
    return installing.install(TEMPLATES / template, to)


def python(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where what is installed in ``path`` is found."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=path, timeout=240)


def fairopt(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(path, "-m", "fairopt", *arguments)


#: Runs commands one after the other in one process, whose start takes longer than most of them.
EACH = """
import contextlib, io, json, sys
from fairopt.cli import main
said = []
for words in json.loads(sys.argv[1]):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.argv = ["fairopt", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    said.append([status, *(each.buffer.getvalue().decode() for each in (out, err))])
print(json.dumps(said))
"""


def fairopt_each(path: Path, *commands: Iterable[str]) -> list[Ran]:
    """Run several commands where what is installed in ``path`` is found."""
    ran = python(path, "-c", EACH, json.dumps([list(words) for words in commands]))
    assert ran.returncode == 0, ran.stderr
    return [Ran(*each) for each in json.loads(ran.stdout)]


def passes_its_suite(folder: Path, templates: Iterable[str], into: Path) -> None:
    """Run the tests of templates, which are installed in the folder, in one process."""
    tests = [[shutil.copy(path, into) for path in TEMPLATES.joinpath(each).glob("test_*.py")] for each in templates]
    assert all(tests)
    ran = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, chain.from_iterable(tests)))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("template", NAMES)
def test_a_package_made_from_the_template_passes_its_suite(template: str, tmp_path: Path) -> None:
    install(template, tmp_path)
    passes_its_suite(tmp_path, [template], tmp_path)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All templates, installed beside each other."""
    folder = tmp_path_factory.mktemp("site")
    for template in NAMES:
        install(template, folder)
    return folder


@pytest.mark.parametrize("together", [["importer", "property"], pytest.param(NAMES, marks=pytest.mark.slow)])
def test_packages_made_from_the_templates_pass_their_suites_beside_each_other(
    installed: Path, tmp_path: Path, together: list[str]
) -> None:
    passes_its_suite(installed, together, tmp_path)


def test_plug_ins_are_listed(installed: Path) -> None:
    kinds = {kind: kind for kind in ("policies", "backends", "properties", "datasets")} | {"workloads": "generate"}
    listed, *of_kinds = fairopt_each(installed, *([command, "--json"] for command in ("plugins", *kinds.values())))
    wanted = {
        (group, name, project["name"])
        for template in NAMES
        for project in [tomllib.loads((TEMPLATES / template / "pyproject.toml").read_text(encoding="utf-8"))["project"]]
        for group, points in project["entry-points"].items()
        for name in points
    }
    assert {(row["group"], row["name"], row["package"]) for row in listed.data} == wanted
    for group, ran in zip(kinds, of_kinds, strict=True):
        names = {name for where, name, _ in wanted if where == f"fairopt.{group}"}
        assert names
        assert names <= {row["name"] for row in ran.data}


def test_plug_ins_are_used(installed: Path, tmp_path: Path) -> None:
    labs, lines, imported = (str(tmp_path / name) for name in ("labs.toml", "lines.txt", "imported.toml"))
    Path(lines).write_text("gpus K80 4\nspeed ann K80 1\n")
    solve, compare, copy, read, command = fairopt_each(
        installed,
        ("solve", MARKET, "--policy", "max-min", "--backend", "scipy-milp", "--json"),
        ("compare", MARKET, "--policy", "sharing-first", "--json", "--evaluations", "30"),
        ("datasets", "two-labs", "--out", labs),
        ("import", "throughput-lines", lines, "--out", imported),
        ("partition", "--help"),
    )
    assert (solve.data["status"], solve.data["backend"]) == ("optimal", "scipy-milp")
    row = compare.data["policies"]["sharing-first"]
    assert row["properties"]["half_share"]["answer"] == "HOLDS"
    assert row["properties"]["envy_freeness"]["answer"] == "FAILS"
    assert copy.status == 0
    assert read_market(labs).users == ("vision", "language")
    assert read.status == 0
    assert read_market(imported).users == ("ann",)
    assert "own partition" in command.out


def test_certificates_of_an_outside_policy_are_accepted(installed: Path, tmp_path: Path) -> None:
    folder, proof = str(tmp_path / "evidence"), str(tmp_path / "lie.json")
    asked = ("compare", MARKET, "--policy", "sharing-first", "--evaluations", "60", "--certificates", folder)
    lie = ("lie", MARKET, "--policy", "sharing-first", "--certificate", proof)
    compared, lied, checked = fairopt_each(installed, asked, lie, ("check", folder, proof))
    assert compared.status == 0
    assert "no certificate: sharing-first/half_share: the verifier does not know half_share" in compared.err
    assert lied.status == 1
    assert checked.status == 0, checked.out
    said = checked.out.splitlines()
    assert len(said) > 8
    assert [line for line in said if "/decision.json: accepted: the embedded program, which the author of" in line]
    assert f"{proof}: accepted: by the two embedded programs, which the author of 'sharing-first' wrote, " in said[-1]


@pytest.mark.parametrize(
    "backend", ["auto", *(pytest.param(name, marks=pytest.mark.slow) for name in ("pyomo", "clarabel", "exact"))]
)
def test_what_cannot_hold_together_is_named_on_the_command_line(backend: str, sharing_first: Path) -> None:
    text = sharing_first.read_text()
    sharing_first.write_text(text.replace("problem.fair_utility()", "2 * problem.fair_utility()"))
    ran = fairopt(sharing_first.parent, "solve", MARKET, "--policy", "sharing-first", "--backend", backend)
    assert ran.returncode == 3
    assert re.search(r"these cannot hold together: capacity.*, sharing\[\w+\], sharing\[\w+\]", ran.stderr), ran.stderr


def test_that_nothing_can_be_decided_is_certified(sharing_first: Path) -> None:
    text = sharing_first.read_text()
    sharing_first.write_text(text.replace("problem.fair_utility()", "2 * problem.fair_utility()"))
    proof = str(sharing_first.parent / "none.json")
    solve = ("solve", MARKET, "--policy", "sharing-first", "--certificate", proof)
    solved, checked = fairopt_each(sharing_first.parent, solve, ("check", proof))
    assert solved.status == 3
    assert f"written to {proof}: that no point satisfies all constraints" in solved.err
    assert "accepted: no point satisfies the program" in checked.out


@pytest.fixture
def sharing_first(tmp_path: Path) -> Path:
    install("share_policy", tmp_path)
    return tmp_path / "sharing_first.py"


def test_a_broken_plug_in_is_named(sharing_first: Path) -> None:
    sharing_first.write_text("class SharingFirst:\n    pass\n")
    ran = fairopt(sharing_first.parent, "solve", MARKET, "--policy", "sharing-first")
    assert ran.returncode == 2
    assert "Mend the plug-in" in ran.stderr


def test_a_plug_in_that_cannot_be_loaded_leaves_the_others_alone(sharing_first: Path) -> None:
    sharing_first.write_text("import nowhere_to_be_found")
    solve = ("solve", MARKET, "--policy", "sharing-first")
    listed, asked = fairopt_each(sharing_first.parent, ("policies", "--json"), solve)
    assert listed.status == 0
    assert "max-min" in {row["name"] for row in listed.data}
    assert "left out: 'sharing-first' is registered as sharing_first:SharingFirst, which cannot be loaded" in listed.err
    assert asked.status == 3
    assert "nowhere_to_be_found" in asked.err


def test_two_packages_with_one_name_are_refused(sharing_first: Path) -> None:
    points = next(sharing_first.parent.glob("*.dist-info")) / "entry_points.txt"
    points.write_text(points.read_text().replace("sharing-first =", "max-min ="))
    ran = fairopt(sharing_first.parent, "policies")
    assert ran.returncode == 2
    assert "two packages register 'max-min'" in ran.stderr


def test_a_command_of_our_own_stays_ours(tmp_path: Path) -> None:
    install("command", tmp_path)
    points = next(tmp_path.glob("*.dist-info")) / "entry_points.txt"
    points.write_text(points.read_text().replace("partition =", "policies ="))
    plugins, policies = fairopt_each(tmp_path, ["plugins"], ["policies"])
    assert "'policies' of partition is not used" in plugins.err
    assert "max-min" in policies.out


def test_a_command_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    ran = fairopt(tmp_path, "nowhere")
    assert ran.returncode == 2
    assert "No such command 'nowhere'" in ran.stderr


def test_the_list_of_commands_looks_for_no_plug_ins(installed: Path) -> None:
    ran = python(installed, "-X", "importtime", "-m", "fairopt", "--help")
    assert "fairopt plugins" in ran.stdout
    imported = {line.split("|")[-1].strip() for line in ran.stderr.splitlines()}
    assert "fairopt.cli.app" in imported
    assert not {"importlib.metadata", "fairopt.discovery"} & imported
