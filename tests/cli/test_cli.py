"""The command line keeps its contracts: JSON keys, exit status, nothing else on standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from malformed import malformed_market_texts
from ran_command import Ran

from fairopt.cli.app import COMMANDS, load
from fairopt.datasets import dataset_path
from fairopt.properties import StrategyProofness

MARKET = str(dataset_path("oef_example.toml"))
HUGE = ["--evaluations", str(10**24), "--seconds", "0.05"]
POLICIES = {
    "equal-split",
    "max-efficiency",
    "oef-noncooperative",
    "oef-cooperative",
    "oef-efficient",
    "max-min",
    "water-filling",
    "second-price-trading",
    "nash-welfare",
    "partial-allocation",
}
PROPERTIES = {
    "sharing_incentive",
    "envy_freeness",
    "pareto_efficiency",
    "strategy_proofness",
    "adjacent_types",
    "work_conservation",
}


def test_the_installed_command_runs_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "fairopt", "solve", MARKET, "--policy", "max-min", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0
    assert ran.stderr == ""
    assert json.loads(ran.stdout)["policy"] == "max-min"


# -- solve -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_solve_json(fairopt: Callable[..., Ran], policy: str) -> None:
    ran = fairopt("solve", MARKET, "--policy", policy, "--json")
    assert ran.status == 0
    data = ran.data
    assert {"schema", "policy", "backend", "status", "objective", "users", "types", "allocation"} <= data.keys()
    assert {"utilities", "unique", "seconds"} <= data.keys()
    assert data["schema"] == 1
    assert data["policy"] == policy
    assert data["status"] == "optimal"
    assert data["users"] == ["u1", "u2", "u3"]
    assert data["types"] == ["GPU1", "GPU2"]
    assert [len(row) for row in data["allocation"]] == [2, 2, 2]
    assert all(isinstance(share, float | int) for row in data["allocation"] for share in row)
    assert data["unique"] in (True, False, None)
    assert set(data["seconds"]) == {"build", "solve", "certify"}


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_solve_exact_prints_fractions(fairopt: Callable[..., Ran], policy: str) -> None:
    data = fairopt("solve", MARKET, "--policy", policy, "--exact", "--json").data
    if policy != "nash-welfare" and policy != "partial-allocation":
        assert isinstance(data["objective"], str)
    numbers = [number for row in data["allocation"] for number in row] + data["utilities"]
    assert all(isinstance(number, str) for number in numbers)


@pytest.mark.parametrize("backend", ["highs", "pyomo", "ecos", "clarabel", "scs", "exact", "auto"])
def test_solve_with_each_back_end(fairopt: Callable[..., Ran], backend: str) -> None:
    ran = fairopt("solve", MARKET, "--policy", "oef-cooperative", "--backend", backend, "--json")
    assert ran.status == 0
    assert ran.data["backend"] == backend
    assert ran.data["objective"] == pytest.approx(4.5, abs=1e-5)


def test_solve_prints_a_table_for_people(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("solve", MARKET, "--policy", "oef-cooperative")
    assert ran.status == 0
    assert "throughput" in ran.out
    assert "optimal by its own method" in ran.out
    assert "proved, with all rounding counted: the optimum is at most 4.5" in ran.out
    assert "\x1b" not in ran.out


def test_solve_draws_throughputs_as_bars(
    fairopt: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    ran = fairopt("solve", MARKET, "--policy", "max-efficiency", "--html", page)
    bars = {line.split()[0]: line.split()[-2:] for line in ran.out.splitlines() if line.startswith(" u")}
    assert bars["u3"] == ["█" * 20, "2.40"]
    assert bars["u1"] == ["█" * 8, "1.00"]
    assert bars["u2"][-1] == "0.00"
    html = page.read_text(encoding="utf-8")
    assert "<h1>max-efficiency on oef_example.toml</h1>" in html
    assert 'title="u3: 1 of 1 GPU2"' in html
    assert "Verdicts" not in html
    monkeypatch.setenv("COLUMNS", "60")
    assert "█" not in fairopt("solve", MARKET, "--policy", "max-efficiency").out  # no room for bars


def test_job_types_are_rows_with_owners(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    market = tmp_path / "jobs.json"
    jobs = [{"name": "a", "speedup": [1, 2]}, {"name": "b", "speedup": [1, 3]}]
    users = [{"name": "u1", "job": jobs}, {"name": "u2", "speedup": [1, 5]}]
    market.write_text(json.dumps({"schema": 1, "types": ["x", "y"], "capacity": [1, 1], "user": users}))
    data = fairopt("solve", market, "--policy", "oef-noncooperative", "--json").data
    assert data["users"] == ["u1/a", "u1/b", "u2"]
    assert data["owners"] == ["u1", "u1", "u2"]


def test_normalise_makes_units_common(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    market = tmp_path / "units.csv"
    market.write_text("user,x,y\ncapacity,1,1\nA,10,20\nB,1,5\n")
    raw = fairopt("solve", market, "--policy", "oef-noncooperative", "--json").data
    common = fairopt("solve", market, "--policy", "oef-noncooperative", "--normalise", "--json").data
    assert raw["allocation"] != common["allocation"]
    assert common["utilities"] == pytest.approx([15 / 7, 15 / 7])


# -- verify ------------------------------------------------------------------------------------------------------
def test_verify_json(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    given_ = tmp_path / "trading.csv"
    given_.write_text("user,GPU2,GPU1\nu3,4/9,0\nu1,4/45,1\nu2,7/15,0\n")  # any order: matched by name
    ran = fairopt("verify", MARKET, given_, "--json")
    assert ran.status == 1
    data = ran.data
    assert data["schema"] == 1
    assert set(data["properties"]) == (PROPERTIES - {"strategy_proofness"}) | {"feasibility"}
    for verdict in data["properties"].values():
        assert {"answer", "margin", "exact", "witness", "effort"} <= verdict.keys()
        assert verdict["answer"] in ("HOLDS", "FAILS", "NOT_REFUTED")
        assert isinstance(verdict["exact"], bool)
    envy = data["properties"]["envy_freeness"]
    assert envy["answer"] == "FAILS"
    assert envy["margin"] == pytest.approx(-4 / 45)
    assert (envy["witness"]["user"], envy["witness"]["envied"]) == ("u3", "u2")
    assert data["properties"]["sharing_incentive"]["answer"] == "HOLDS"
    assert data["metrics"]["total_efficiency"] == pytest.approx(196 / 45)
    assert {"efficiency", "ratio_to_equal_split", "jain_index", "utilisation", "price_of_fairness"} <= data[
        "metrics"
    ].keys()


def test_verify_reads_what_solve_prints(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    for policy in sorted(POLICIES):
        answer = tmp_path / f"{policy}.json"
        answer.write_text(fairopt("solve", MARKET, "--policy", policy, "--json").out)
        ran = fairopt("verify", MARKET, answer, "--property", "feasibility", "--json")
        assert ran.status == 0, policy
        assert ran.data["properties"]["feasibility"]["answer"] == "HOLDS"


def test_verify_exact(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    given_ = tmp_path / "a.json"
    given_.write_text('{"allocation": [[1, 0], [0, "1/2"], [0, 0.5000001]]}')
    assert fairopt("verify", MARKET, given_, "--property", "feasibility").status == 0
    ran = fairopt("verify", MARKET, given_, "--property", "feasibility", "--exact", "--json")
    assert ran.status == 1
    assert ran.data["properties"]["feasibility"]["margin"] == "-1/10000000"
    assert ran.data["properties"]["feasibility"]["exact"] is True


def test_an_overbooked_allocation_fails_whatever_was_asked(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    given_ = tmp_path / "much.csv"
    given_.write_text("user,GPU1,GPU2\nu1,1,1\nu2,1,1\nu3,1,1\n")
    ran = fairopt("verify", MARKET, given_, "--property", "envy_freeness", "--json")
    assert ran.status == 1
    assert ran.data["properties"]["envy_freeness"]["answer"] == "HOLDS"
    assert ran.data["properties"]["feasibility"]["answer"] == "FAILS"
    given_.write_text("user,GPU1,GPU2\nu1,1,0\nu2,0,0.5\nu3,0,0.5\n")
    ran = fairopt("verify", MARKET, given_, "--property", "envy_freeness", "--json")
    assert set(ran.data["properties"]) == {"envy_freeness"}


def test_strategy_proofness_is_not_a_property_of_an_allocation(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    given_ = tmp_path / "a.csv"
    given_.write_text("user,GPU1,GPU2\nu1,1,0\nu2,0,0.5\nu3,0,0.5\n")
    ran = fairopt("verify", MARKET, given_, "--property", "strategy_proofness")
    assert ran.status == 2
    assert "fairopt compare" in ran.err
    assert fairopt("verify", MARKET, given_).status == 0


# -- lists -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("policies", POLICIES),
        ("properties", PROPERTIES | {"feasibility"}),
        ("backends", {"highs", "pyomo", "ecos", "clarabel", "scs", "exact"}),
    ],
)
def test_lists(fairopt: Callable[..., Ran], command: str, names: set[str]) -> None:
    assert names <= {row["name"] for row in fairopt(command, "--json").data}
    printed = fairopt(command)
    assert printed.status == 0
    assert all(name in printed.out for name in names)


def test_refuted_claims_are_marked(fairopt: Callable[..., Ran]) -> None:
    assert "[refuted]" in fairopt("policies").out


def test_version(fairopt: Callable[..., Ran]) -> None:
    assert fairopt("--version").out.startswith("fairopt ")


# -- bad input ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["solve", "absent.toml", "--policy", "max-min"], 2, "absent.toml"),
        (["solve", MARKET, "--policy", "max-mim"], 2, "Did you mean max-min"),
        (["solve", MARKET, "--policy", "max-min", "--backend", "higs"], 2, "highs"),
        (
            ["solve", MARKET, "--policy", "max-min", "--time-limit", "-1"],
            2,
            "'--time-limit': got -1. Give a number that is at least 0",
        ),
        (["solve", MARKET, "--policy", "nash-welfare", "--backend", "highs"], 3, "logarithms"),
        (["solve", MARKET, "--policy", "equal-split", "--backend", "highs"], 3, "algorithm of its own"),
        (["solve", MARKET, "--policy", "equal-split", "--seed", "3"], 3, "seed"),
        (["solve", MARKET, "--policy", "max-min", "--backend", "ecos", "--seed", "3"], 3, "seed"),
        (["solve", MARKET, "--policy", "max-min", "--exact", "--backend", "scs"], 3, "rational"),
        (["solve", MARKET, "--policy", "max-min", "--threads", "1000000"], 2, "threads"),
        (["solve", MARKET], 2, "'--policy'. A policy by name; `fairopt policies` lists them."),
        (["solve", str(Path(MARKET).parent), "--policy", "max-min"], 2, "this is a directory. Give a file that ends"),
        (["audit", MARKET.removesuffix(".toml")], 2, "Did you mean 'oef_example.toml'?"),
        (["explain", MARKET], 2, "Missing argument 'USER'. A user or a group."),
        (["import", "slurm", "--out", "m.toml"], 2, "Missing argument 'FILE'. Files, or a folder"),
        (["whatif", MARKET], 2, "nothing says what is to change"),
        (["audit", MARKET], 2, "oef_example.toml: entitlements: the market says nothing of entitlements"),
        (["frontier", MARKET, "--out", MARKET], 2, "--out: "),
        (["verify", MARKET, "absent.csv"], 2, "absent.csv"),
        (["verify", MARKET, MARKET], 2, "oef_example.toml"),
        (["compare", MARKET, "--property", "envy"], 2, "envy_freeness"),
        (["compare", MARKET, "--evaluations", "0"], 2, "'--evaluations': got 0. Give a number that is at least 1"),
        (["compare", MARKET, "--evaluations", "1.5"], 2, "'--evaluations': got 1.5. Give a whole number"),
        (["compare", MARKET, "--seconds", "soon"], 2, "'--seconds': got soon. Give a number\n"),
        (["compare", MARKET, "--policy", "oef"], 2, "Did you mean oef-cooperative or oef-cooperative-robust"),
        (["compare", MARKET, "--policy", ":rule"], 2, "':rule' names no module. Write MODULE:NAME"),
        (["compare", MARKET, "--policy", "mine.txt:rule"], 2, "cannot be loaded"),
        (["lie", MARKET, "--policy", "max-min", "--kind", "other"], 2, "'--kind': got other. Give one of 'larger'"),
    ],
)
def test_bad_input(fairopt: Callable[..., Ran], arguments: list[str], status: int, says: str) -> None:
    ran = fairopt(*arguments)
    assert ran.status == status, ran.err
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""


def test_any_number_of_misreports_may_be_asked_for(fairopt: Callable[..., Ran]) -> None:
    # equal split never gains by a lie; a limit ends the search
    ran = fairopt("compare", MARKET, *["--policy", "equal-split", "--property", "strategy_proofness"], *HUGE)
    assert ran.status == 0, ran.err


def test_an_infeasible_or_limited_solve_still_prints_json(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    from fairopt.benchmarks.float_samples import large_market, rising
    from fairopt.problem import write_market

    market = tmp_path / "large.json"
    write_market(large_market(60, 6, rising), market)
    ran = fairopt("solve", market, "--policy", "oef-cooperative", "--time-limit", 1e-6, "--json")
    assert ran.status == 3
    assert ran.data["status"] == "limit"
    assert ran.data["allocation"] is None
    assert "limit" in ran.err


@pytest.mark.parametrize("tolerance", ["inf", "nan", "1e400"])
def test_a_tolerance_must_be_a_number(fairopt: Callable[..., Ran], tmp_path: Path, tolerance: str) -> None:
    given_ = tmp_path / "a.csv"
    given_.write_text("user,GPU1,GPU2\nu1,1,0\nu2,0,0.5\nu3,0,0.5\n")
    ran = fairopt("verify", MARKET, given_, "--tolerance", tolerance)
    assert ran.status == 2
    assert "tolerance" in ran.err


def test_output_that_cannot_be_written_is_no_traceback(forked_fairopt: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [*forked_fairopt, "solve", MARKET, "--policy", "max-min", "--json"]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert ran.returncode == 3
    assert "cannot write the output" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_help_loads_no_command_and_no_numbers() -> None:
    code = "import sys; from fairopt.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    mine = {name for name in loaded if name.startswith("fairopt.")}
    assert mine == {
        f"fairopt.{name}" for name in ("cli", "cli.app", "cli.exits", "cli.refusals", "deadline", "errors", "later")
    }
    assert not loaded & {"numpy", "rich", "highspy", "flint", "importlib.metadata"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_in_the_list_is_there(name: str) -> None:
    assert load(name).get_short_help_str()
    assert len(COMMANDS[name].help) <= 60, "it would not fit into the list on a terminal of 80 columns"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(malformed_market_texts())
def test_malformed_files_end_with_status_2(fairopt: Callable[..., Ran], tmp_path: Path, made: Any) -> None:
    suffix, text = made
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(text)
    ran = fairopt("solve", path, "--policy", "equal-split", "--json")
    assert ran.status == 2
    assert ran.out == ""
    assert path.name in ran.err
    assert "Traceback" not in ran.err


def test_the_seconds_of_a_search_are_named(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("compare", MARKET, "--policy", "max-min", "--seconds", "0")
    assert ran.status == 2
    assert ran.err == "fairopt: --seconds: got 0.0. Give a time above 0\n"


def test_a_lie_with_no_place_for_its_market_is_not_looked_for(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    ran = fairopt("lie", MARKET, "--policy", "max-min", "--out", tmp_path / "nowhere" / "lie.toml")
    assert (ran.status, ran.out) == (2, "")
    assert "--out" in ran.err
    ran = fairopt("lie", MARKET, "--policy", "second-price-trading", "--out", tmp_path / "lie.txt")
    assert (ran.status, ran.out) == (2, ""), "refused before anything is looked for"
    assert "lie.txt: its name: it ends in '.txt'. Give a file that ends in .toml" in ran.err


def test_a_lie_that_could_not_be_written_is_not_looked_for(
    fairopt: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched(*_: object, **__: object) -> None:
        raise AssertionError("it was looked for")

    monkeypatch.setattr(StrategyProofness, "search", searched)
    market = tmp_path / "jobs.toml"
    jobs = '[[user.job]]\nname = "train"\nspeedup = [1, 2]\n[[user.job]]\nname = "serve"\nspeedup = [1, 3]\n'
    market.write_text(f'schema = 1\ntypes = ["T1", "T2"]\ncapacity = [1, 1]\n[[user]]\nname = "A"\n{jobs}')
    ran = fairopt("lie", market, "--policy", "max-min", "--out", tmp_path / "lie.csv")
    assert (ran.status, ran.out) == (2, "")
    assert "lie.csv: owner: a market with job types. Write it as .toml or .json" in ran.err
    assert not (tmp_path / "lie.csv").exists()


@pytest.mark.parametrize(
    ("parts", "used"),
    [("benching, sharing, listing, comparing", set()), ("studying", {"fairopt.workloads"})],  # a study generates traces
)
def test_commands_begin_without_what_they_do_not_say(parts: str, used: set[str]) -> None:
    unused = {"fairopt.workloads", "fairopt.models", "highspy", "cattrs", "scipy", "pandas"} - used
    code = f"import sys; from fairopt.cli import {parts}; print(*{unused} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


def test_one_property_in_words(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("properties", "envy_freeness")
    assert "envy_freeness (envies nobody), of an allocation: Nobody gets more out of another's shares" in ran.out
    assert "pi_l its weight" in ran.out
    assert "pi_l its weight" not in fairopt("properties", "no_starvation").out
    assert [each["name"] for each in fairopt("properties", "envy_freeness", "--json").data] == ["envy_freeness"]
    wrong = fairopt("properties", "envy")
    assert (wrong.status, "Did you mean envy_freeness or envy_within_peers?" in wrong.err) == (2, True)
