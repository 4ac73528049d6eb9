"""`fairopt bench export`: other solvers read the files and find the proven optimum that stands beside them."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import highspy
import pytest

from fairopt.backends.exact import Exact
from fairopt.backends.highs import as_written, holds, write, written_digits
from fairopt.backends.silent_highs import SilentHighs
from fairopt.backends.solution import Solution, Status
from fairopt.errors import BadInput, NotCapable
from fairopt.experiment.bench import kinds
from fairopt.experiment.bench.export import Exported, export
from fairopt.experiment.bench.spec import Spec
from fairopt.program import Formulation, between

ROOT = Path(__file__).parents[2]
SPEC = """
schema = 1
name = "small"
task = "{task}"
time_limit = 20
instances = [{{ family = "{family}", parameters = {{ {parameters} }} }}]
contenders = [{{ contender = "fairopt" }}]
"""
ASKED = {
    "max-min": ("mixed", "users = [4, 9], types = 3"),
    "oef-noncooperative": ("oef-growing", "users = 6"),
    "oef-cooperative": ("mixed", "users = 5, types = 2"),
    "fft-round": ("fft-rounds", "jobs = 8"),
}


def spec(task: str, family: str = "mixed", parameters: str = "users = 4, types = 2") -> Spec:
    return Spec.parse(SPEC.format(task=task, family=family, parameters=parameters))


def files(folder: Path) -> dict[str, int]:
    made = (*folder.glob("[0-9a-f]*.*"), *folder.glob("certificates/*"))
    return {path.name: path.stat().st_mtime_ns for path in made}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("export") / "instances"
    for task, (family, parameters) in ASKED.items():
        assert all(isinstance(each, Exported) for _, each in export(spec(task, family, parameters), made))
    return made


@pytest.fixture(scope="module")
def told(folder: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((folder / "index.json").read_text())["instances"]
    assert sorted(each["task"] for each in listed) == sorted([*ASKED, "max-min"])
    return listed


# -- what is in the folder --------------------------------------------------------------------------------------------
def by_highs(file: Path) -> tuple[float, str]:
    highs = SilentHighs()
    unpacked = file.with_suffix("")  # HiGHS reads packed files where it was built so
    unpacked.write_bytes(gzip.decompress(file.read_bytes()))
    assert highs.readModel(str(unpacked)).name == "kOk"
    unpacked.unlink()
    highs.run()
    sense = "maximize" if highs.getLp().sense_ == highspy.ObjSense.kMaximize else "minimize"
    return highs.getInfo().objective_function_value, sense


def by_scip(file: Path) -> tuple[float, str]:
    model = pytest.importorskip("pyscipopt").Model()
    model.hideOutput()
    model.readProblem(str(file))
    model.optimize()
    return model.getObjVal(), model.getObjectiveSense()


@pytest.mark.parametrize("solved", [by_highs, by_scip])
def test_other_readers_find_the_stated_optimum(
    folder: Path, told: list[dict[str, Any]], solved: Callable[[Path], tuple[float, str]]
) -> None:
    for each in told:
        found, sense = solved(folder / each["file"])
        assert sense == each["sense"]
        optimum, method = each["optimum"], each["method"]
        if optimum["exact"] is not None:
            assert found == pytest.approx(float(Fraction(optimum["exact"])), rel=1e-7)
            assert optimum["exact"] == optimum["lower"] == optimum["upper"]
            assert method is None
        else:
            assert each["integers"] > 0
            assert method["of_file"]
            assert method["upper"] - method["lower"] < 1e-7
            assert found == pytest.approx(method["lower"], rel=1e-7)
            assert Fraction(optimum["lower"]) <= method["upper"]
            assert method["lower"] <= Fraction(optimum["upper"])
    assert sum(each["optimum"]["exact"] is not None for each in told) == 4


def test_the_verifier_accepts_every_certificate_and_finds_the_stated_optimum(
    folder: Path, told: list[dict[str, Any]]
) -> None:
    paths = [folder / each["optimum"]["certificate"] for each in told]
    ran = subprocess.run([sys.executable, ROOT / "proofs/verify.py", *paths], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.count(": accepted:") == len(paths)
    for each, path in zip(told, paths, strict=True):
        proof = json.loads(gzip.decompress(path.read_bytes()))
        ends = sorted((Fraction(proof["value"]), Fraction(proof["bound"])))
        assert ends == [Fraction(each["optimum"][end]) for end in ("lower", "upper")]
        assert [float(end) for end in ends] == each["optimum"]["decimals"]


def test_the_certified_program_has_the_very_decimals_of_the_file(folder: Path, told: list[dict[str, Any]]) -> None:
    for each in told:
        lines = gzip.decompress((folder / each["file"]).read_bytes()).decode().splitlines()
        at = [lines.index(section) for section in ("COLUMNS", "RHS")]
        entries = [line.split() for line in lines[slice(*at)][1:] if "'MARKER'" not in line]
        written = sorted(Fraction(value) for _, row, value in entries if row != "Obj")
        proof = json.loads(gzip.decompress((folder / each["optimum"]["certificate"]).read_bytes()))["program"]
        assert written == sorted(Fraction(value) for row in proof["rows"] for _, value in row["terms"])
        costs = sorted(Fraction(value) for _, row, value in entries if row == "Obj")
        assert costs == sorted(cost for each in proof["variables"] if (cost := Fraction(each["cost"])))
        assert (len(proof["rows"]), len(proof["variables"]), len(written)) == (
            *(each["rows"], each["variables"], each["nonzeros"]),
        )


def test_hashes_name_and_guard_the_files(folder: Path, told: list[dict[str, Any]]) -> None:
    for each in told:
        packed = (folder / each["file"]).read_bytes()
        assert sha256(packed).hexdigest() == each["sha256"]
        assert sha256(gzip.decompress(packed)).hexdigest() == each["mps_sha256"]
        assert each["file"] == each["mps_sha256"][:16] + ".mps.gz"
        proof = (folder / each["optimum"]["certificate"]).read_bytes()
        assert sha256(proof).hexdigest() == each["optimum"]["certificate_sha256"]
        assert json.loads((folder / f"{each['mps_sha256'][:16]}.json").read_text()) == each


def test_the_table_has_all_and_the_readme_says_how(folder: Path, told: list[dict[str, Any]]) -> None:
    rows = list(csv.DictReader((folder / "index.csv").read_text().splitlines()))
    assert [row["file"] for row in rows] == [each["file"] for each in told]
    for row, each in zip(rows, told, strict=True):
        assert (row["proven"] == "yes") == (each["optimum"]["exact"] is not None)
        assert float(row["lower"]) <= float(row["upper"])
        assert not row["optimum"] or float(row["optimum"]) == each["optimum"]["decimals"][0]
    assert "fairopt check certificates" in (folder / "README.md").read_text()


def test_an_integer_program_is_proven_where_its_relaxation_proves_it(tmp_path: Path) -> None:
    asked = replace(spec("fft-round", "fft-rounds", "jobs = 100, types = 8").instances[0], seeds=(1,))
    [(_, found)] = export(replace(spec("fft-round"), instances=(asked,)), tmp_path)
    assert isinstance(found, Exported)
    assert (found.integers, found.sense, found.method) == (800, "minimize", None)
    optimum = Fraction(found.optimum.exact or 0)
    assert by_highs(tmp_path / found.file)[0] == pytest.approx(float(optimum), rel=1e-7)
    ran = subprocess.run([sys.executable, ROOT / "proofs/verify.py", tmp_path / "certificates"], capture_output=True)
    assert ran.returncode == 0
    assert b": optimal" in ran.stdout


# -- going on ---------------------------------------------------------------------------------------------------------
def test_what_is_there_is_kept_and_what_was_changed_is_written_anew(tmp_path: Path) -> None:
    asked = spec("max-min", parameters="users = [4, 5], types = 2")
    begun = export(asked, tmp_path)
    _, first = next(begun)
    assert isinstance(first, Exported)
    begun.close()  # as Ctrl-C does
    assert [each["file"] for each in json.loads((tmp_path / "index.json").read_text())["instances"]] == [first.file]
    before = files(tmp_path)
    assert len(list(export(asked, tmp_path))) == 2
    after = files(tmp_path)
    assert before.items() < after.items()
    assert len(after) == 6
    list(export(asked, tmp_path))
    assert files(tmp_path) == after
    metadata = first.file.replace(".mps.gz", ".json")
    for name in (first.file, first.optimum.certificate or "", metadata):
        good = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(good[:-9])
        _, again = next(iter(export(asked, tmp_path)))
        assert again == first
        assert (tmp_path / name).read_bytes() == good


def test_what_is_not_proven_has_bounds_and_is_tried_again_with_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = spec("oef-noncooperative")
    with monkeypatch.context() as patched:
        patched.setattr(Exact, "solve", lambda *_, **__: Solution(Status.LIMIT, "time limit", "exact"))
        [(_, stopped)] = export(asked, tmp_path, time_limit=1)
    assert isinstance(stopped, Exported)
    assert stopped.optimum.exact is stopped.optimum.certificate is None
    [(_, same)] = export(asked, tmp_path, time_limit=1)
    assert same == stopped
    [(_, proven)] = export(asked, tmp_path, time_limit=2)
    assert isinstance(proven, Exported)
    assert proven.optimum.decimals is not None
    assert stopped.method is not None
    assert not stopped.method.of_file  # its rows were rounded too
    assert stopped.method.lower == pytest.approx(proven.optimum.decimals[0], rel=1e-9)
    assert stopped.method.upper == pytest.approx(proven.optimum.decimals[0], rel=1e-9)


# -- what cannot be written -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("task", "why"), [("nash-welfare", "logarithms"), ("water-filling", "max-min"), ("posted-prices", "no program")]
)
def test_tasks_without_a_program_are_refused_and_leave_nothing(tmp_path: Path, task: str, why: str) -> None:
    family, parameters = ("posted-price-batches", "jobs = 5") if task == "posted-prices" else ("mixed", "users = 4")
    with pytest.raises(NotCapable, match=why):
        list(export(spec(task, family, parameters), tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_large_programs_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "MOST_ENTRIES", 10)
    (_, small), (key, large) = export(spec("max-min", parameters="users = [4, 6], types = 2"), tmp_path)
    assert isinstance(small, Exported)
    assert isinstance(large, NotCapable)
    assert key.size == 6
    assert "12 entries" in str(large)
    with pytest.raises(NotCapable, match=r"nothing is written: .*12 entries"):
        list(export(spec("max-min", parameters="users = 6, types = 2"), tmp_path))


def test_folders_with_other_things_and_bad_limits_are_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    for folder, limit, why in (
        (tmp_path, 1.0, "other things"),
        (tmp_path / "README.md", 1.0, "is a file"),
        (tmp_path / "new", 0.0, "above 0"),
        (tmp_path / "new", float("nan"), "above 0"),
        (Path("/proc/nowhere"), 1.0, "cannot write"),
    ):
        with pytest.raises(BadInput, match=why):
            list(export(spec("max-min"), folder, time_limit=limit))
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


# -- files and programs -----------------------------------------------------------------------------------------------
def test_a_file_holds_the_program_as_written_and_no_other(tmp_path: Path) -> None:
    p = Formulation("any")
    x = p.variable("x", (2,), lower=-1, upper=2 / 3)
    n = p.variable("n", lower=-3, upper=7, integer=True)
    p.minimize(x[0] / 3 - 2 * x[1] + n + 0.1)
    p.constrain("between", between(-4, x[0] * 0.7 + n, 6))
    p.constrain("equal", x[1] + n == 1e-7 / 3)
    program = as_written(p.program())
    assert program.upper[0] == Fraction(f"{2 / 3:.{written_digits()}g}")
    write(p.program(), tmp_path / "any.mps")
    assert holds(tmp_path / "any.mps", program)
    rows = program.rows
    for other in (
        replace(program, offset=Fraction(1)),
        replace(program, cost=-program.cost),
        replace(program, lower=program.lower - 1),
        replace(program, integer=~program.integer),
        replace(program, rows=replace(rows, upper=rows.upper + 1)),
        replace(program, rows=replace(rows, value=rows.value * Fraction(1 + 10**-14))),
    ):
        assert not holds(tmp_path / "any.mps", other)


def test_a_coefficient_that_is_lost_is_noticed(tmp_path: Path) -> None:
    p = Formulation("tiny")
    x = p.variable("x", (2,), lower=0, upper=1)
    p.maximize(x.sum())
    p.constrain("row", x[0] + 1e-13 * x[1] <= 1)
    write(p.program(), tmp_path / "tiny.mps")
    assert not holds(tmp_path / "tiny.mps", p.program())
