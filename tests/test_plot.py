"""The pictures show what was decided: bars are shares, lines are gains that can be recomputed."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from fairopt import allocate, envy_graph, plot
from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.benchmarks.float_samples import large_market, rising
from fairopt.datasets import gavel_example, oef_eq6, oef_example
from fairopt.errors import BadInput, NotInstalled
from fairopt.models import CooperativeOEF, EqualSplit, MaxEfficiency, MaxMin, SecondPriceTrading
from fairopt.policy import Allocation, Policy
from fairopt.problem import Market


def widths(ax: Any) -> np.ndarray:
    """The bars' widths (n, k)."""
    return np.array([[bar.get_width() for bar in part] for part in ax.containers]).T


def line(figure: Figure, label: str) -> Any:
    return next(each for each in figure.axes[0].get_lines() if each.get_label() == label)


def legend_texts(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def ratios(decision: Allocation) -> list[str]:
    ratio = decision.utilities.astype(float) / decision.market.fair_utility().astype(float)
    return [f"{value:.2f}" for value in ratio]


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """The pairs of texts (titles, ticks, notes, legends) that lie over each other."""
    figure.draw_without_rendering()
    texts = {id(text): text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()}
    shown = [text for text in texts.values() if text.axes is None or text.axes.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown]
    return [(a, b) for i, (a, one) in enumerate(boxes) for b, other in boxes[:i] if one.padded(-1).overlaps(other)]


# -- who gets what -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", [Highs(), Exact()], ids=lambda backend: backend.name)
def test_bars_are_shares(backend: Any) -> None:
    decision = allocate(CooperativeOEF(), gavel_example(), backend)
    (ax,) = plot.shares(decision).axes
    assert widths(ax) == pytest.approx(decision.shares.astype(float))
    lefts = np.array([[bar.get_x() for bar in part] for part in ax.containers]).T
    assert lefts[:, 1:] == pytest.approx(np.cumsum(widths(ax), axis=1)[:, :-1])
    assert [label.get_text() for label in ax.get_yticklabels()] == list(decision.market.users)
    assert [note.get_text() for note in ax.texts] == ratios(decision)
    assert legend_texts(ax.get_legend()) == ["K80 (36)", "P100 (20)", "V100 (12)"]
    assert ax.get_xlabel().startswith("GPUs")
    assert "oef-cooperative" in ax.get_title(loc="left")
    assert ax.get_xlim()[1] > decision.shares.sum(axis=1).max()
    assert ax.yaxis.get_inverted()  # the first user is on top


def test_some_users_in_the_given_order() -> None:
    decision = allocate(SecondPriceTrading(), oef_example())
    (ax,) = plot.shares(decision, users=["u3", 0]).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["u3", "u1"]
    assert widths(ax) == pytest.approx(decision.shares[[2, 0]].astype(float))
    assert [note.get_text() for note in ax.texts] == [ratios(decision)[2], ratios(decision)[0]]


def test_own_axes() -> None:
    figure = Figure()
    ax = figure.subplots()
    assert plot.shares(allocate(EqualSplit(), oef_example()), ax=ax) is figure
    assert plot.misreport(EqualSplit(), oef_example(), "u1", "GPU2", [1, 2], ax=Figure().subplots()) is not figure


def test_nobody_gets_anything() -> None:
    market = oef_example()
    decision = Allocation("nothing", market, np.zeros(market.shape), 0.0)
    (ax,) = plot.shares(decision).axes
    assert [note.get_text() for note in ax.texts] == ["0.00"] * 3


@pytest.mark.parametrize(
    ("users", "types"), [(3, 2), (8, 3), *(pytest.param(30, each, marks=pytest.mark.slow) for each in (4, 10))]
)
def test_no_text_lies_over_another(users: int, types: int) -> None:
    decision = allocate(CooperativeOEF(), large_market(users, types, rising))
    assert overlapping(plot.shares(decision)) == []
    assert overlapping(plot.compare_shares([decision] * 5)) == []


def test_long_names_keep_their_ends() -> None:
    names = [f"a model of a rather long name (batch size {size})" for size in (16, 32)]
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1], users=names)
    (ax,) = plot.shares(allocate(EqualSplit(), market)).axes
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert [name[-3:] for name in shown] == ["16)", "32)"]
    assert max(map(len, shown)) <= plot.LONGEST_NAME


def test_many_types_are_told_apart() -> None:
    decision = allocate(EqualSplit(), large_market(2, 12, rising))
    (ax,) = plot.shares(decision).axes
    looks = {(part[0].get_facecolor(), part[0].get_hatch()) for part in ax.containers}
    assert len(looks) == 12


def test_panels_on_one_scale() -> None:
    decisions = [allocate(policy, oef_example()) for policy in (SecondPriceTrading(), MaxMin(), MaxEfficiency())]
    figure = plot.compare_shares(decisions)
    assert [ax.get_title(loc="left") for ax in figure.axes] == [decision.policy for decision in decisions]
    assert len({ax.get_xlim() for ax in figure.axes}) == 1
    for ax, decision in zip(figure.axes, decisions, strict=True):
        assert widths(ax) == pytest.approx(decision.shares.astype(float))
        assert [note.get_text() for note in ax.texts] == ratios(decision)
        assert ax.get_xlabel() == "GPUs"
    assert legend_texts(figure.legends[0]) == ["GPU1 (1)", "GPU2 (1)"]


def test_panels_with_titles_and_an_empty_place() -> None:
    decision = allocate(EqualSplit(), oef_example())
    figure = plot.compare_shares(dict.fromkeys("abcde", decision))
    assert [ax.get_title(loc="left") for ax in figure.axes if ax.get_visible()] == list("abcde")
    assert [ax.get_xlabel() for ax in figure.axes[:5]] == ["", "", "GPUs", "GPUs", "GPUs"]


def test_bad_shares() -> None:
    decision = allocate(EqualSplit(), oef_example())
    with pytest.raises(BadInput, match="no user 'u9'"):
        plot.shares(decision, users=["u9"])
    with pytest.raises(BadInput, match="got 0 users"):
        plot.shares(decision, users=[])
    with pytest.raises(BadInput, match="got 201 users to draw"):
        plot.shares(allocate(EqualSplit(), large_market(201, 1, rising)))
    with pytest.raises(BadInput, match="no decisions"):
        plot.compare_shares([])
    with pytest.raises(BadInput, match="same users and types"):
        plot.compare_shares([decision, allocate(EqualSplit(), oef_eq6())])


# -- what a misreport gains --------------------------------------------------------------------------------------
@pytest.mark.parametrize("policy", [CooperativeOEF(), SecondPriceTrading(), EqualSplit()], ids=lambda each: each.name)
def test_lines_are_gains(policy: Policy) -> None:
    market = oef_example()
    reports = [2.8, 1.5, 2, 3.5]
    drawn = line(plot.misreport(policy, market, "u1", "GPU2", reports), policy.name)
    assert drawn.get_xdata().tolist() == sorted(reports)
    honest = float(allocate(policy, market).utilities[0])
    for report, gain in zip(*drawn.get_data(), strict=True):
        told = allocate(policy, market.misreport("u1", [1, report])).shares.astype(float)
        assert gain == pytest.approx(100 * (float((told[0] * [1, 2]).sum()) / honest - 1), abs=1e-6)


def test_the_gain_that_oef_prints() -> None:
    """OEF Sec. 3.1: a user that reports 4 instead of 2 gains 16.7%."""
    figure = plot.misreport(CooperativeOEF(), oef_eq6(), "u1", "GPU2", [2, 4], Exact())
    assert line(figure, "oef-cooperative").get_ydata() == pytest.approx([0, 100 / 6])


def test_truth_honesty_and_labels() -> None:
    figure = plot.misreport(CooperativeOEF(), oef_example(), 0, "GPU2")
    (ax,) = figure.axes
    assert line(figure, "truth: 2").get_xdata() == [2, 2]
    assert line(figure, "honest level").get_ydata() == [0, 0]
    assert "reported speedup on GPU2" in ax.get_xlabel()
    assert "%" in ax.get_ylabel()
    assert all(word in ax.get_title(loc="left") for word in ("u1", "GPU2", "oef-cooperative"))
    (shaded,) = ax.collections
    corners = shaded.get_paths()[0].vertices
    drawn = line(figure, "oef-cooperative")
    assert corners[:, 0].min() >= 2
    assert corners[:, 1].max() == pytest.approx(max(drawn.get_ydata()))
    assert 2 in drawn.get_xdata()
    assert drawn.get_xdata()[[0, -1]].tolist() == [1, 4]
    # the order of users changes where u1 reports u2's speedup
    assert {2.997, 3.003} <= set(drawn.get_xdata().round(6))
    assert overlapping(figure) == []


def test_several_policies_look_different() -> None:
    policies = [SecondPriceTrading(), MaxMin(), CooperativeOEF(), EqualSplit()]
    figure = plot.misreport(policies, oef_example(), "u1", "GPU2", [1, 2, 3])
    drawn = [line(figure, policy.name) for policy in policies]
    assert len({to_rgb(each.get_color()) for each in drawn}) == 4
    assert len({str(each.get_linestyle()) + str(each._unscaled_dash_pattern) for each in drawn}) == 4
    assert legend_texts(figure.axes[0].get_legend())[2:] == [policy.name for policy in policies]


def test_a_policy_that_never_rewards_is_flat() -> None:
    figure = plot.misreport(EqualSplit(), oef_example(), "u1", "GPU2")
    assert figure.axes[0].get_ylim() == (-1, 1)
    assert "gain" not in legend_texts(figure.axes[0].get_legend())


def test_a_type_that_the_user_cannot_run_on() -> None:
    market = Market.of([[1, 0], [1, 2]], capacity=[1, 1], types=["old", "new"])
    drawn = line(plot.misreport(MaxMin(), market, "u1", "new"), "max-min")
    assert drawn.get_xdata()[[0, -1]].tolist() == [0, 1]
    assert drawn.get_ydata()[0] == pytest.approx(0)


def test_bad_misreports() -> None:
    market = oef_example()
    with pytest.raises(BadInput, match="no user 'u4'"):
        plot.misreport(EqualSplit(), market, "u4", "GPU2")
    with pytest.raises(BadInput, match=r"no type 'GPU3'.*Did you mean"):
        plot.misreport(EqualSplit(), market, "u1", "GPU3")
    with pytest.raises(BadInput, match="max-efficiency gives 'u2' no throughput"):
        plot.misreport(MaxEfficiency(), market, "u2", "GPU2")


# -- the library -------------------------------------------------------------------------------------------------
def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = allocate(EqualSplit(), oef_example())
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: plot.shares(decision),
        lambda: plot.compare_shares([decision]),
        lambda: plot.misreport(EqualSplit(), oef_example(), "u1", "GPU2", [1]),
    ):
        with pytest.raises(NotInstalled, match=r"pip install 'fairopt\[plot\]'"):
            draw()


def test_saved_without_pyplot(tmp_path: Path) -> None:
    before = "matplotlib.pyplot" in sys.modules
    plot.shares(allocate(EqualSplit(), oef_example())).savefig(tmp_path / "shares.png")
    assert (tmp_path / "shares.png").read_bytes().startswith(b"\x89PNG")
    assert ("matplotlib.pyplot" in sys.modules) == before


@pytest.mark.parametrize("how", [{"dpi": 200}, {"dpi": 72, "bbox_inches": "tight"}], ids=["large", "as-notebooks-do"])
def test_arrows_of_graphs_have_heads_at_any_size(how: dict[str, Any]) -> None:
    """In notebooks the heads lay under the boxes: arrows ended where these stood at another resolution."""
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    figure = plot.graph(envy_graph(market, [[1, 0], [0, 1]]))  # one above the other: heads are wider than lines
    picture = io.BytesIO()
    figure.savefig(picture, format="png", **how)
    picture.seek(0)
    red, green, blue, _ = np.moveaxis(np.array(image.imread(picture)), 2, 0)
    of_arrow = (blue - red > 0.5) & (green - red > 0.3)
    across = of_arrow.sum(axis=1)
    assert across.max() >= 2.5 * np.median(across[across > 0])
