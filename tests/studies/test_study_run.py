"""A study that is killed, cut into shards, given a policy that fails: nothing done is lost, nothing counts twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ran_command import Ran
from study_examples import cells_of, spec_file, spec_text, study_process, without_times, words

from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Environment
from fairopt.experiment.runner import place
from fairopt.experiment.spec import Entrant
from fairopt.experiment.studies.cells import StudyCell, code_version, planned, play_cell, progress_text, run_study
from fairopt.experiment.studies.results import StudyResults, require_whole
from fairopt.experiment.studies.spec import StudySpec


def played(spec: StudySpec) -> list[object]:
    return list(run_study(spec))


def test_every_cell_is_played_once_and_policies_share_their_traces(tmp_path: Path) -> None:
    spec = StudySpec.parse(spec_text(tmp_path))
    found = StudyResults(spec, played(spec))  # type: ignore[arg-type]
    assert len(found.cells) == 2 * 2 * 3
    assert not found.missing + found.failed
    assert repr(found) == "<StudyResults: small, 12 of 12 cells; policies: srtf, tiresias>"
    assert found._repr_html_().count("<tr>") == 1 + 2 * 2
    assert found._table().columns["setting"] == ["load 1", "load 1", "load 2", "load 2"]
    assert len({each.key for each in found.cells}) == 12
    by_place = {(each.policy, each.load, each.seed): each.observed for each in found.cells}
    for (policy, load, seed), seen in by_place.items():
        assert seen is not None
        other = by_place["tiresias" if policy == "srtf" else "srtf", load, seed]
        assert other is not None
        # common random numbers: the same work is done in the same hours of GPUs, whoever decides
        assert seen.measured == other.measured == 30
    starts = {seed: by_place["srtf", 1.0, seed].over_time["queue"].begin for seed in range(3)}  # type: ignore[union-attr]
    assert len(set(starts.values())) > 1


def test_the_key_is_of_the_content_and_labels_do_not_matter(tmp_path: Path) -> None:
    text = spec_text(tmp_path)

    def keys(changed: str) -> set[str]:
        return {each.key for each in planned(StudySpec.parse(changed))}

    before = keys(text)
    assert keys(text.replace('label = "made up"', 'label = "other"').replace('name = "small"', 'name = "x"')) == before
    assert len(keys(text.replace("seeds = 3", "seeds = 4")) - before) == 4
    for old, new in [("length = 60", "length = 61"), ("[2, 2]", "[2, 3]"), ("loads = [1, 2]", "loads = [3, 4]")]:
        assert not keys(text.replace(old, new)) & before
    options = text.replace('policy = "srtf"', 'policy = "tiresias"\nlabel = "t2"\noptions = { by_start = true }')
    assert len(keys(options.replace("by_start = true", "")) & before) >= 6
    trace = tmp_path / "trace.csv"
    trace.write_text(trace.read_text().replace("j0,a,0,1,60", "j0,a,0,1,61"))
    from fairopt.experiment.studies import traces

    traces._digest.cache_clear()
    assert not keys(text) & before


def test_what_is_the_same_under_two_labels_is_shown_under_both(tmp_path: Path) -> None:
    text = spec_text(tmp_path).replace('policy = "tiresias"', 'policy = "srtf"\nlabel = "again"')
    found = StudyResults(StudySpec.parse(text), played(StudySpec.parse(text)))  # type: ignore[arg-type]
    assert len(found.cells) == 12
    assert [pair.verdict for [pair] in found.pairs.values()] == ["srtf and again: the same in all runs"] * 2


def test_the_version_is_of_what_decides_outcomes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import shutil

    import fairopt

    top = Path(fairopt.__file__).parent
    copy = tmp_path / "fairopt"
    for folder in ("simulation", "cli", "models"):
        shutil.copytree(top / folder, copy / folder)
    (copy / "__init__.py").write_text("")
    monkeypatch.setattr(fairopt, "__file__", str(copy / "__init__.py"))
    before = code_version.__wrapped__()
    (copy / "cli" / "app.py").write_text("# another")
    assert code_version.__wrapped__() == before
    (copy / "models" / "baselines" / "srtf.py").write_text("# another")
    assert code_version.__wrapped__() != before


def test_a_key_is_the_same_after_everything_was_used(tmp_path: Path) -> None:
    spec = StudySpec.parse(spec_text(tmp_path))
    before = [each.key for each in planned(spec)]
    cluster = next(spec.settings()).place.made()
    assert cluster.capacity.sum() == sum(len(hosts) for hosts in cluster.hosts_by_type) * 2  # worked out now, and kept
    assert [each.key for each in planned(spec)] == before


def test_a_worker_with_another_fairopt_or_other_files_says_so(tmp_path: Path) -> None:
    spec = StudySpec.parse(spec_text(tmp_path))
    cell, where = planned(spec)[0], Environment.starting(spec.source, ())
    (tmp_path / "trace.csv").write_text("job_id,tenant,submit_s,gpus,duration_s\nj,a,0,1,60\n", encoding="utf-8")
    with place(2, None) as (executor, _):  # a process that has read nothing yet
        assert executor is not None
        found, _ = executor.submit(play_cell, spec, cell, where).result()
    assert found.status is TrialStatus.FAILED
    assert "another here than where the study was begun. Give all workers the same fairopt and files" in found.message


def test_a_failed_cell_is_kept_and_stops_no_other(tmp_path: Path) -> None:
    text = spec_text(tmp_path).replace('policy = "srtf"', 'policy = "srtf"\nlabel = "breaks"')
    spec = StudySpec.parse(text)
    from dataclasses import replace

    spec = replace(spec, policies=(Entrant("study_examples:BreaksAfterRounds", "breaks"), spec.policies[1]))
    found = StudyResults(spec, run_study(spec))
    assert len(found.failed) == 6
    assert {each.message for each in found.failed} == {"numerical trouble"}
    assert sum(each.status is TrialStatus.PLAYED for each in found.cells) == 6
    assert any("6 cells failed; the first is breaks" in note for note in found.notes)
    assert not found.pairs


@pytest.mark.usefixtures("no_pictures")
def test_shards_are_a_study_and_a_merge_misses_nothing(tmp_path: Path, study: Callable[..., Ran]) -> None:
    spec = spec_file(tmp_path)
    for number in (1, 3):
        assert study(tmp_path, spec, "--shard", f"{number}/3", "--jobs", "1").status == 0
    files = [tmp_path / f"small-{number}-of-3.jsonl" for number in (1, 2, 3)]
    early = study(tmp_path, "merge", files[0], files[2], "-o", "all.jsonl")
    assert early.status == 2
    assert "4 cells are missing" in early.err
    assert not (tmp_path / "all.jsonl").exists()
    assert study(tmp_path, spec, "--shard", "2/3", "--jobs", "1").status == 0
    done = study(tmp_path, "merge", *files, "-o", "all.jsonl")
    assert done.status == 0, done.err
    cells = cells_of(tmp_path / "all.jsonl")
    assert len(cells) == len({each.key for each in cells}) == 12
    whole = study(tmp_path, spec, "--jobs", "1", "--page", "page.html")
    assert whole.status == 0, whole.err
    assert without_times(cells_of(tmp_path / "small.jsonl")) == without_times(cells)
    assert "page.html" in whole.err
    again = study(tmp_path, spec, "--jobs", "1", "--json", "--page", "page.html")
    assert "going on from 12 of 12" in again.err
    assert len(cells_of(tmp_path / "small.jsonl")) == 12


def test_the_shards_that_are_missing_are_named(tmp_path: Path) -> None:
    spec = StudySpec.parse(spec_text(tmp_path))
    kept = [each for n in (1, 3) for each in run_study(spec, shard=slice(n - 1, None, 3))]
    with pytest.raises(ValueError, match=r"4 cells are missing, in shards 2/3; the first is tiresias"):
        require_whole(StudyResults(spec, kept), 3)


#: A shard has no page, which takes longer to draw than the study to play.
ALL_BUT_THE_PAGE = ("--shard", "1/1", "--cells", "small.jsonl")


def killed(folder: Path, times: int, seed: int) -> tuple[int, int]:
    """Kill a study at random moments, so many times; begin anew where it is done. Return kills, and cells kept."""
    spec, file = spec_file(folder), folder / "small.jsonl"
    source = random.Random(seed)
    kept, kills = 0, 0
    while kills < times:
        before = cells_of(file) if file.exists() else []
        if len(before) == 12:
            file.unlink()
            before = []
        size = lines_of(file)
        process = subprocess.Popen(
            words(spec, "--jobs", "2", *ALL_BUT_THE_PAGE),
            cwd=folder,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        # some moments are before the first cell, most are between cells or in one, however slow the machine is
        more, late = source.randrange(4), source.uniform(0, 0.2)
        while process.poll() is None and more and lines_of(file) < size + more:
            time.sleep(0.02)
        time.sleep(late)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        after = cells_of(file) if file.exists() else []
        assert after[: len(before)] == before  # nothing that was done is lost
        assert len({each.key for each in after}) == len(after)  # and nothing is there twice
        kept += len(after) - len(before)
    return kills, kept


def lines_of(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


def whole_after_kills(folder: Path, times: int, seed: int) -> None:
    kills, kept = killed(folder, times, seed)
    assert kept >= kills // 2  # most of them in the middle of it
    last = study_process(folder, folder / "small.toml", "--jobs", "1", *ALL_BUT_THE_PAGE)
    assert last.returncode == 0, last.stderr
    cells = cells_of(folder / "small.jsonl")
    assert len(cells) == len({each.key for each in cells}) == 12
    undisturbed = [each for each in played(StudySpec.read(folder / "small.toml")) if isinstance(each, StudyCell)]
    assert without_times(cells) == without_times(undisturbed)


def test_a_study_that_is_killed_goes_on(tmp_path: Path) -> None:
    whole_after_kills(tmp_path, 1, 1)


@pytest.mark.slow
def test_a_study_that_is_killed_at_50_random_moments_goes_on(tmp_path: Path) -> None:
    whole_after_kills(tmp_path, 50, 2)


@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_an_interruption_keeps_what_is_played_and_leaves_no_worker(tmp_path: Path, how: signal.Signals) -> None:
    spec, file = spec_file(tmp_path, spec_text(tmp_path).replace("seeds = 3", "seeds = 200")), tmp_path / "small.jsonl"

    def heard() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have let it be ignored

    process = subprocess.Popen(
        words(spec, "--jobs", "2", *ALL_BUT_THE_PAGE), cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=heard
    )
    for _ in range(1200):
        if file.exists() and '"cell"' in file.read_text():
            break
        time.sleep(0.05)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    workers = [int(each) for each in children.read_text().split()] if children.exists() else []
    os.kill(process.pid, how)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    assert cells_of(file)
    for _ in range(100):
        if not any(Path(f"/proc/{each}/cmdline").exists() for each in workers):
            break
        time.sleep(0.05)
    assert not any(Path(f"/proc/{each}/cmdline").exists() for each in workers)


def test_progress_says_what_is_left() -> None:
    assert progress_text(30, 90, 0, 20.0, 10) == "30 of 90 cells, 2 min 00 s left"
    assert progress_text(30, 90, 2, 8000.0, 10) == "30 of 90 cells, 2 failed, 13 h 20 min left"
    assert progress_text(90, 90, 0, 20.0, 10) == "90 of 90 cells"
