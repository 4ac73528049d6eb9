"""What a report is made of: numbers in few letters, names that do not overlap."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.experiment.bench.pictures import LONGEST, shortened, spread
from fairopt.experiment.words import bytes_text, digits, seconds_text


class TestWords:
    @pytest.mark.parametrize(
        ("value", "said"),
        [(0, "0 s"), (1.234e-7, "0.123 µs"), (4.56e-3, "4.56 ms"), (0.99999, "1.00 s"), (12.345, "12.3 s"),
         (999.96, "1,000 s"), (12345, "12,300 s"), (float("nan"), "–")],
    )  # fmt: skip
    def test_seconds(self, value: float, said: str) -> None:
        assert seconds_text(value).replace("\u00a0", " ") == said

    def test_bytes(self) -> None:
        found = [bytes_text(value).replace("\u00a0", " ") for value in (None, 0, 123456, 8e9)]
        assert found == ["–", "0 MB", "0.123 MB", "8.00 GB"]

    @given(st.lists(st.floats(0, 100), max_size=12))
    def test_names_keep_their_distance_and_order(self, places: list[float]) -> None:
        found = spread(sorted(places), 5, 0, 100)
        assert all(later - earlier >= 5 - 1e-9 for earlier, later in pairwise(found))
        assert all(-1e-9 <= place <= 100 + 1e-9 for place in found)

    def test_names_with_room_stay_where_they_are(self) -> None:
        assert spread([10, 20, 90], 5, 0, 100) == [10, 20, 90]
        assert spread([50, 50], 10, 0, 100) == [45, 55]

    def test_long_names_lose_their_middle(self) -> None:
        assert shortened("short") == "short"
        assert len(shortened("x" * 99 + "end")) == LONGEST
        assert shortened("x" * 99 + "end").endswith("end")

    @given(st.floats(1e-12, 1e12))
    def test_three_digits_are_right(self, value: float) -> None:
        assert float(digits(value).replace(",", "")) == pytest.approx(value, rel=5.01e-3)
