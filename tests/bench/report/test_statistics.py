"""Statistics of a benchmark against hand-computed examples and their definitions by brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.errors import BadInput
from fairopt.experiment.bench import timing

times = st.floats(1e-6, 1e6)
#: Times of (contenders, instances) with their flags, ties being likely.
tables = st.integers(1, 4).flatmap(
    lambda across: st.lists(
        st.lists(
            st.tuples(st.one_of(st.sampled_from([1.0, 2.0, 4.0, 0.0]), times), st.booleans()),
            min_size=across,
            max_size=across,
        ),
        min_size=1,
        max_size=5,
    )
)


class TestMeans:
    def test_by_hand(self) -> None:
        # (1 + 10)(21 + 10)(90 + 10) = 34,100
        assert timing.shifted_geometric_mean([1, 21, 90], 10) == pytest.approx(34100 ** (1 / 3) - 10)
        assert timing.shifted_geometric_mean([2, 8], 0) == pytest.approx(4)

    @given(st.lists(times, min_size=1, max_size=8), st.floats(1e-3, 1e3))
    def test_between_the_geometric_and_the_arithmetic_mean(self, values: list[float], shift: float) -> None:
        mean = timing.shifted_geometric_mean(values, shift)
        plain = timing.shifted_geometric_mean(values, 0)
        assert plain * (1 - 1e-9) <= mean <= np.mean(values) * (1 + 1e-9)

    def test_times_far_below_the_shift_keep_their_digits(self) -> None:
        assert timing.shifted_geometric_mean([3e-9, 3e-9], 10) == pytest.approx(3e-9, rel=1e-12)

    def test_zero_times(self) -> None:
        assert timing.shifted_geometric_mean([0, 0], 1) == 0
        assert timing.shifted_geometric_mean([0, 5], 0) == 0
        assert timing.shifted_geometric_mean([0, 3], 1) == pytest.approx(1)  # sqrt(1 * 4) - 1

    def test_one_time_is_its_own_mean(self) -> None:
        assert timing.shifted_geometric_mean([7.5], 10) == pytest.approx(7.5)

    @pytest.mark.parametrize(
        ("values", "shift"), [([], 1), ([1], -1), ([1], math.nan), ([1], math.inf), ([-1], 1), ([math.nan], 1)]
    )
    def test_what_has_no_mean(self, values: list[float], shift: float) -> None:
        with pytest.raises(BadInput):
            timing.shifted_geometric_mean(values, shift)

    def test_words_are_no_times(self) -> None:
        with pytest.raises(BadInput, match="not numbers"):
            timing.seconds_of(["quick"])  # type: ignore[list-item]

    def test_unsolved_counts_at_the_limit(self) -> None:
        assert timing.penalised([1, math.nan, 3, 11], [True, False, True, True], 10).tolist() == [1, 10, 3, 10]

    def test_nothing_solved(self) -> None:
        counted = timing.penalised([math.nan, math.nan], [False, False], 10)
        assert timing.shifted_geometric_mean(counted, 1) == pytest.approx(10)

    @given(st.lists(times, min_size=1, max_size=6), st.data())
    def test_failing_never_pays(self, values: list[float], data: st.DataObject) -> None:
        solved = [data.draw(st.booleans()) for _ in values]
        one = data.draw(st.integers(0, len(values) - 1))
        fewer = [flag and place != one for place, flag in enumerate(solved)]
        with_it, without = (
            timing.shifted_geometric_mean(timing.penalised(values, flags, 5), 1) for flags in (solved, fewer)
        )
        assert with_it <= without * (1 + 1e-12)

    @pytest.mark.parametrize("limit", [0, -1, math.inf, math.nan])
    def test_a_limit_is_positive_and_finite(self, limit: float) -> None:
        with pytest.raises(BadInput, match="time limit"):
            timing.penalised([1], [True], limit)

    def test_medians(self) -> None:
        assert timing.median_of([3, 1, 2]) == 2
        assert math.isnan(timing.median_of([]))


class TestRatios:
    def test_by_hand_over_the_common_instances(self) -> None:
        found = timing.ratios(
            [2, 8, 5, math.nan, 1],
            [1, 1, math.nan, 5, 1],
            [True, True, True, False, True],
            [True, True, False, True, True],
        )
        assert found.tolist() == pytest.approx([2, 8, 1])
        mean = timing.geometric_mean(found)
        assert mean.count == 3
        assert mean.value == pytest.approx(16 ** (1 / 3))
        assert 1 <= mean.low <= mean.value <= mean.high <= 8

    def test_no_pair(self) -> None:
        found = timing.ratios([1.0], [2.0], [True], [False])
        assert not len(found)
        mean = timing.geometric_mean(found)
        assert mean.count == 0
        assert math.isnan(mean.value)

    def test_one_pair_has_no_interval(self) -> None:
        found = timing.geometric_mean(timing.ratios([3.0], [2.0], [True], [True]))
        assert found.value == pytest.approx(1.5)
        assert math.isnan(found.low)
        assert math.isnan(found.high)

    def test_zero_times_are_the_clocks_step(self) -> None:
        assert timing.ratios([0.0], [0.0], [True], [True]).tolist() == [1]
        assert timing.ratios([1.0], [0.0], [True], [True]).tolist() == [pytest.approx(1 / timing.CLOCK_STEP)]

    @given(st.lists(st.tuples(times, times), min_size=1, max_size=6))
    def test_turned_round_it_is_the_inverse(self, pairs: list[tuple[float, float]]) -> None:
        ours, theirs = map(list, zip(*pairs, strict=True))
        flags = [True] * len(pairs)
        there, back = timing.ratios(ours, theirs, flags, flags), timing.ratios(theirs, ours, flags, flags)
        assert timing.geometric_mean(there).value * timing.geometric_mean(back).value == pytest.approx(1)
        assert there.min() * back.max() == pytest.approx(1)

    def test_the_interval_is_the_same_each_time_and_covers(self) -> None:
        rng = np.random.default_rng(3)
        covered = 0
        for _ in range(60):
            values, ones, flags = np.exp(rng.normal(0.4, 1, size=40)), np.ones(40), [True] * 40
            found, again = (timing.geometric_mean(timing.ratios(values, ones, flags, flags)) for _ in range(2))
            assert found == again
            covered += found.low <= math.exp(0.4) <= found.high
        assert 50 <= covered <= 60  # 95% of 60 are 57

    def test_lengths_must_agree(self) -> None:
        with pytest.raises(BadInput, match="compared"):
            timing.ratios([1.0, 2.0], [1.0], [True, True], [True])


class TestNoise:
    def test_a_steady_machine_has_none(self) -> None:
        found = timing.noise([0.5] * 4)
        assert (found.count, found.value, found.low, found.high) == (4, 0.5, 0.5, 0.5)

    def test_by_hand(self) -> None:
        found = timing.noise([1, 2, 4])
        assert (found.count, found.value) == (3, 2)
        assert (found.low, found.high) == pytest.approx((1.1, 3.8))

    @pytest.mark.parametrize("values", [[], [0.0, 1.0]])
    def test_no_reference(self, values: list[float]) -> None:
        with pytest.raises(BadInput, match="reference job"):
            timing.noise(values)


class TestProfiles:
    def test_by_hand(self) -> None:
        # three contenders, four instances; the last nobody solved, the second is a tie, the third one solved alone
        first, second, third = timing.to_the_best(
            [[1, 2, 9, 9], [2, 2, 9, 9], [4, 6, 3, 9]],
            [[True, True, False, False], [True, True, False, False], [True, True, True, False]],
        )
        assert [timing.within(first, f) for f in (0.5, 1, 100)] == [0, 0.5, 0.5]
        assert [timing.within(second, f) for f in (1, 1.99, 2)] == [0.25, 0.25, 0.5]
        assert [timing.within(third, f) for f in (1, 3, 4, math.inf)] == [0.25, 0.5, 0.75, 0.75]

    @given(tables, st.floats(1, 1e3))
    def test_the_definition(self, table: list[list[tuple[float, bool]]], factor: float) -> None:
        seconds = [[time for time, _ in row] for row in table]
        solved = [[flag for _, flag in row] for row in table]
        step = timing.CLOCK_STEP
        for row, flags, factors in zip(seconds, solved, timing.to_the_best(seconds, solved), strict=True):
            count = 0
            for place, (time, flag) in enumerate(zip(row, flags, strict=True)):
                rivals = [max(other[place], step) for other, done in zip(seconds, solved, strict=True) if done[place]]
                count += flag and max(time, step) / min(rivals, default=math.inf) <= factor
            assert timing.within(factors, factor) == pytest.approx(float(Fraction(count, len(row))))

    @given(tables)
    def test_it_climbs_from_one_to_what_was_solved(self, table: list[list[tuple[float, bool]]]) -> None:
        seconds = [[time for time, _ in row] for row in table]
        solved = [[flag for _, flag in row] for row in table]
        found = timing.to_the_best(seconds, solved)
        for each, flags in zip(found, solved, strict=True):
            factors, parts = timing.profile(each)
            assert factors[0] == 1
            assert np.all(np.diff(factors) > 0)
            assert np.all(np.diff(parts) > 0)
            assert parts[-1] == pytest.approx(np.mean(flags))
        somebody = np.any(solved, axis=0)
        assert sum(timing.within(each, 1) for each in found) >= np.mean(somebody) - 1e-12  # each has a best

    def test_the_time_of_a_failure_is_not_looked_at(self) -> None:
        factors = timing.to_the_best([[math.nan], [2.0]], [[False], [True]])
        assert factors.tolist() == [[math.inf], [1.0]]

    @pytest.mark.parametrize(
        ("seconds", "solved"),
        [([], []), ([[]], [[]]), ([[1.0]], [[True, True]]), ([[-1.0]], [[True]]), ([[math.nan]], [[True]])],
    )
    def test_what_has_no_profile(self, seconds: list[list[float]], solved: list[list[bool]]) -> None:
        with pytest.raises(BadInput):
            timing.to_the_best(seconds, solved)


class TestGrowth:
    @given(st.floats(1e-9, 1e3), st.floats(-1, 4))
    def test_an_exact_power_is_found(self, constant: float, exponent: float) -> None:
        sizes = np.array([10.0, 20.0, 50.0, 100.0])
        seconds = constant * sizes**exponent
        if seconds.min() < timing.CLOCK_STEP:
            return
        found = timing.fit(sizes, seconds)
        assert found.exponent == pytest.approx(exponent, abs=1e-9)
        assert found.constant == pytest.approx(constant, rel=1e-6)
        assert found.error < 1e-6
        assert found.at(20) == pytest.approx(seconds[1])

    def test_by_hand_with_scatter(self) -> None:
        # logarithms to base 10: x = 0, 1, 2, 3 and y = 0, 1, 3, 4: slope 1.4, squares left 0.2, error sqrt(.1 / 5)
        found = timing.fit([1, 10, 100, 1000], [1, 10, 1000, 10000])
        assert found.exponent == pytest.approx(1.4)
        assert found.error == pytest.approx(math.sqrt(0.02))
        assert found.high - found.exponent == pytest.approx(4.302652729749 * math.sqrt(0.02))
        assert (found.points, found.sizes, found.smallest, found.largest) == (4, 4, 1, 1000)

    @pytest.mark.parametrize("sizes", [[], [10], [10, 20], [10, 10, 20, 20, 20]])
    def test_too_few_sizes(self, sizes: list[float]) -> None:
        with pytest.raises(BadInput, match=f"{len(set(sizes))} distinct size"):
            timing.fit(sizes, [1.0] * len(sizes))

    @pytest.mark.parametrize(
        ("sizes", "seconds"), [([0, 1, 2], [1, 1, 1]), ([1, 2, 3], [1, 1]), ([1, 2, 3], [-1, 1, 1])]
    )
    def test_bad_input(self, sizes: list[float], seconds: list[float]) -> None:
        with pytest.raises(BadInput):
            timing.fit(sizes, seconds)

    def test_nothing_is_said_beyond_the_measured_range(self) -> None:
        found = timing.fit([10, 20, 40], [1, 2, 4])
        with pytest.raises(BadInput, match="not a measurement"):
            found.at(41)

    def test_zero_times_are_the_clocks_step(self) -> None:
        found = timing.fit([10, 20, 40], [0, 0, 0])
        assert (found.exponent, found.low, found.high) == pytest.approx((0, 0, 0), abs=1e-9)
