"""Journals of results: what a line may hold, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench_records import environment, measurement

from fairopt.errors import BadInput
from fairopt.experiment.bench.records import KINDS
from fairopt.experiment.journal import line_of, record_in


@pytest.mark.parametrize("kind", ["[1]", "{}", "null", '"other"'])
def test_a_kind_that_there_is_not_is_refused(kind: str) -> None:
    with pytest.raises(BadInput, match="kind"):
        record_in(f'{{"schema": 1, "kind": {kind}}}', KINDS, "line 1")


def test_what_no_utf8_has_is_written_and_read_back() -> None:
    record = replace(measurement(environment()), message="no such file: \ud800")
    assert record_in(line_of(record).encode().decode(), KINDS) == record
