"""What a report is made of: text that stays text, numbers in few letters, names that do not overlap."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.bench.report_html import UNWRITABLE, Html, element, joined
from fairopt.bench.report_pictures import LONGEST, shortened, spread
from fairopt.bench.report_words import bytes_text, digits, seconds_text


class Reader(HTMLParser):
    """Read back what was written."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


class TestText:
    @given(st.text(), st.text())
    def test_text_of_any_kind_stays_text(self, name: str, value: str) -> None:
        reader = Reader(element("p", name, title=value))
        assert "".join(reader.words) == UNWRITABLE.sub("\ufffd", name)
        assert reader.tags == [("p", [("title", UNWRITABLE.sub("\ufffd", value))])]

    def test_what_is_html_already_is_left(self) -> None:
        assert joined("<", Html("<br>"), None, 3) == "&lt;<br>3"
        assert element("td", class_="n", aria_label=None, hidden=True) == '<td class="n" hidden></td>'

    def test_what_cannot_be_written_is_replaced(self) -> None:
        assert element("p", "a\x00\x1b\ud800b\n") == "<p>a\ufffd\ufffd\ufffdb\n</p>"


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
