"""Pictures of runs and studies show the numbers that they are given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from fairopt import History, plot, run
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.experiment.studies import Observed, Timeline, observe
from fairopt.experiment.studies.playing import HostBar


@pytest.fixture(scope="module")
def seen() -> Observed:
    trace, cluster = philly_trace().as_(float), philly_cluster().as_(float)
    return observe(History.of(trace, cluster, run("srtf", trace, cluster, length=300, rounds=60)))


def test_a_distribution_ends_at_one_and_its_axis_fits_it() -> None:
    axes = plot.cdf({"a": [3, 1, 2], "b": [1, 1000, 10]}, "time", level=2).axes[0]
    a, b, level = axes.get_lines()
    assert a.get_xdata().tolist() == [1, 2, 3]
    assert a.get_ydata().tolist() == [0, 0.5, 1]
    assert b.get_xdata().tolist() == [1, 10, 1000]
    assert level.get_xdata() == [2, 2]
    assert axes.get_xscale() == "log"
    axes.get_figure().canvas.draw()
    assert "1,000" in {each.get_text() for each in axes.get_xticklabels()}  # no formula that a page shows as it stands
    assert plot.cdf({"a": [0, 1, 1000]}, "time").axes[0].get_xscale() == "linear"  # 0 has no logarithm


def test_lines_over_time_are_means_of_equal_parts(seen: Observed) -> None:
    axes = plot.over_time({"srtf": seen.over_time["utilisation"]}, "utilisation").axes[0]
    [stairs] = axes.patches
    values, edges, _ = stairs.get_data()
    assert values.tolist() == list(seen.over_time["utilisation"].values)
    assert edges[-1] == pytest.approx(60 * 300 / 3600)
    assert axes.get_xlabel() == "hours"


def test_a_tenant_is_beside_its_entitlement() -> None:
    held, entitled = Timeline(0, 7200, (2, 4)), Timeline(0, 7200, (3, 3))
    axes = plot.tenant_share(held, entitled, "a").axes[0]
    assert [patch.get_data().values.tolist() for patch in axes.patches] == [[2, 4], [3, 3]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["held", "entitled to"]


def test_hosts_show_every_gpu_that_is_held_once(seen: Observed) -> None:
    axes = plot.gantt(seen.bars, seen.hosts).axes[0]
    corners = [path.vertices for each in axes.collections for path in each.get_paths()]
    assert all(isinstance(each, PolyCollection) for each in axes.collections)
    most = 8  # GPUs on each host
    area = sum(np.ptp(each[:, 0]) * np.ptp(each[:, 1]) for each in corners) / 0.84 * most
    assert area == pytest.approx(sum((bar.end - bar.begin) * bar.gpus for bar in seen.bars) / 3600)
    assert {label.get_text() for label in axes.get_yticklabels()} <= set(seen.hosts)


def test_jobs_on_a_host_never_overlap() -> None:
    bars = [HostBar(0, 0, 3, 1, "a"), HostBar(0, 0, 1, 1, "b"), HostBar(0, 0, 3, 1, "a"), HostBar(0, 1, 2, 2, "b")]
    axes = plot.gantt(bars, ["h"]).axes[0]
    boxes = [path.get_extents() for each in axes.collections for path in each.get_paths()]
    assert sum(box.width * box.height for box in boxes) == pytest.approx(0.84 / 4 * (3 + 1 + 3 + 2) / 3600)
    for number, one in enumerate(boxes):
        for other in boxes[:number]:
            wide = min(one.x1, other.x1) - max(one.x0, other.x0)
            high = min(one.y1, other.y1) - max(one.y0, other.y0)
            assert wide < 1e-12 or high < 1e-12


def test_policies_beside_each_other_and_over_load() -> None:
    axes = plot.tradeoff({"a": (1.0, 2.0), "b": (3.0, 4.0)}, "jct", "fairness").axes[0]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.get_lines()] == [(1, 2), (3, 4)]
    points = {"a": [(1.0, 5.0, 4.0, 7.0), (2.0, 9.0, np.nan, np.nan)]}
    axes = plot.against_load(points, "jct").axes[0]
    line, _, (bars,) = axes.containers[0]
    assert line.get_ydata().tolist() == [5, 9]
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [[4, 7], [9, 9]]
