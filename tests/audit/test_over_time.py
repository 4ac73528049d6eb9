"""Audits of several moments: sums decided again by hand, moments of names and times, and text for Prometheus."""

from __future__ import annotations

import json
import os
import random
import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from clusters import GANGS, cluster
from drawn_seeds import seeds
from typer.testing import CliRunner

from fairopt.audit import EntitlementStatus, audit
from fairopt.audit.metrics import metrics
from fairopt.audit.series import audit_over_time, moments_of
from fairopt.audit.series_page import series_page
from fairopt.cli.app import app
from fairopt.errors import BadInput
from fairopt.problem import Entitlements, Market, write_market
from fairopt.properties import Answer

START = datetime(2026, 11, 28, 8, tzinfo=UTC)


def _moments(seed: int, count: int = 6) -> dict[datetime, Market]:
    """Return a cluster at random moments, with some of its gangs each."""
    draw = random.Random(seed)
    at, found = START, {}
    for _ in range(count):
        gangs = [gang for gang in GANGS if draw.random() < 0.7]
        found[at] = cluster(gangs or GANGS[:1], fixed=())
        at += timedelta(seconds=draw.randint(1, 9000))
    return found


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_the_sums_are_those_of_the_single_audits(seed: int) -> None:
    moments = _moments(seed)
    found = audit_over_time(moments)
    starved: dict[str, Fraction] = defaultdict(Fraction)
    sums: dict[tuple[str, str, str], Fraction] = defaultdict(Fraction)
    times = list(moments)
    audits = {at: audit(market, policies=[]) for at, market in moments.items()}
    for at, then in pairwise(times):
        seconds = Fraction((then - at).total_seconds())
        for row in audits[at].rows:
            starved[row.name] += seconds * (row.status is EntitlementStatus.STARVED)
            for own in row.types:
                for key in ("holds", "owed", "borrows", "short"):
                    sums[row.name, own.type, key] += seconds * Fraction(getattr(own, key))
    for name in found.names:
        assert sum(found.starved_seconds(name)) == starved[name]
        for key in ("holds", "owed", "borrows", "short"):
            told = found.gpu_seconds(name, key)
            assert all(told.get(kind, 0) == sums[name, kind, key] for kind in found.types)
    # spans do not touch, and say what each moment says
    for name in found.names:
        spans = found.starved(name)
        assert all(one[1] is not None and one[1] < other[0] for one, other in pairwise(spans))
        for at in times:
            inside = any(begun <= at and (end is None or at < end) for begun, end in spans)
            assert inside is (audits[at].row(name).status is EntitlementStatus.STARVED)


def test_changes_of_answers_and_of_what_is_broken_have_their_moments() -> None:
    def held(gpus: int) -> Market:
        owed = Entitlements.of(["A"], ["H100"], guarantee={"A": [4]}, cap={"A": [6]}, held={"A": [gpus]})
        return Market.of([[1]], [8], users=["A"], types=["H100"], entitlements=owed)

    hours = [START + timedelta(hours=hour) for hour in range(4)]
    given = dict(zip(hours, map(held, (4, 7, 8, 6)), strict=True))
    found = audit_over_time(given, properties=["cap_kept"])
    assert found.changes == [
        (hours[1], "cap_kept", Answer.HOLDS, Answer.FAILS),
        (hours[3], "cap_kept", Answer.FAILS, Answer.HOLDS),
    ]
    assert [(at, begins) for at, _, begins in found.broken] == [(hours[1], True), (hours[3], False)]
    assert found.gpu_seconds("A", "borrows") == {"H100": (3 + 4) * 3600}


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("2026-11-28T10:30.json", "2026-11-28T10:30:00+00:00"),
        ("kueue-20261128-103059.json", "2026-11-28T10:30:59+00:00"),
        ("2026-11-28_1030", "2026-11-28T10:30:00+00:00"),
        ("now 2026-11-28 10.30.yaml", "2026-11-28T10:30:00+00:00"),
        ("2026-11-28T10:30Z.json", "2026-11-28T10:30:00+00:00"),
        ("2026-11-28T10:30+01:00.json", "2026-11-28T09:30:00+00:00"),
    ],
)
def test_a_name_has_its_moment(name: str, moment: str) -> None:
    [at, _] = moments_of([name, "1999-01-01T00:00"])
    assert at == datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["2026-11-28T10:30.json", "now.json"], "its name does not begin with a date, as others do"),
        (["2026-11-28T10:30.json", "2026-11-28T10:30.yaml"], "is the moment of .*too"),
        (["2026-13-28T10:30.json", "x.json"], "is no moment"),
        (["absent.json", "other.json"], "Give a file that is there"),
    ],
)
def test_moments_that_cannot_be_told_are_refused(names: list[str], words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        moments_of(names)
    assert caught.value.remedy
    assert caught.value.file in names


def test_one_moment_is_refused() -> None:
    with pytest.raises(BadInput, match="1 moment"):
        audit_over_time({START: cluster()})


def _written(folder: Path, seed: int = 0) -> dict[datetime, Market]:
    moments = _moments(seed)
    for at, market in moments.items():
        write_market(market, folder / f"{at:%Y-%m-%dT%H%M%S}.toml")
    return moments


def test_files_folders_and_times_of_writing_say_the_same(tmp_path: Path) -> None:
    """A folder of files, the files, folders with one each, and files without a moment in their names."""
    plain, inside, unnamed = (tmp_path / name for name in ("plain", "inside", "unnamed"))
    for folder in (plain, inside, unnamed):
        folder.mkdir()
    moments = _written(plain)
    for number, (at, market) in enumerate(moments.items()):
        (inside / f"{at:%Y%m%d-%H%M%S}").mkdir()
        write_market(market, inside / f"{at:%Y%m%d-%H%M%S}" / "now.toml")
        write_market(market, unnamed / f"{9 - number}.toml")
        os.utime(unnamed / f"{9 - number}.toml", (at.timestamp(), at.timestamp()))
    want = audit_over_time(moments).to_json()
    given: list[list[Path]] = [[plain], sorted(plain.iterdir(), reverse=True), [inside], [*unnamed.iterdir()]]
    for paths in given:
        assert audit_over_time(moments_of(paths)).to_json() == want
    ran = CliRunner().invoke(app, ["audit", str(plain), "--over-time", "--json"])
    assert json.loads(ran.stdout) == json.loads(json.dumps(want))


def test_the_page_and_the_table_name_all_who_starved(tmp_path: Path) -> None:
    found = audit_over_time(_written(tmp_path))
    page = series_page(found)
    assert page.count("<svg") == len(found.types)
    ran = CliRunner().invoke(app, ["audit", str(tmp_path), "--over-time", "--html", str(tmp_path / ".page.html")])
    for name in found.names:
        if found.starved(name):
            assert f"{name}</th>" in page
            assert name in ran.output
    assert (tmp_path / ".page.html").read_text() == page
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", page)


def test_more_than_one_is_said_to_be_several_only_when_asked(tmp_path: Path) -> None:
    """Without --over-time two market files are one moment, and no importer takes two."""
    _written(tmp_path)
    one, other, *_ = sorted(map(str, tmp_path.iterdir()))
    ran = CliRunner().invoke(app, ["audit", one, other])
    assert isinstance(ran.exception, BadInput)
    ran = CliRunner().invoke(app, ["audit", one, "--over-time"])
    assert "1 moment" in str(ran.exception)
    ran = CliRunner().invoke(app, ["audit", one, other, "--over-time", "--certificates", str(tmp_path / "evidence")])
    assert "--certificates" in str(ran.exception)


# -- Prometheus ----------------------------------------------------------------------------------------------------
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (-?[0-9.e+-]+|NaN|[+-]Inf)")


def parsed(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return samples by metric and labels, as `promtool check metrics` would take them: each line is a HELP, a TYPE or
    a sample; a metric's lines stand together, HELP and TYPE first and once; no two samples have the same labels."""
    assert text.endswith("\n")
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    now, kind = "", ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            now, words = line.removeprefix("# HELP ").split(" ", 1)
            assert now not in found, "its lines stand together"
            assert words.strip()
            found[now], kind = {}, ""
        elif line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            assert name == now
            assert kind == "gauge"
            assert not found[now]
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert sample[1] == now
            assert kind
            labels = tuple(sorted((key, value) for key, value in re.findall(_LABEL, sample[2] or "")))
            assert len({key for key, _ in labels}) == len(labels)
            assert labels not in found[now]
            found[now][labels] = float(line.rpartition(" ")[2])
    for name in found:
        assert re.fullmatch(r"fairopt_[a-z_]+", name)
        assert not name.endswith(("_total", "_count", "_sum", "_bucket")), "these are of counters and histograms"
    return found


def test_metrics_are_those_of_the_audit() -> None:
    market = cluster()
    found = audit(market, policies=[])
    told = parsed(metrics(found))
    for row in found.rows:
        whose: list[Any] = [("kind", "group" if row.is_group else "user"), ("name", row.name)]
        assert told["fairopt_starved"][tuple(whose)] == (row.status is EntitlementStatus.STARVED)
        for own in row.types:
            key = (*whose, ("type", own.type))
            assert told["fairopt_held_gpus"][key] == own.holds
            assert told["fairopt_short_gpus"][key] == own.short
            assert told["fairopt_borrowed_gpus"][key] == own.borrows
    assert told["fairopt_broken"][()] == len(found.violations)
    assert told["fairopt_property_holds"] == {
        (("property", name),): verdict.holds for name, verdict in found.verdicts.items() if verdict.holds is not None
    }


def test_names_are_escaped() -> None:
    name = 'a"b\\c'
    owed = Entitlements.of([name], ["H100"], guarantee={name: [4]})
    found = audit(Market.of([[1]], [8], users=[name], types=["H100"], entitlements=owed), policies=[])
    [labels] = parsed(metrics(found))["fairopt_owed_gpus"]
    assert dict(labels)["name"] == r"a\"b\\c"


@pytest.mark.parametrize("seed", range(3))
def test_metrics_over_time_are_those_of_the_series(seed: int, tmp_path: Path) -> None:
    _written(tmp_path, seed)
    found = audit_over_time(moments_of([tmp_path]))
    text = metrics(found)
    told = parsed(text)
    groups = {row.name for row in found.moments[-1].rows.values() if row.is_group}
    for name in found.names:
        whose = (("kind", "group" if name in groups else "user"), ("name", name))
        assert told["fairopt_starved_seconds"][whose] == sum(found.starved_seconds(name))
        since = [begun.timestamp() for begun, end in found.starved(name) if end is None]
        assert [told.get("fairopt_starved_since_timestamp_seconds", {}).get(whose)] == (since or [None])
    ran = CliRunner().invoke(app, ["audit", str(tmp_path), "--over-time", "--metrics", "-"])
    assert ran.stdout == text
    CliRunner().invoke(app, ["audit", str(tmp_path), "--over-time", "--metrics", str(tmp_path / ".now.prom")])
    assert (tmp_path / ".now.prom").read_text() == text
