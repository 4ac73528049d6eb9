"""Statistics of studies: exact numbers, the definitions again in other words, and coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fairopt.errors import BadInput
from fairopt.experiment.statistics import compare_drawn, compare_resampled, expanded, holm, mean_of, mser


def test_a_ratio_is_of_means_and_the_test_is_that_of_paired_differences() -> None:
    a, b = [2.0, 4.0, 6.0, 5.0, 3.0, 7.0], [1.0, 3.0, 4.0, 2.0, 2.0, 3.0]
    found = compare_drawn(a, b)
    assert found.ratio.value == 27 / 15
    assert found.difference.value == 2
    assert found.ratio.p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert found.ratio.low < 1.8 < found.ratio.high
    assert found.pairs == 6
    assert compare_drawn(a, b) == found  # seeded


def test_the_other_way_round_is_the_inverse() -> None:
    random = np.random.default_rng(3)
    a, b = random.lognormal(size=(2, 12))
    one, other = compare_drawn(a, b), compare_drawn(b, a)
    assert other.ratio.value == pytest.approx(1 / one.ratio.value)
    assert (other.ratio.low, other.ratio.high) == pytest.approx((1 / one.ratio.high, 1 / one.ratio.low), rel=1e-4)


def test_the_bootstrap_is_the_percentiles_of_resampled_pairs() -> None:
    a, b = np.random.default_rng(4).lognormal(size=(2, 9))
    rows = np.random.default_rng(5).integers(9, size=(200_000, 9))
    part = (1 - expanded(9)) / 2
    low, high = np.quantile(a[rows].mean(axis=1) / b[rows].mean(axis=1), [part, 1 - part])
    found = compare_drawn(a, b).ratio
    assert (found.low, found.high) == pytest.approx((low, high), rel=0.03)


def test_an_expanded_interval_is_as_wide_as_students() -> None:
    # a bootstrap of n numbers has the deviation s sqrt((n - 1) / n) / sqrt(n)
    for pairs in (5, 10, 30):
        width = stats.norm.ppf((1 + expanded(pairs)) / 2) * math.sqrt((pairs - 1) / pairs)
        assert width == pytest.approx(stats.t.ppf(0.975, pairs - 1))


def test_few_pairs_have_students_interval_and_one_has_none() -> None:
    found = compare_drawn([2.0, 4.0, 6.0], [1.0, 3.0, 4.0])
    spread = np.std(np.array([2, 4, 6]) / 4 - np.array([1, 3, 4]) / (8 / 3), ddof=1) / math.sqrt(3)
    half = stats.t.ppf(0.975, 2) * spread
    assert (found.ratio.low, found.ratio.high) == pytest.approx((1.5 * math.exp(-half), 1.5 * math.exp(half)))
    one = compare_drawn([2.0], [1.0])
    assert one.ratio.value == 2
    assert math.isnan(one.ratio.low)
    assert math.isnan(one.p)
    assert not one.sure
    with pytest.raises(BadInput, match="3 outcomes are compared with 2"):
        compare_drawn([1, 2, 3], [1, 2])
    with pytest.raises(BadInput, match="0 outcomes"):
        compare_drawn([], [])


def test_draws_from_one_trace_are_a_standard_error_and_do_not_narrow_it() -> None:
    a, b = [3.0, 2.0, 4.0, 3.5], [2.0, 1.5, 2.0, 2.5]
    found = compare_resampled(a, b)
    error = np.std(np.log([2 / 1.5, 4 / 2, 3.5 / 2.5]), ddof=1)
    half = stats.t.ppf(0.975, 2) * error
    assert found.ratio.value == 1.5
    assert (found.ratio.low, found.ratio.high) == pytest.approx((1.5 * math.exp(-half), 1.5 * math.exp(half)))
    assert found.ratio.p == pytest.approx(2 * stats.t.sf(math.log(1.5) / error, 2))
    random = np.random.default_rng(1)
    width = {n: np.log(compare_resampled(*random.lognormal(size=(2, n))).ratio.high) for n in (400, 4000)}
    assert width[4000] > 2  # it goes to 1.96 sqrt(2), not to 0
    assert math.isnan(compare_resampled(a[:2], b[:2]).p)


def test_equal_outcomes_and_outcomes_of_zero() -> None:
    same = compare_drawn([1.0, 2.0], [1.0, 2.0])
    assert (same.ratio.value, same.ratio.low, same.ratio.high, same.p) == (1, 1, 1, 1)
    zero = compare_drawn([0.0, 1.0, 0.0, 2.0, 1.0], [5.0, 7.0, 6.0, 5.0, 8.0])
    assert math.isnan(zero.ratio.value)
    assert zero.difference.value == -5.4
    assert zero.difference.high < 0
    assert zero.p == zero.difference.p < 0.01


@pytest.mark.parametrize(("pairs", "p"), [(3, 0.25), (6, 1 / 32)])
def test_pairs_that_all_say_the_same_are_no_proof_where_they_are_few(pairs: int, p: float) -> None:
    """Guards against p = 0 out of three runs; by the sign test it is 2^(1 - n)."""
    assert compare_drawn([5.0] * pairs, [2.0] * pairs).p == p
    drawn = np.linspace(1, 2, pairs + 1)  # a trace, and so many draws from it
    resampled = compare_resampled(1.1 * drawn, drawn)
    assert (resampled.p, resampled.ratio.value) == (p, pytest.approx(1.1))


def test_holm() -> None:
    # worked by hand: 4 x 0.01, 3 x 0.02 = 0.06, 2 x 0.03 is not less than that, 0.5
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([math.nan, 0.01])[1] == 0.01
    assert holm([]) == []


def test_mser_cuts_where_the_error_of_the_mean_is_least() -> None:
    random = np.random.default_rng(2)
    steady = random.normal(10, 1, 100)
    rising = np.concatenate([np.linspace(60, 12, 20), steady])
    assert mser(steady) < 0.2
    assert 0.1 < mser(rising) < 0.3
    assert mser(np.linspace(0, 1, 60).tolist()) > 0.5  # it never settles
    assert math.isnan(mser([1.0] * 9))
    # the definition, in other words: sum of squares over the square of what is left
    means = rising.tolist()
    left = [means[cut:] for cut in range(len(means) - 4)]
    squares = [sum((x - sum(part) / len(part)) ** 2 for x in part) / len(part) ** 2 for part in left]
    assert mser(means) == squares.index(min(squares)) / len(means)


def test_a_mean_has_the_interval_of_its_kind() -> None:
    assert mean_of([2.0, 4.0, 6.0], resampled=False).value == 4
    assert mean_of([2.0, 4.0, 6.0], resampled=True).value == 2
    assert math.isnan(mean_of([2.0], resampled=False).low)
    low = mean_of([1.0, 0.5, 90.0, 2.0], resampled=True).low
    assert low > 0  # in logarithms


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [3, 5, 10, 20])
@pytest.mark.parametrize(("spread", "common"), [(0.3, 0.5), (0.8, 0.8)])
def test_intervals_of_ratios_cover_the_truth(pairs: int, spread: float, common: float) -> None:
    """Of 95% intervals, at least 90% hold the true ratio: lognormal outcomes, skewed, that share their trace's part."""
    random = np.random.default_rng(7)
    hits, tries = 0, 600
    for _ in range(tries):
        own, shared = random.standard_normal((2, pairs)), random.standard_normal(pairs)
        a, b = np.exp(spread * (math.sqrt(common) * shared + math.sqrt(1 - common) * own))
        found = compare_drawn(1.3 * a, b).ratio
        hits += found.low <= 1.3 <= found.high
    assert 0.9 <= hits / tries <= 0.995


@pytest.mark.slow
def test_equal_policies_are_rarely_called_different() -> None:
    """Where nobody is better, at most 5% of families of 10 comparisons find somebody; with an allowance of 2%."""
    random = np.random.default_rng(8)
    wrong, tries = 0, 300
    for _ in range(tries):
        runs = np.exp(0.5 * (random.standard_normal((5, 8)) + random.standard_normal(8)))
        p = [compare_drawn(runs[i], runs[j]).p for i in range(5) for j in range(i)]
        wrong += min(holm(p)) < 0.05
    assert wrong / tries <= 0.07
