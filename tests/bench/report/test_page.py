"""The report of a benchmark, on records made up here: what it says, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from bench_records import CONTENDERS, SPEC, environment, failed, made_up, measurement, stages
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairopt.errors import BadInput
from fairopt.experiment.bench import Judgement
from fairopt.experiment.bench.page import report
from fairopt.experiment.bench.records import Record, measurements
from fairopt.experiment.bench.results import Study, studies, to_answer
from fairopt.experiment.bench.tables import outcomes
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Clock
from fairopt.experiment.page import UNWRITABLE, write_page


class Reader(HTMLParser):
    """Read a page: whether it is balanced, what it names, what it leads to, and what it says."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, *each) for each in attrs]
        self.ids += [value or "" for key, value in attrs if key == "id"]
        self.links += [value or "" for key, value in attrs if key == "href"]
        if tag not in ("meta", "br", "hr", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} ends without a start"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def said(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@cache
def saying(words: str) -> Reader:
    """Return the page of one failure, with the same words in all places that hold any."""
    env = environment(cpu=words, commit=words, command=words)
    made = failed(env, TrialStatus.ERROR, words, contender=words, settings={words: words}, spec=words)
    return Reader(report([env, made], words))


def of(records: list[Record]) -> Study:
    [study] = studies(records)
    return study


@pytest.fixture(scope="module")
def run() -> list[Record]:
    return made_up(environment())


@pytest.fixture(scope="module")
def page(run: list[Record]) -> str:
    return report(run, "A title")


class TestPage:
    def test_it_is_balanced_and_its_links_lead_somewhere(self, page: str) -> None:
        reader = Reader(page)
        assert not reader.open
        assert len(set(reader.ids)) == len(reader.ids)
        assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)
        assert all(link.startswith("#") for link in reader.links)

    def test_it_needs_nothing_else(self, page: str) -> None:
        found = Reader(page).attributes
        loading = {"script", "link", "img", "iframe", "object", "embed", "base", "image"}
        assert not {tag for tag, _, _ in found} & loading
        assert not {key for _, key, _ in found} & {"src", "srcset", "onclick", "onload"}
        # parts of a picture lead to each other; names of its format are no addresses
        assert all((value or "#").startswith("#") for _, key, value in found if key == "xlink:href")
        names = ("xmlns", "rdf:")
        assert not [value for _, key, value in found if "http" in (value or "") and not key.startswith(names)]
        assert not re.search(r"url\([^#]|@import|file:", page)

    def test_pictures_say_in_words_what_they_show(self, page: str) -> None:
        assert page.count('role="img"') == 2 == page.count("<desc")
        assert "ours: fastest on 100 % first, 100 % solved" in Reader(page).said.replace("\u00a0", " ")

    def test_tables_have_captions_and_headers(self, page: str) -> None:
        assert page.count("<table") == page.count("<caption>")
        for found in re.findall(r"<th[ >][^>]*", page):
            assert "scope=" in found

    def test_the_same_records_give_the_same_bytes(self, run: list[Record], page: str) -> None:
        assert report(run, "A title") == page

    def test_every_measurement_stands_in_it(self, run: list[Record], page: str) -> None:
        ids = Reader(page).ids
        assert {f"r{number}" for number in range(2, len(run) + 1)} <= set(ids)
        assert page.count("stopped after 10 s") == 1  # six times the same

    def test_it_is_written_as_a_file(self, run: list[Record], page: str, tmp_path: Path) -> None:
        write_page(report(run, "A title"), tmp_path / "r.html")
        assert (tmp_path / "r.html").read_bytes() == page.encode()

    def test_markup_in_names_and_messages_is_shown_and_not_obeyed(self) -> None:
        env = environment(cpu="<script>alert(1)</script>", command="<b>\x1b[31m\ud800", commit='"><i>')
        bad = '<img src=x onerror="alert(1)">&amp;</td>'
        records = [env, measurement(env, bad), failed(env, TrialStatus.ERROR, bad, contender="\x00" + bad)]
        found = Reader(report(records, bad))
        assert not found.open
        assert not {"img", "i", "b", "script"} & {tag for tag, _, _ in found.attributes}
        assert found.said.count("onerror") > 4

    def test_pictures_show_names_of_any_kind(self) -> None:
        names = ["$a$ b$", "_x", '<b>"&', "\x00\ud800", "漢字", "words"]
        found = Reader(report(made_up(environment(), {**CONTENDERS, **dict.fromkeys(names, CONTENDERS["ours"])})))
        assert not found.open
        for words in names:
            assert "".join(found.words).count(UNWRITABLE.sub("\ufffd", words)) > 4

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(words=st.text(min_size=1))
    @pytest.mark.usefixtures("no_pictures")  # they have a test of their own
    def test_text_of_any_kind_stays_text(self, words: str) -> None:
        found, other = saying(words), saying("words")
        assert UNWRITABLE.sub("\ufffd", words) in "".join(found.words)
        # neither an element nor an attribute is added by what is said
        assert [each[:2] for each in found.attributes] == [each[:2] for each in other.attributes]


@pytest.mark.usefixtures("no_pictures")
class TestNumbers:
    def test_medians_and_means_are_those_of_the_records(self, run: list[Record]) -> None:
        study = of(run)
        at = [row for row in measurements(run) if row.contender == "ours" and row.instance.size == 200]
        walls = sorted(each.wall("build") + each.wall("solve") for each in at if each.solved)
        [index] = [place for place, each in enumerate(study.instances) if each.size == 200]
        assert study.seconds("ours", to_answer)[index] == pytest.approx(walls[1])
        assert study.shift == 0.5
        slow = study.mean("slow", to_answer)
        assert study.solved("slow").tolist() == [True, True, False, False]
        assert slow == pytest.approx(np.prod([1.0, 0.5 + 0.5 * 2**2.5, 10.5, 10.5]) ** 0.25 - 0.5, rel=0.02)

    def test_the_page_states_them(self, page: str) -> None:
        said = Reader(page).said.replace("\u00a0", " ")
        for expected in (
            "shift 500 ms",
            "time limit 10.0 s",
            "time-out 3 of 3 runs",
            "4 of 4",
            "2 of 4",
            "the baseline",
        ):
            assert expected in said
        assert re.search(r"ours 1\.0\d [01]\.\d\d to 1\.0\d", said)  # the exponents
        assert re.search(r"highs (2\.0\d|1\.9\d) ", said)
        assert "solved at 2 distinct sizes" in said

    def test_one_failed_repeat_fails_the_instance_and_shows(self) -> None:
        env = environment()
        records = [
            env,
            measurement(env),
            measurement(env, repeat=1),
            failed(env, TrialStatus.WRONG, "gap", repeat=2),
        ]
        assert of(records).solved("ours").tolist() == [False]
        said = Reader(report(records)).said
        assert "wrong 1 of 3 runs" in said

    def test_what_is_not_installed_takes_part_in_no_mean(self, run: list[Record]) -> None:
        gone = [
            failed(environment(), TrialStatus.MISSING, "pip install it", contender="gone", size=size)
            for size in (100, 200)
        ]
        study = of([*run, *gone])
        assert study.present == ("ours", "highs", "slow")
        assert "Not installed, and in no mean or picture: gone" in Reader(report([*run, *gone])).said

    def test_what_was_missing_and_is_made_up_for_does_not_count(self) -> None:
        env = environment()
        records = [env, failed(env, TrialStatus.MISSING), measurement(env)]
        assert of(records).solved("ours").tolist() == [True]
        assert of([env, measurement(env), failed(env, TrialStatus.ERROR)]).solved("ours").tolist() == [False]

    def test_no_measurement_counts_as_not_solved_and_is_said(self, run: list[Record]) -> None:
        largest = [each for each in measurements(run) if (each.called, each.instance.size) == ("highs", 800)]
        fewer = [each for each in run if each not in largest]
        assert of(fewer).solved("highs").tolist() == [True, True, True, False]
        assert "of 1 pair of contender and instance" in Reader(report(fewer)).said

    def test_contenders_of_one_label_and_two_settings_are_two(self) -> None:
        env = environment()
        records = [env, measurement(env, settings={"a": 1, "b": 2}), measurement(env, settings={"a": 3, "b": 2})]
        assert of(records).contenders == ("ours (a=1)", "ours (a=3)")

    def test_the_order_is_the_specifications(self, run: list[Record]) -> None:
        assert of(made_up(environment(), dict(reversed(CONTENDERS.items())))).contenders == ("ours", "highs", "slow")

    def test_no_time_limit_and_failures_give_no_mean(self) -> None:
        env = environment()
        records = [env, *(replace(each, time_limit=float("nan")) for each in measurements(made_up(env)))]
        study = of(records)
        assert study.limit is None
        assert study.mean("slow", to_answer) is None
        assert study.mean("ours", to_answer) is not None
        assert "no time limit is recorded" in Reader(report(records)).said


def nothing_solved(status: TrialStatus) -> list[Record]:
    env = environment()
    return [env, *(failed(env, status, size=size) for size in (1, 10, 100))]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("status", [each for each in TrialStatus if each is not TrialStatus.SOLVED])
def test_all_missing_or_nothing_solved(status: TrialStatus) -> None:
    assert not Reader(report(nothing_solved(status))).open


@pytest.mark.parametrize("status", [TrialStatus.MISSING, TrialStatus.TIMEOUT])
def test_pictures_of_nothing_solved(status: TrialStatus) -> None:
    assert not Reader(report(nothing_solved(status))).open


class TestGoals:
    def test_each_is_decided(self, run: list[Record]) -> None:
        found = {each.text: each for each in outcomes(of(run))}
        reached = {name: each.reached for name, each in found.items()}
        assert reached == {
            "800 users in a second": True,
            "ten times as fast": True,  # 25 at size 100, the worst
            "a hundred thousand times as fast": False,
            "five times the slow one": True,  # more than 10 s over 16 ms
            "the slow one, too": False,
            "little memory": False,
            "a small gap": True,
            "a million users": None,
        }
        assert found["ten times as fast"].measured.startswith("2")
        assert found["five times the slow one"].measured.startswith("more than 6")
        assert found["the slow one, too"].measured == "time-out 3 (2 of 4 instances)"
        assert found["a million users"].measured == "not measured"

    def test_a_bound_below_the_goal_decides_nothing(self, run: list[Record]) -> None:
        harder = SPEC.replace('limit = 5\nagainst = "slow"', 'limit = 1e6\nagainst = "slow"')
        assert harder != SPEC
        found = {each.text: each for each in outcomes(of(made_up(environment(spec_text=harder))))}
        assert found["five times the slow one"].reached is None

    def test_repeats_skipped_after_a_time_out_leave_the_bound(self) -> None:
        env = environment()
        ended = (TrialStatus.TIMEOUT, TrialStatus.SKIPPED)
        slow = [failed(env, each, contender="slow", size=800, repeat=place) for place, each in enumerate(ended)]
        found = {each.text: each for each in outcomes(of([env, measurement(env, size=800), *slow]))}
        assert found["five times the slow one"].measured == "more than 13.3×"  # 10 s over 0.75 s

    def test_certifying_counts(self) -> None:
        env = environment()
        seconds = stages(Clock(0.3, 0.3), Clock(0.3, 0.3), Clock(0.5, 0.5))
        [first, *_] = outcomes(of([env, measurement(env, size=800, seconds=seconds)]))
        assert (first.reached, first.measured) == (False, "1.10\u00a0s")

    def test_no_specification_no_goals(self, run: list[Record]) -> None:
        records = made_up(environment(spec_text="schema = "))
        assert outcomes(of(records)) == []
        assert "The specification cannot be read" in Reader(report(records)).said


class TestSeveral:
    @pytest.mark.usefixtures("no_pictures")
    def test_machines_are_not_compared(self) -> None:
        one, other = environment(), environment(cpu="Another CPU")
        records = [*made_up(one), *made_up(other)]
        assert [study.machine.split(",")[0] for study in studies(records)] == ["A CPU", "Another CPU"]
        reader = Reader(report(records))
        assert len(set(reader.ids)) == len(reader.ids)
        assert not reader.open
        assert "Another CPU" in reader.said

    def test_environments_of_one_machine_are_and_what_differs_is_said(self) -> None:
        one, other = environment(), environment(commit="def")
        [study] = studies([*made_up(one), *made_up(other)])
        assert "contenders: " in repr(study)
        assert study._repr_html_().count("<tr>") == 1 + len(study.contenders)
        assert len(study.environments) == 2
        assert "differ in: commit" in study.notes[0]

    def test_two_specifications(self) -> None:
        env = environment()
        second = environment(spec_text=SPEC.replace("made-up", "other").replace("Made up", "The other"))
        records = [*made_up(env), *made_up(second, spec="other")]
        reader = Reader(report(records))
        assert [study.name for study in studies(records)] == ["made-up", "other"]
        assert "The other" in reader.said
        assert len(set(reader.ids)) == len(reader.ids)
        assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)


class TestMalformed:
    def test_nothing_measured(self) -> None:
        for records in ([], [environment()]):
            with pytest.raises(BadInput, match="no measurements"):
                report(records)

    def test_the_environment_must_be_there(self) -> None:
        with pytest.raises(BadInput, match=r"record 1 .*not among the records"):
            report([measurement(environment())])

    @pytest.mark.parametrize("wall", [float("nan"), float("inf"), -1.0])
    @pytest.mark.parametrize("stage", ["build", "solve", "certify"])
    def test_seconds_that_no_clock_gives(self, wall: float, stage: str) -> None:
        env = environment()
        bad = measurement(env)
        bad = replace(bad, seconds={**bad.seconds, stage: Clock(wall, 0.0)})
        with pytest.raises(BadInput, match=f"record 2 .*{stage} took"):
            report([env, bad])

    def test_solved_without_seconds(self) -> None:
        env = environment()
        with pytest.raises(BadInput, match="the seconds to build and to solve are missing"):
            report([env, measurement(env, seconds=stages())])

    def test_what_is_no_record(self) -> None:
        with pytest.raises(BadInput, match="record 2"):
            report([environment(), "measurement"])  # type: ignore[list-item]

    @pytest.mark.parametrize(
        ("size", "wall"),
        [(0, 0.0), (1, 1e-12), (0, 1e9)]
        + [pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 0.0), (0, 1e-12), (1, 1e9))],
    )
    def test_extremes(self, size: int, wall: float) -> None:
        env = environment()
        seconds = stages(Clock(wall, wall), Clock(wall, wall))
        records: list[Record] = [env]
        for each in (size, 10 * size + 3, 10**7):
            records += [measurement(env, size=each, seconds=seconds, peak_bytes=None, reference_job=Clock(0.0, 0.0))]
            records += [measurement(env, "other", size=each, judgement=Judgement(), reference_job=None)]
        assert not Reader(report(records)).open
