"""A run on a real Dask cluster of two worker processes: kept one by one, stopped half way, and gone on with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairopt.experiment.bench.records import KINDS, environments, measurements, read_results
from fairopt.experiment.bench.run import run_spec
from fairopt.experiment.bench.spec import Spec
from fairopt.experiment.journal import RecordsFile, TrialStatus

SPEC = """
schema = 1
name = "spread"
task = "oef-noncooperative"
time_limit = 30
repeats = 2
[[instances]]
family = "uniform"
parameters = { users = [4, 5], types = 2 }
[[contenders]]
contender = "bench_fakes:Sound"
"""


# what Dask itself leaves open on the way out is no concern of ours
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow  # that a worker may be killed is tested on a study
def test_a_run_on_a_cluster_is_stopped_half_way_and_gone_on_with(client: Any, tmp_path: Path) -> None:
    spec, path = Spec.parse(SPEC), tmp_path / "results.jsonl"
    with RecordsFile(path, KINDS, print, place="--json") as file:
        for record in run_spec(spec, client.get_executor(pure=False), concurrent=2):
            file.add(record)
            if len(measurements(read_results(path))) == 2:  # on the disk as it comes
                break
    before = measurements(read_results(path))
    assert len(before) == 2
    with RecordsFile(path, KINDS, print, place="--json") as file:
        for record in run_spec(spec, client.get_executor(pure=False), concurrent=2, before=file.before):
            file.add(record)
    found = read_results(path)
    made = measurements(found)
    assert made[:2] == before
    assert len({(each.instance.digest, each.repeat) for each in made}) == len(made) == 4
    assert {each.status for each in made} == {TrialStatus.SOLVED}, [each.message for each in made]
    assert {each.concurrent for each in made} == {2}
    assert {each.environment for each in made} == environments(found).keys()


@pytest.mark.slow  # `fairopt study` takes one in the quick tests, by the same way
def test_the_command_takes_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from fairopt.cli import main

    pytest.importorskip("distributed")
    (tmp_path / "spec.toml").write_text(SPEC.replace("users = [4, 5]", "users = 4"), encoding="utf-8")
    results = tmp_path / "results.jsonl"
    words = ["fairopt", "bench", str(tmp_path / "spec.toml"), "--json", str(results), "--dask", "local:2"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    assert [each.status for each in measurements(read_results(results))] == [TrialStatus.SOLVED] * 2
