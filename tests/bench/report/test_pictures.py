"""What a report is made of: numbers and names in few letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.experiment.plot.figures import LONGEST_NAME, short_name
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

    def test_long_names_lose_their_middle(self) -> None:
        assert short_name("short") == "short"
        assert len(short_name("x" * 99 + "end")) == LONGEST_NAME
        assert short_name("x" * 99 + "end").endswith("end")

    @given(st.floats(1e-12, 1e12))
    def test_three_digits_are_right(self, value: float) -> None:
        assert float(digits(value).replace(",", "")) == pytest.approx(value, rel=5.01e-3)
