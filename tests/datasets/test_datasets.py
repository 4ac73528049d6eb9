from __future__ import annotations

import csv
import hashlib
import re
from fractions import Fraction
from pathlib import Path

import pytest
from whole_data import whole

from fairopt import datasets
from fairopt.errors import BadInput
from fairopt.problem import Market, read_market, write_market

#: Every twelfth row of the measured table (MIT: SOURCES.md).
EXCERPT = Path(__file__).with_name("gavel_excerpt.csv")


def test_table_1_of_gandiva_fair_as_printed() -> None:
    table = {row.model: row for row in datasets.gandiva_table1()}
    assert len(table) == 7
    assert 1000 / table["ResNext-50"].steps_per_s["K80"] == Fraction("2005.7")
    assert table["ResNext-50"].over("K80") == {
        "K80": 1,
        "P40": Fraction("3.7"),
        "P100": Fraction("4.12"),
        "V100": Fraction("6.33"),
    }
    # the paper's observations: every newer GPU is faster, and VAE gains only 25% on a V100
    assert all(min(row.over("K80").values()) == 1 for row in table.values())
    assert table["VAE"].over("K80")["V100"] == Fraction("1.25")


def test_gandiva_markets() -> None:
    market = datasets.gandiva_market({"V100": 12, "K80": 60}, {"A": "VAE", "B": "DCGAN"}, {"B": 2, "A": 1}, [None, 4])
    assert market == Market.of(
        [["1.25", 1], ["6.42", 1]],
        [12, 60],
        weight=[1, 2],
        demand=[None, 4],
        users=["A", "B"],
        types=["V100", "K80"],
    )
    assert datasets.gandiva_market({"K80": 1}, ["VAE", "GRU"]).users == ("VAE", "GRU")


@pytest.mark.parametrize(
    ("capacity", "users", "words"),
    [
        ({"K80": 1}, ["VEA"], "Did you mean 'VAE'"),
        ({"A100": 1}, ["VAE"], "no throughputs on 'A100'"),
        ({"K80": 1}, ["VAE", "VAE"], "stands twice"),
        ({"K80": 0}, ["VAE"], "no type has any GPUs"),
        ([1], ["VAE"], "Give a dictionary"),
        ({"K80": 1}, [], "no users"),
    ],
)
def test_gandiva_markets_that_cannot_be(capacity: dict[str, int], users: list[str], words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        datasets.gandiva_market(capacity, users)


def test_the_gavel_table_is_the_measured_one() -> None:
    assert check_is_measured(EXCERPT) == 82


def test_the_whole_gavel_table_is_the_measured_one() -> None:
    assert check_is_measured(whole("throughputs_gavel.csv")) == 984


def check_is_measured(table: Path) -> int:
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    shipped = {
        (f"gavel_{source}", job.model, job.batch_size, scale, consolidated, name.lower()): steps
        for source in ("simulation", "physical")
        for scale in (1, 2, 4, 8)
        for consolidated in (True, False)
        for job in datasets.gavel_throughputs(source, scale_factor=scale, consolidated=consolidated)
        for name, steps in job.steps_per_s.items()
        if steps is not None
    }
    assert len(shipped) == 984
    for row in rows:
        key = (
            row["source"],
            row["model"],
            int(row["batch_size"]) if row["batch_size"] else None,
            int(row["scale_factor"]),
            row["placement"] == "consolidated",
            row["gpu_type"],
        )
        assert shipped[key] == Fraction(row["steps_per_s"])
        assert (shipped[key] > 0) == (row["feasible"] == "1")
    return len(rows)


def test_data_files_have_the_checksums_that_sources_states() -> None:
    stated = re.findall(
        r"^## (\S+\.csv(?:\.gz)?)$.*?^\* SHA-256: `(\w+)`", datasets.dataset_path("SOURCES.md").read_text(), re.M | re.S
    )
    assert {name for name, _ in stated} == {
        "throughputs_gavel.csv",
        "gandiva_fair_table1.csv",
        "philly_1000.csv",
        "philly_venus_distributions.csv",
        "venus_two_weeks.csv.gz",
        "workload_hours.csv",
        "workload_parts.csv",
        "workload_tenants.csv",
    }
    for name, checksum in stated:
        assert hashlib.sha256(datasets.dataset_path(name).read_bytes()).hexdigest() == checksum


def test_a_newer_gpu_is_not_always_faster() -> None:
    ratio = {job.name: job.steps_per_s["V100"] / job.steps_per_s["K80"] for job in datasets.gavel_throughputs()}  # type: ignore[operator]
    assert len(ratio) == 26
    assert (round(float(min(ratio.values())), 2), round(float(max(ratio.values())), 1)) == (0.66, 11.6)
    market = datasets.gavel_market(
        [("Recommendation", 512), "ResNet-18 (batch size 32)"], {"K80": 1, "P100": 1, "V100": 1}
    )
    on_k80, on_p100, on_v100 = market.speedup[0]
    assert on_v100 < on_k80 < on_p100
    assert market.speedup[1, 2] < market.speedup[1, 1]  # slower than the P100


def test_gavel_markets_choose_jobs_units_and_digits() -> None:
    jobs = ["ResNet-18 (batch size 64)", ("LM", 5), "A3C", ("CycleGAN", None)]
    capacity = {"V100": 2, "K80": 8}
    market = datasets.gavel_market(jobs, capacity)
    assert market.users == ("ResNet-18 (batch size 64)", "LM (batch size 5)", "A3C", "CycleGAN")
    assert market.types == ("V100", "K80")
    assert set(market.speedup[:, 1]) == {1}
    assert market.speedup[0, 0] == Fraction("3.416")  # 24.0932... / 7.0520...
    raw = datasets.gavel_market(jobs, capacity, unit=None, digits=None)
    assert raw.speedup[0].tolist() == [Fraction("24.093231895382736"), Fraction("7.052080666695425")]
    assert raw.normalised("K80") == datasets.gavel_market(jobs, capacity, digits=None)
    named = datasets.gavel_market({"me": "A3C", "you": "A3C"}, capacity, weight={"you": 2, "me": 1}, demand=[1, None])
    assert named.users == ("me", "you")
    assert named.weight.tolist() == [1, 2]
    two = datasets.gavel_market([("LM", 5)], capacity, scale_factor=2, unit=None, digits=None)
    assert two.speedup[0, 1] == Fraction("32.38551179103253") / 2


def test_a_job_that_does_not_fit_is_measured_where_it_runs() -> None:
    job = ("ResNet-50", 128)
    market = datasets.gavel_market([job, ("LM", 5)], {"K80": 1, "P100": 1, "V100": 1}, scale_factor=2)
    assert market.speedup[0, 0] == 0
    assert market.speedup[0, 1] == 1
    assert market.speedup[1, 0] == 1
    with pytest.raises(BadInput, match="the user can run nowhere"):
        datasets.gavel_market([job], {"K80": 1}, scale_factor=2)
    with pytest.raises(BadInput, match="was not measured on K80"):
        datasets.gavel_market([job], {"K80": 1, "P100": 1}, scale_factor=2, consolidated=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"jobs": ["ResNet-19"]}, "Did you mean 'ResNet-18'"),
        ({"jobs": [("ResNet-18", 48)]}, "ResNet-18 (batch size 16), ResNet-18 (batch size 32)"),
        ({"jobs": ["ResNet-18"]}, "ResNet-18 (batch size 16), ResNet-18 (batch size 32)"),
        ({"jobs": [None]}, "there is no job None"),
        ({"jobs": ["A3C", "A3C"]}, "'A3C' stands twice"),
        ({"source": "guess"}, "physical, simulation"),
        ({"scale_factor": 3}, "1, 2, 4, 8"),
        ({"scale_factor": 8}, "there is no job 'A3C'"),
        ({"unit": "A100"}, "no type 'A100'"),
        ({"digits": 0}, "Give 1 to 17"),
        ({"capacity": {"T4": 1}}, "no throughputs on 'T4'"),
        ({"weight": {"A3D": 1}}, "Did you mean 'A3C'"),
    ],
)
def test_gavel_markets_that_cannot_be(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        datasets.gavel_market(**({"jobs": ["A3C"], "capacity": {"K80": 1, "V100": 1}} | arguments))  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_paper_markets() -> None:
    assert datasets.oef_example().speedup.tolist() == [[1, 2], [1, 3], [1, 4]]
    assert datasets.oef_eq6().speedup.tolist() == [[1, 2], [1, 5]]
    trading = datasets.gandiva_table3()
    assert trading.users == ("A", "B", "C")
    assert trading.fair_utility().tolist() == [25, 40, 45]  # the table's aggregates before trading


@pytest.mark.parametrize(
    ("name", "market"), [("oef_example.toml", datasets.oef_example()), ("gavel.toml", datasets.gavel_example())]
)
def test_ready_market_files_are_what_the_functions_give(tmp_path: Path, name: str, market: Market) -> None:
    path = datasets.dataset_path(name)
    assert read_market(path) == market
    write_market(market, tmp_path / name)
    assert path.read_bytes() == (tmp_path / name).read_bytes()


def test_the_gavel_example_is_no_toy() -> None:
    market = datasets.gavel_example()
    assert market.shape == (6, 3)
    assert any(market.speedup[:, 2] < market.speedup[:, 0])
    assert len({tuple(row) for row in market.speedup}) == 6


def test_other_files_are_not_there() -> None:
    for name in ("gavel.tml", "../errors.py", "tables.py", ""):
        with pytest.raises(BadInput, match="no data file"):
            datasets.dataset_path(name)
