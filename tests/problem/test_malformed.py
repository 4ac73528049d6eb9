"""A thousand broken market files: each is refused with an error that names the file and a place, and no other way."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from malformed import malformed_market_texts

from fairopt.errors import BadInput
from fairopt.problem import read_market

AT_LEAST = [100, pytest.param(1_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("at_least", AT_LEAST)
def test_malformed_files_are_refused(at_least: int, tmp_path: Path) -> None:
    refused: set[tuple[str, bytes]] = set()
    messages: set[str] = set()

    @settings(
        max_examples=at_least + at_least // 2,  # some of them repeat
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(malformed_market_texts())
    def refuse(pair: tuple[str, bytes]) -> None:
        suffix, text = pair
        path = tmp_path / f"market{suffix}"
        path.write_bytes(text)
        with pytest.raises(BadInput) as caught:
            read_market(path)
        error = caught.value
        assert error.file == str(path)
        assert error.place, f"no place in {error}"
        assert error.remedy, f"no remedy in {error}"
        assert str(error).startswith(f"{path}: {error.place}: ")
        assert len(str(error)) < 1_000 + len(str(path))
        str(error).encode("utf-8")
        refused.add(pair)
        messages.add(error.problem)

    refuse()
    assert len(refused) >= at_least
    by_suffix = Counter(suffix for suffix, _ in refused)
    assert set(by_suffix) == {".toml", ".json", ".csv"}
    assert min(by_suffix.values()) >= at_least // 10, by_suffix
    print(f"{len(refused)} malformed files refused: {dict(by_suffix)}, {len(messages)} messages")
    assert len(messages) >= at_least // 10  # not one error for everything


@pytest.mark.parametrize("suffix", [".toml", ".json", ".csv"])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 5, 8])
def test_any_bytes_give_a_market_or_bad_input(tmp_path: Path, suffix: str, length: int) -> None:
    path = tmp_path / f"noise{suffix}"
    for start in (b"", b"\xef\xbb\xbf", b"user", b"schema", b'{"schema"', b"[[user"):
        path.write_bytes(start + bytes(range(120, 120 + length)))
        with pytest.raises(BadInput):
            read_market(path)


def test_a_file_that_is_too_large_is_refused_without_being_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairopt.problem.files.storage.LARGEST_FILE", 1 << 20)
    path = tmp_path / "large.json"
    path.write_bytes(b"[" * (8 << 20))
    tracemalloc.start()
    with pytest.raises(BadInput, match="more than 1 MB"):
        read_market(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20  # a little over the limit is read, never the whole file
