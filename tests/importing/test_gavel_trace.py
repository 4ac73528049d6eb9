"""Traces of Gavel and Shockwave: what the excerpts say, read a second time, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from fairopt import run
from fairopt.errors import BadInput
from fairopt.importing.gavel_trace import read
from fairopt.problem import Cluster
from fairopt.simulation import History

HERE = Path(__file__).parent / "gavel"


@pytest.mark.parametrize("whose", ["gavel", "shockwave"])
def test_the_excerpt_is_read_as_it_is(whose: str) -> None:
    trace = read(HERE / f"{whose}.trace", HERE / f"{whose}.json").problem
    lines = [line.split("\t") for line in (HERE / f"{whose}.trace").read_text(encoding="utf-8").splitlines()]
    measured = json.loads((HERE / f"{whose}.json").read_text(encoding="utf-8"))
    jobs = trace.jobs
    assert jobs.types == ("k80", "p100", "v100")
    assert jobs.arrival.tolist() == [Fraction(line[-1]) for line in lines]
    assert jobs.work.tolist() == [int(line[5]) for line in lines]
    assert jobs.gpus.tolist() == [int(line[6]) for line in lines]
    for line, speeds in zip(lines, jobs.throughput.tolist(), strict=True):
        key = f"('{line[0]}', {line[6]})"
        own = [measured[kind][key]["null"] if key in measured[kind] else 0 for kind in jobs.types]
        assert [float(each) for each in speeds] == pytest.approx(own, rel=1e-5)


def test_what_has_no_place_is_named() -> None:
    left = {each.place for each in read(HERE / "shockwave.trace", HERE / "shockwave.json").unplaced}
    assert {"trace, mode", "trace, duration", "throughputs, type", "throughputs, digits"} == left


def test_a_job_alone_takes_its_steps_over_its_throughput() -> None:
    trace = read(HERE / "gavel.trace", HERE / "gavel.json").problem.as_(float)
    cluster = Cluster.uniform({"k80": (1, 1), "p100": (1, 1), "v100": (8, 2)})
    done = History.of(trace, cluster, run("srtf", trace, cluster, length=360)).completion
    assert done["job-0"] == pytest.approx(2931 / 4.39477)


@pytest.mark.parametrize(
    ("cell", "text", "said"),
    [
        (0, "Resnet-50 (batch size 64)", r"line 3.*Resnet-50.*ResNet-50"),
        (6, "8", "line 3.*not measured on 8 GPUs together"),
        (6, "0", "line 3, scale_factor"),
        (5, "-1", "line 3, total_steps.*positive"),
        (9, "soon", "line 3, arrival_time"),
        (8, "", "line 3, SLO"),
    ],
)
def test_what_is_wrong_is_named_by_line(tmp_path: Path, cell: int, text: str, said: str) -> None:
    lines = [line.split("\t") for line in (HERE / "gavel.trace").read_text(encoding="utf-8").splitlines()]
    lines[2][cell] = text
    path = tmp_path / "wrong.trace"
    path.write_text("\n".join("\t".join(line) for line in lines), encoding="utf-8")
    with pytest.raises(BadInput, match=rf"(?s)wrong\.trace.*{said}"):
        read(path, HERE / "gavel.json")


@pytest.mark.parametrize(
    ("trace", "measured", "said"),
    [
        ("", "{}", "no GPU types"),
        ("", '{"v100": 3}', "v100"),
        ("", '{"v100": {"LM": "fast"}}', "v100, LM"),
        ("\n", '{"v100": {"LM": 1}}', "empty"),
        ("LM\t1\n", '{"v100": {"LM": 1}}', "line 1.*2 cells.*10 as Gavel"),
    ],
)
def test_files_that_say_nothing_are_refused(tmp_path: Path, trace: str, measured: str, said: str) -> None:
    (tmp_path / "a.trace").write_text(trace, encoding="utf-8")
    (tmp_path / "a.json").write_text(measured, encoding="utf-8")
    with pytest.raises(BadInput, match=f"(?s){said}"):
        read(tmp_path / "a.trace", tmp_path / "a.json")
