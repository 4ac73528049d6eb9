"""A run of a benchmark: every way to end is told apart, nothing is measured twice, and no answer is believed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import pytest

from fairopt.errors import BadInput, NotCapable, NotSolved
from fairopt.experiment.bench.records import Measurement, Record, measurements
from fairopt.experiment.bench.run import run_spec
from fairopt.experiment.bench.spec import Spec
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Environment

FAKES = "bench_fakes"


def specification(
    *fakes: str, users: str = "[4]", repeats: int = 1, top: str = "time_limit = 20", **settings: str
) -> Spec:
    text = f'schema = 1\nname = "test"\ntask = "max-min"\nrepeats = {repeats}\n{top}\n'
    text += f'[[instances]]\nfamily = "uniform"\nparameters = {{ users = {users}, types = 2 }}\n'
    for fake in fakes:
        text += f'[[contenders]]\ncontender = "{FAKES}:{fake}"\nlabel = "{fake.lower()}"\n{settings.get(fake, "")}\n'
    return Spec.parse(text)


def measured(spec: Spec, **options: object) -> list[Measurement]:
    return measurements(run_spec(spec, **options))  # type: ignore[arg-type]


def test_a_sound_answer_is_timed_in_stages_and_judged() -> None:
    records = list(run_spec(specification("Sound", Sound="settings = { delay = 0.2 }")))
    environment, found = records
    assert isinstance(environment, Environment)
    assert isinstance(found, Measurement)
    assert found.status is TrialStatus.SOLVED, found.message
    assert found.environment == environment.digest
    assert environment.threads["OMP_NUM_THREADS"] == "1"
    assert {"numpy", "highspy", "fairopt"} <= environment.libraries.keys()
    assert found.libraries.keys() == {"numpy", "highspy"}
    assert found.settings == {"delay": 0.2, "mode": "plain"}
    build, solve, certify = found.seconds.values()
    assert build is not None
    assert solve is not None
    assert certify is not None
    assert solve.wall > 0.2 > solve.cpu
    assert build.wall < 0.1
    assert found.to_answer == build.wall + solve.wall
    assert found.peak_bytes is not None
    assert found.base_bytes is not None
    assert found.reference_job is not None
    # the instance and the libraries were loaded before
    assert 10e6 < found.base_bytes <= found.peak_bytes < 1e9
    assert found.reference_job.cpu > 0.001
    assert found.judgement is not None
    assert found.judgement.violation <= 1e-9
    assert abs(found.judgement.gap) < 1e-9


@pytest.mark.parametrize(
    ("fake", "status", "words"),
    [
        ("Overbooking", TrialStatus.WRONG, "capacity"),
        ("Content", TrialStatus.WRONG, "proven by the dual values"),
        ("Polite", TrialStatus.TIMEOUT, "the solver said: time limit reached"),
        ("Failing", TrialStatus.ERROR, "NotSolved: the solver said: numerical trouble"),
        pytest.param("Buggy", TrialStatus.ERROR, "ZeroDivisionError", marks=pytest.mark.slow),
        pytest.param("Quitting", TrialStatus.ERROR, "status 7 in solve: quitting: no licence", marks=pytest.mark.slow),
        ("Crashing", TrialStatus.ERROR, "SIGSEGV in solve"),
        ("Absent", TrialStatus.MISSING, "pip install no-such-library"),
        ("Unwritable", TrialStatus.ERROR, "does not go to another process. Give arrays"),
    ],
)
def test_every_way_to_end_is_kept_as_what_it_is(fake: str, status: TrialStatus, words: str) -> None:
    [found] = measured(specification(fake))
    assert found.status is status, found.message
    assert words in found.message
    assert not found.solved
    assert (found.judgement is not None) == (status is TrialStatus.WRONG)


def test_who_ends_is_noticed_also_where_it_leaves_a_process_that_holds_the_pipe() -> None:
    [found] = measured(specification("Abandoning", top="time_limit = 100"))
    assert found.status is TrialStatus.ERROR
    assert "the process ended with status 3 in setup" in found.message


def test_messages_are_kept_short_and_can_be_written(tmp_path: Path) -> None:
    from fairopt.experiment.bench.records import KINDS, read_results
    from fairopt.experiment.journal import RecordsFile, TrialStatus

    with RecordsFile(tmp_path / "results.jsonl", KINDS, print, place="--json") as file:
        for record in run_spec(specification("Babbling")):
            file.add(record)
    [found] = measurements(read_results(tmp_path / "results.jsonl"))
    assert found.status is TrialStatus.ERROR
    assert found.message.startswith("ValueError: ?<b>xxx")
    assert len(found.message) < 3000


def test_who_is_ended_by_the_system_ran_out_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairopt.experiment import machine
    from fairopt.experiment.bench.measure import run_child

    counted = iter([4, 5])
    monkeypatch.setattr(machine, "kills", lambda: next(counted))

    class Killed:
        def __init__(self, *words: object, **options: object) -> None:
            self.pid, self.returncode, self.stdin = 2**22 + 1, -9, None

        def poll(self) -> int:
            return -9

        wait = poll

    monkeypatch.setattr("subprocess.Popen", Killed)
    assert run_child(tmp_path, time_limit=1, memory_limit=None, threads=1).status is TrialStatus.MEMORY
    counted = iter([5, 5])
    assert run_child(tmp_path, time_limit=1, memory_limit=None, threads=1).status is TrialStatus.ERROR


def test_a_parameter_that_cannot_be_ends_a_run_before_anything_is_measured() -> None:
    spec = specification("Failing")
    wrong = Spec.parse(spec.source + '[[instances]]\nfamily = "uniform"\nparameters = { users = 0 }\n')
    with pytest.raises(BadInput, match="users"):
        next(run_spec(wrong))


def test_who_is_too_late_is_stopped_and_larger_instances_are_skipped_and_written_down() -> None:
    spec = specification(
        "Sleeping", users="[4, 5]", repeats=2, top="time_limit = 0.3", Sleeping="settings = { beyond = 3 }"
    )
    found = measured(spec)
    assert [each.status for each in found] == [
        *[TrialStatus.TIMEOUT, TrialStatus.SKIPPED],
        *[TrialStatus.SKIPPED] * 2,
    ]
    assert "stopped in solve" in found[0].message
    assert found[0].seconds["build"] is not None
    assert found[0].seconds["solve"] is None
    assert "on this instance in repeat 1" in found[1].message
    assert "timed out at size 4" in found[2].message


def test_give_up_can_be_switched_off_and_the_largest_size_is_kept_to() -> None:
    spec = specification("Polite", "Sound", users="[4, 5]", top="time_limit = 20\ngive_up = false", Sound="largest = 4")
    found = {(each.called, each.instance.size): each for each in measured(spec)}
    assert found["polite", 5].status is TrialStatus.TIMEOUT
    assert found["sound", 4].status is TrialStatus.SOLVED
    assert found["sound", 5].status is TrialStatus.SKIPPED
    assert "above 4" in found["sound", 5].message


def test_who_takes_too_much_memory_is_stopped() -> None:
    [found] = measured(specification("Hungry", top='time_limit = 60\nmemory_limit = "300 MB"'))
    assert found.status is TrialStatus.MEMORY, found.message
    assert "the limit is 300,000,000" in found.message
    assert found.peak_bytes is not None
    assert 300e6 < found.peak_bytes < 2e9


def test_processes_that_a_contender_leaves_behind_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIROPT_TEST_LEFT", str(tmp_path / "pid"))
    [found] = measured(specification("Leaving"))
    assert found.status is TrialStatus.SOLVED, found.message
    stat = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    for _ in range(100):  # whoever inherits it may take a moment to bury it
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("it still runs")


def test_contenders_take_turns_in_an_order_that_rotates() -> None:
    # too large for all, so that nothing needs to be done
    spared = dict.fromkeys(("Polite", "Absent", "Failing"), "largest = 1")
    found = measured(specification("Polite", "Absent", "Failing", repeats=2, **spared))
    assert [each.called for each in found] == ["polite", "absent", "failing", "absent", "failing", "polite"]


def test_a_run_that_was_cut_off_goes_on_and_measures_nothing_twice() -> None:
    spec = specification("Failing", "Absent", repeats=2)
    whole: list[Record] = []
    for record in run_spec(spec):
        whole.append(record)
        if len(measurements(whole)) == 2:
            break
    rest = measured(spec, before=whole)
    made = measurements(whole) + rest
    identities = {(each.called, each.instance.digest, each.repeat) for each in made}
    assert len(made) == len(identities) == 4
    assert measured(spec, before=[*whole, *rest]) == []
    # under another limit it is another measurement, here one that is only written down
    other = specification("Failing", top="time_limit = 9", Failing="largest = 1")
    assert [each.status for each in measured(other, before=[*whole, *rest])] == [TrialStatus.SKIPPED]


def test_neither_another_label_nor_another_specification_passes_for_the_same() -> None:
    spec = specification("Failing", Failing="largest = 1")  # too large, so that nothing needs to be done
    records = list(run_spec(spec))
    assert measured(spec, before=records) == []
    assert len(measured(Spec.parse(spec.source.replace('"failing"', '"again"')), before=records)) == 1
    assert len(measured(Spec.parse(spec.source.replace('"test"', '"other"')), before=records)) == 1


def test_what_was_measured_at_another_commit_is_kept_and_told() -> None:
    from dataclasses import replace

    from fairopt.experiment.machine import Environment

    spec, heard = specification("Failing", Failing="largest = 1"), list[str]()
    here = Environment.starting(spec.source, [], ["test"])
    records = list(run_spec(spec, environment=replace(here, commit="old")))
    assert measured(spec, before=records, environment=replace(here, commit="new"), say=heard.append) == []
    assert heard == ["1 of 1 measurements that are kept were made at another commit"]


def test_a_folder_inside_a_checkout_of_something_else_has_no_commit(tmp_path: Path) -> None:
    import subprocess

    from fairopt.experiment.machine import checkout

    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "file").write_text("")
    assert checkout(tmp_path / "inside") == ("", False)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    os.utime(tmp_path / "inside" / "file", (0, 0))  # git would note in its index that only the time is another
    index = (tmp_path / ".git" / "index").read_bytes()
    commit, dirty = checkout(tmp_path / "inside")
    assert len(commit) == 40
    assert not dirty
    assert (tmp_path / ".git" / "index").read_bytes() == index


class Waiting(ThreadPoolExecutor):
    """Counts how many jobs are under way at once."""

    most = now = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        self.now += 1
        self.most = max(self.most, self.now)
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(lambda _: setattr(self, "now", self.now - 1))
        return future


def test_any_executor_does_and_the_number_at_once_is_kept_and_written_down() -> None:
    with Waiting(4) as pool:
        found = measured(specification("Failing", repeats=2), executor=pool, concurrent=2)
    assert pool.most == 2
    assert {each.concurrent for each in found} == {2}
    assert {(each.instance.size, each.repeat) for each in found} == {(4, 0), (4, 1)}


@pytest.mark.slow  # two processes more, and Dask's are tested as well
def test_a_pool_of_processes_does() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        [found] = measured(specification("Sound"), executor=pool)
    assert found.status is TrialStatus.SOLVED, found.message


class Broken(Executor):
    """An executor whose worker dies at the third job."""

    count = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        self.count += 1
        future: Future[object] = Future()
        if self.count < 3:
            future.set_result(fn(*args, **kwargs))
        else:
            future.set_exception(BrokenProcessPool("a worker was killed"))
        return future


def test_an_executor_that_fails_ends_the_run_with_what_was_measured_kept() -> None:
    def all_of(run: Iterator[Record]) -> None:
        kept.extend(run)

    kept: list[Record] = []
    run = run_spec(specification("Failing", users="[4, 5]"), Broken())
    with pytest.raises(NotSolved, match=r"a worker was killed.*the same command goes on"):
        all_of(run)
    assert len(measurements(kept)) == 1


def test_a_child_ends_when_whoever_measures_is_killed(tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys

    code = (
        "import fairopt.experiment.bench.run as r, sys; from fairopt.experiment.bench.spec import Spec; "
        "list(r.run_spec(Spec.parse(open(sys.argv[1]).read())))"
    )
    spec = specification("Sleeping", top="time_limit = 300")
    (tmp_path / "spec.toml").write_text(spec.source)
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "spec.toml")])
    child = 0
    for _ in range(600):
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        found = [pid for pid in children if b"bench.child" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        if found:
            child = int(found[0])
            break
        time.sleep(0.05)
    assert child
    time.sleep(1.0)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    for _ in range(200):
        stat = Path(f"/proc/{child}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the measurement goes on without anybody to tell")


def test_a_system_that_cannot_stop_groups_of_processes_is_told(monkeypatch, tmp_path):
    from fairopt.experiment.bench.measure import run_child

    monkeypatch.delattr("os.killpg")
    with pytest.raises(NotCapable, match="Linux and macOS"):
        run_child(tmp_path, time_limit=1, memory_limit=None, threads=1)
