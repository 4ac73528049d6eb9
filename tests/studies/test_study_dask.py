"""A study on a real Dask scheduler with two worker processes, one of which is killed while it plays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from study_examples import spec_text, without_times

from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.spec import Entrant
from fairopt.experiment.studies.cells import StudyCell, run_study
from fairopt.experiment.studies.spec import StudySpec

# what Dask itself leaves open on the way out is no concern of ours
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    marker = tmp_path / "marker"
    monkeypatch.setenv("STUDY_MARKER", str(marker))
    spec = StudySpec.parse(spec_text(tmp_path))
    spec = replace(spec, policies=(Entrant("study_examples:KillsItsWorkerOnce", "srtf"), spec.policies[1]))
    marker.write_text("nobody is killed")
    calm = [each for each in run_study(spec) if isinstance(each, StudyCell)]
    marker.unlink()
    workers = {"n_workers": 2, "processes": True, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**workers) as cluster, distributed.Client(cluster) as client:
        before = {each["pid"] for each in client.run(_process).values()}
        found = [
            each
            for each in run_study(spec, client.get_executor(pure=False), concurrent=2)
            if isinstance(each, StudyCell)
        ]
        after = {each["pid"] for each in client.run(_process).values()}
    assert marker.read_text() == "killed"
    assert len(before - after) == 1  # one worker process died, and was replaced
    assert {each.status for each in found} == {TrialStatus.PLAYED}
    assert without_times(found) == without_times(calm)


def _process() -> dict[str, int]:
    import os

    return {"pid": os.getpid()}
