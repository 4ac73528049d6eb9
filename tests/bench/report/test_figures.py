"""Figures of documents: made from results, written between markers, and honest about who was faster."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench_records import stages

from fairopt.cli import main
from fairopt.discovery import policy
from fairopt.errors import BadInput
from fairopt.experiment.bench.figures import put_into, write_figures
from fairopt.experiment.bench.kinds import Instance, Judgement
from fairopt.experiment.bench.page import report
from fairopt.experiment.bench.records import KINDS, Measurement, Record, measurements
from fairopt.experiment.bench.spec import Spec
from fairopt.experiment.journal import TrialStatus, line_of, record_in
from fairopt.experiment.machine import Clock, Environment
from fairopt.policy import decide

ROOT = Path(__file__).parents[3]
SPEC = """
schema = 1
name = "made-up"
task = "max-min"
time_limit = 30
[[instances]]
family = "uniform"
parameters = { users = [10, 1000] }
[[contenders]]
contender = "fairopt"
[[contenders]]
contender = "highs"
[[contenders]]
contender = "scip"
[[contenders]]
contender = "cvxpy-ecos"
[[goals]]
text = "fast"
contender = "fairopt"
statistic = "seconds"
limit = 0.5
instances = { size = 1000 }
[[goals]]
text = "300 times faster"
contender = "fairopt"
against = "highs"
statistic = "ratio"
limit = 300
instances = { size = 1000 }
[[goals]]
text = "elsewhere"
contender = "fairopt"
statistic = "gap"
limit = 1e-9
instances = { size = 7 }
"""
DOCUMENT = "# Title\n<!-- bench {0}: begin -->\nold\n<!-- bench {0}: end -->\nrest\n"


def records() -> list[Record]:
    machine = {"cpu": "a processor", "cores": 2, "memory_bytes": 10**9, "system": "Linux", "python": "3.11"}
    state = {"threads": {}, "libraries": {}, "commit": "abc", "dirty": False, "command": "fairopt bench made-up"}
    env = Environment.of(**machine, **state, spec_text=SPEC)

    def row(label: str, users: int, seconds: float | None, status: TrialStatus = TrialStatus.SOLVED) -> Measurement:
        done = status is TrialStatus.SOLVED
        return Measurement(
            spec="made-up",
            task="max-min",
            contender=label,
            settings={},
            libraries={},
            instance=Instance("uniform", f"u{users}", users, 0, {"users": users}, f"d{users}"),
            repeat=0,
            status=status,
            message="",
            seconds=stages(Clock(0.0, 0.0), Clock(seconds, seconds)) if seconds is not None else stages(),
            peak_bytes=1,
            base_bytes=1,
            judgement=Judgement(True, 0.0, 1e-12, 1.0) if done else None,
            reference_job=None,
            started="2026-01-02T03:04:05",
            environment=env.digest,
            time_limit=30.0,
        )

    return [
        env,
        row("fairopt", 10, 0.02),
        row("highs", 10, 0.005),
        row("scip", 10, 0.1),
        row("cvxpy-ecos", 10, None, TrialStatus.ERROR),
        row("fairopt", 1000, 0.25),
        row("highs", 1000, 50.0),
        row("scip", 1000, None, TrialStatus.TIMEOUT),
        row("cvxpy-ecos", 1000, 0.1, TrialStatus.WRONG),
    ]


def written(tmp_path: Path, block: str) -> str:
    path = tmp_path / "page.md"
    path.write_text(DOCUMENT.format(block), encoding="utf-8")
    write_figures(records(), path, "make bench")
    return path.read_text(encoding="utf-8")


def test_goals_are_a_row_each_reached_or_not(tmp_path: Path) -> None:
    text = written(tmp_path, "goals")
    assert "Measured by `make bench` on 2026-01-02 (a processor, 2 cores, Linux; abc)." in text
    rows = [line for line in text.splitlines() if line.startswith("| max-min")]
    assert len(rows) == 3
    assert "| fast | 250\u00a0ms | at most 500\u00a0ms | reached |" in rows[0]
    assert "| 300 times faster | 200× | at least 300× | **not reached** |" in rows[1]
    assert "not measured" in rows[2]
    assert "old" not in text
    assert text.startswith("# Title\n")
    assert text.endswith("<!-- bench goals: end -->\nrest\n")


def test_ratios_are_of_the_largest_instance_and_who_is_faster_is_said(tmp_path: Path) -> None:
    text = written(tmp_path, "speed")
    first, second = text.split("Who was faster")
    [row] = [line for line in first.splitlines() if line.startswith("| max-min | uniform (users 1,000)")]
    assert "| 250\u00a0ms | `scip` over 120×, `highs` 200×, `cvxpy-ecos` wrong |" in row
    # the instance that most others answered
    assert "| max-min | uniform (users 10) | 20.0\u00a0ms |" in first
    # a wrong answer has no time, and is not faster
    rows = [line for line in second.splitlines() if line.startswith("| max-min")]
    assert rows == ["| max-min | uniform (users 10) | 20.0\u00a0ms | `highs` 0.250× |"]


def test_figures_written_twice_are_the_same(tmp_path: Path) -> None:
    once = written(tmp_path, "speed")
    write_figures(records(), tmp_path / "page.md", "make bench")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == once


def test_a_document_without_a_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("nothing\n")
    with pytest.raises(BadInput, match=r"page.md: markers of figures are missing.*bench goals: begin"):
        write_figures(records(), path, "")
    path.write_text("<!-- bench goals: begin -->\n")
    with pytest.raises(BadInput, match="bench goals: end"):
        write_figures(records(), path, "")
    with pytest.raises(BadInput, match="cannot be read"):
        write_figures(records(), tmp_path / "none.md", "")
    assert path.read_text() == "<!-- bench goals: begin -->\n"


def test_the_command_writes_into_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.jsonl").write_text("".join(f"{line_of(each)}\n" for each in records()))
    for name in ("goals", "speed"):
        (tmp_path / f"{name}.md").write_text(DOCUMENT.format(name))
    words = [str(tmp_path / "r.jsonl"), "--into", str(tmp_path / "goals.md"), "--into", str(tmp_path / "speed.md")]
    monkeypatch.setattr(sys, "argv", ["fairopt", "bench", "figures", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    assert "by `fairopt bench made-up`" in (tmp_path / "goals.md").read_text(encoding="utf-8")
    assert "`highs` 200×" in (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert capsys.readouterr().err.count("wrote") == 2


@pytest.mark.parametrize(
    ("file", "name"),
    [("docs/benchmarks.md", "speed"), ("docs/benchmarks.md", "goals"), ("docs/benchmarks.md", "resolves")],
)
def test_our_documents_have_a_place_for_them(file: str, name: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert "new block" in put_into(text, name, "new block")


# -- the specifications -----------------------------------------------------------------------------------------------
def test_each_task_has_a_quick_specification_and_a_full_one_with_the_same_goals() -> None:
    specs = {name: Spec.parse(text) for name, text in Spec.shipped().items()}
    full = {name: spec for name, spec in specs.items() if f"quick-{name}" in specs}
    assert full.pop("rounds").task == "rounds"  # it needs a trace of one's own, so that `make` leaves it out
    assert len(full) == 7
    made = re.search(r"^FULL := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert made is not None
    assert set(made[1].split()) == set(full)
    for name, spec in full.items():
        quick = specs[f"quick-{name}"]
        assert quick.task == spec.task == name
        assert {goal.text for goal in quick.goals} <= {goal.text for goal in spec.goals}
        assert quick.goals


@pytest.mark.parametrize("name", [name for name, text in sorted(Spec.shipped().items()) if Spec.parse(text).goals])
def test_every_goal_chooses_an_instance_that_its_contenders_answer(name: str) -> None:
    spec = Spec.parse(Spec.shipped()[name])
    largest = {each.label: each.largest for each in spec.contenders}
    for goal in spec.goals:
        chosen = [
            parameters
            for block in spec.instances
            for parameters, _ in block.combinations()
            if goal.instances.has(
                Instance(
                    *(block.family, "", int(parameters.get("users", parameters.get("jobs"))), 0, parameters, ""),
                )
            )
        ]
        assert chosen, goal.text
        for who in filter(None, (goal.contender, goal.against)):
            limit = largest[who]
            sizes = [int(each.get("users", each.get("jobs"))) for each in chosen]
            assert limit is None or max(sizes) <= limit, (goal.text, who)


def test_the_number_of_offers_in_the_goal_of_posted_prices_is_right() -> None:
    from fairopt.benchmarks.workloads.astraea_batches import astraea_workload

    [goal] = Spec.parse(Spec.shipped()["quick-posted-prices"]).goals
    plan = decide(policy("posted-prices"), astraea_workload(jobs=100, servers=100, seed=1))
    assert f"{len(plan.admissions):,} offers" in goal.text
    assert goal.limit == pytest.approx(0.005 * len(plan.admissions))


def test_the_report_counts_as_the_documentation_says() -> None:
    text = " ".join((ROOT / "docs" / "formats" / "benchmark.md").read_text(encoding="utf-8").split())
    conventions = re.findall(r"<dt>(.*?)</dt>\n<dd>(.*?)</dd>", report(records()), re.S)
    assert len(conventions) == 8
    for name, says in conventions:
        assert f"* **{name}.** {html.unescape(' '.join(says.split()))}" in text


def test_the_example_of_a_task_family_and_contender_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "formats" / "benchmark.md").read_text(encoding="utf-8")
    for name, language in (("mine.py", "python"), ("mine.toml", "toml")):
        found = re.search(rf"`{re.escape(name)}`[^\n]*:\n\n```{language}\n(.*?)```", text, re.S)
        assert found is not None
        (tmp_path / name).write_text(found[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "fairopt", "bench", "mine.toml", "--json", "-"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = measurements(record_in(line, KINDS) for line in done.stdout.splitlines())
    assert [(each.called, each.status) for each in found] == [
        ("mine:Greedy", TrialStatus.SOLVED),
        ("greedy, with 1% left over", TrialStatus.WRONG),
    ]


def test_nearby_markets_are_timed_and_written_where_they_belong(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(DOCUMENT.format("resolves"), encoding="utf-8")
    words = ["--users", "12", "--steps", "1", "--write", str(path)]
    subprocess.run([sys.executable, str(ROOT / "benchmarks" / "resolves.py"), *words], timeout=120, check=True)
    text = path.read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if re.match(r"\| (oef|max)", line)]
    assert [(row[0].strip("| "), row[2]) for row in rows] == [
        (name, kind)
        for name in ("oef-cooperative", "oef-noncooperative", "max-min")
        for kind in ("changes", "comes", "goes")
    ]
    assert all(float(cell.strip("| ")) > 0 for row in rows for cell in row[3:])
    assert "by `benchmarks/resolves.py --users 12" in text
    assert "old" not in text
