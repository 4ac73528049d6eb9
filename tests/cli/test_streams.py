"""What goes where: closed pipes, the width of tables, progress, logs, and how soon a command says what it can do."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from ran_command import Ran

from fairopt.cli import tables
from fairopt.cli.app import COMMANDS

FAIROPT = [sys.executable, "-m", "fairopt"]
# one of each way to write, and the rest where there is time
QUICK = [
    *(["--help"], ["solve", "--help"], ["policies", "--json"], ["solve", "@gavel", "--policy", "max-min"]),
    ["compare", "@oef-eq6", "--policy", "max-min", "--evaluations", "3", "--json"],
    ["run", "@philly", "--cluster", "@philly", "--policy", "srtf", "--rounds", "1", "--floats"],
]
SLOW = [
    *([name, "--help"] for name in COMMANDS if name != "solve"),
    *(["--version"], ["policies"], ["policies", "fft"], ["backends"], ["properties"], ["plugins"]),
    *(["datasets"], ["claims"], ["bench", "list"], ["check", "/dev/null"]),
    ["solve", "@gavel", "--policy", "max-min", "--json"],
    ["compare", "@oef-eq6", "--policy", "max-min", "--evaluations", "3"],
    ["lie", "@oef-eq6", "--policy", "max-min", "--evaluations", "30"],
    ["schedule", "@astraea-small", "--policy", "fcfs"],
]


# -- closed pipes ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "arguments", [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)], ids=" ".join
)
def test_a_closed_pipe_is_no_failure(forked_fairopt: list[str], arguments: list[str]) -> None:
    assert _unread([*forked_fairopt, *arguments]) == (141, b"")  # 128 + SIGPIPE, as a shell says of other programs


def test_a_closed_pipe_is_no_failure_of_a_command_that_begins() -> None:
    assert _unread([*FAIROPT, "policies", "--json"]) == (141, b"")


def _unread(command: list[str]) -> tuple[int, bytes]:
    """Return the exit status of a command whose output nobody reads, and its errors."""
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    return ran.returncode, ran.stderr


def test_a_pipe_that_is_closed_after_a_line(forked_fairopt: list[str]) -> None:
    line = f"{shlex.join(forked_fairopt)} claims --json | head -1; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (141, "[\n", "")


@pytest.mark.parametrize("arguments", [["solve", "nowhere.toml", "--policy", "max-min"], ["solve"], ["nothing"]])
def test_nobody_reads_errors(forked_fairopt: list[str], arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run([*forked_fairopt, *arguments], stdout=write, stderr=write, check=False)
    os.close(write)
    assert ran.returncode in (2, 141)


# -- tables ------------------------------------------------------------------------------------------------------------
WIDE = [
    ["solve", "@gavel", "--policy", "max-min"],
    ["compare", "@gavel", "--policy", "equal-split", "--evaluations", "3", "--allocations"],
    ["compare", "@astraea-small", "--policy", "fcfs", "--property", "budget_balance"],
    ["run", "@philly", "--cluster", "@philly", "--policy", "srtf", "--rounds", "1", "--floats"],
    ["schedule", "@astraea-example", "--policy", "fcfs"],
    *(["policies"], ["policies", "fft"], ["backends"], ["properties"], ["datasets"], ["claims"], ["bench", "list"]),
]


def rules(text: str) -> list[str]:
    """Return the lines between the headers and the rows of tables, which are as wide as these."""
    return [line.rstrip() for line in text.splitlines() if "──" in line]


@pytest.mark.parametrize("width", [40, pytest.param(60, marks=pytest.mark.slow), 80])
@pytest.mark.parametrize("arguments", WIDE, ids=" ".join)
def test_tables_fit(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, arguments: list[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, rules(fairopt(*arguments).out))) <= width


def test_no_number_is_cut_off(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("solve", "@gavel", "--policy", "max-min")
    numbers = set(re.findall(r"(?<!█ )\b\d+\.\d+", fairopt(*arguments).out))  # bars go where there is no room
    monkeypatch.setenv("COLUMNS", "40")
    assert numbers == set(re.findall(r"\d+\.\d+", fairopt(*arguments).out))


def on_terminal(folder: Path, command: list[str], *, columns: int = 60, to_file: bool = False) -> tuple[str, str]:
    """Return what a command writes to a terminal, and to a file that is its standard output (``to_file``)."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with (folder / "out").open("wb") as file:
        out = file if to_file else other
        env = environment | {"TERM": "xterm"}
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=other, env=env):
            os.close(other)
            shown = b"".join(iter(lambda: _read(main), b""))
    os.close(main)
    return shown.decode(), (folder / "out").read_text()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # what Linux says at its end
        return b""


@pytest.mark.parametrize("to_file", [True, False])
def test_tables_fit_the_terminal_also_where_something_lies_between(
    tmp_path: Path, forked_fairopt: list[str], to_file: bool
) -> None:
    shown, written = on_terminal(tmp_path, [*forked_fairopt, "policies"], to_file=to_file)
    assert 50 < max(map(len, rules(written or shown))) <= 60


# -- progress ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("seconds", "shows"), [(tables.PATIENCE + 0.7, True), (0, False)])
def test_what_takes_long_shows_that_it_goes_on(tmp_path: Path, seconds: float, shows: bool) -> None:
    code = f"import time\nfrom fairopt.cli.tables import working\nwith working('searching'): time.sleep({seconds})"
    shown, written = on_terminal(tmp_path, [sys.executable, "-c", code], to_file=True)
    assert ("searching" in shown) is shows
    assert written == ""


def test_nothing_is_shown_off_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PATIENCE", 0)
    with tables.working("searching"):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_what_is_printed_under_a_bar_goes_where_it_belongs(tmp_path: Path) -> None:
    code = "from fairopt.cli.tables import progress, say\nwith progress(2) as done: done('one'); say('data')"
    shown, written = on_terminal(tmp_path, [sys.executable, "-c", code], to_file=True)
    assert "one" in shown
    assert written == "data\n"


# -- logs --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("option", "level"), [("-v", 20), ("--verbose", 20), ("-vv", 10)])
def test_verbose(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, option: str, level: int) -> None:
    @contextmanager
    def logged(what: str) -> Iterator[None]:
        logging.getLogger("fairopt.some.part").log(level, "at work: %s", what)
        logging.getLogger("fairopt").log(level - 1, "a detail")
        yield

    monkeypatch.setattr(tables, "working", logged)
    arguments = ("solve", "@oef-eq6", "--policy", "max-min")
    told = fairopt(option, *arguments)
    assert "fairopt.some.part: at work: max-min decides\n" in told.err
    assert "a detail" not in told.err
    silent = fairopt(*arguments)
    assert (silent.err, silent.out) == ("", told.out)


# -- how soon ----------------------------------------------------------------------------------------------------------
HELP = """
import contextlib, io, sys
from fairopt.cli import main
from fairopt.cli.app import COMMANDS
for name in COMMANDS:
    sys.argv = ["fairopt", name, "--help"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
print(*{name.partition(".")[0] for name in sys.modules}, *(name for name in sys.modules if name.startswith("fairopt.")))
"""


def test_help_is_there_at_once() -> None:
    """No solver and no library of tables or pictures is loaded for it, and few parts of fairopt."""
    ran = subprocess.run([sys.executable, "-c", HELP], check=True, capture_output=True, text=True)
    loaded = set(ran.stdout.split())
    assert not loaded & {"scipy", "highspy", "pandas", "cattrs", "yaml", "networkx", "matplotlib", "z3", "pyomo"}
    assert sum(name.startswith("fairopt.") for name in loaded) < 250  # of more than 500


# -- closed streams, letters, and ends ---------------------------------------------------------------------------------
SOLVE = "solve @oef-eq6 --policy equal-split"


@pytest.mark.parametrize(
    ("shell", "status", "out", "error"),
    [
        (f"{SOLVE} >&-", 0, "", ""),
        (f"{SOLVE} 2>&-", 0, "throughput", ""),
        ("solve nothing.toml --policy equal-split 2>&-", 2, "", ""),
        ("solve nothing.toml --policy equal-split 2>/dev/full", 2, "", ""),
        ("solve - --policy equal-split <&-", 2, "", "it is empty"),
    ],
)
def test_closed_streams_change_no_status(shell: str, status: int, out: str, error: str) -> None:
    command = f"{sys.executable} -m fairopt {shell}"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == status
    assert out in ran.stdout
    assert bool(out) == bool(ran.stdout)
    assert error in ran.stderr
    assert bool(error) == bool(ran.stderr)


@pytest.mark.parametrize("json_", [False, True])
def test_names_are_printed_where_not_every_letter_can_be(tmp_path: Path, json_: bool) -> None:
    (tmp_path / "market.csv").write_text("user,A\ncapacity,1\nü,1\n日本,1\n", encoding="utf-8")
    command = [*FAIROPT, "solve", str(tmp_path / "market.csv"), "--policy", "equal-split", *["--json"] * json_]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=env)
    assert json.loads(ran.stdout)["users"] == ["ü", "日本"] if json_ else r"\u65e5\u672c" in ran.stdout


INTERRUPTED_IN_A_CALLBACK = """
import os, signal, time, weakref
from fairopt.cli import app

signal.signal(signal.SIGTERM, signal.SIG_DFL)
app.app = lambda prog_name: work()

class Thing:
    pass

def forgotten(reference):  # Python drops errors in here
    os.kill(os.getpid(), signal.SIGTERM)
    sum(range(1000))

def work():
    thing = Thing()
    reference = weakref.ref(thing, forgotten)
    del thing
    time.sleep(50)

app.main()
"""


def test_an_interruption_is_not_lost_where_python_drops_errors() -> None:
    command = [sys.executable, "-c", INTERRUPTED_IN_A_CALLBACK]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=40)
    assert (ran.returncode, ran.stderr) == (130, "fairopt: interrupted\n")


def test_a_run_that_is_asked_to_end_keeps_what_it_has(tmp_path: Path, forked_fairopt: list[str]) -> None:
    state, record = tmp_path / "state.jsonl", tmp_path / "run.jsonl.gz"
    play = ["run", "@philly", "--cluster", "@philly", "--policy", "stride"]
    begun = subprocess.Popen([*FAIROPT, *play, "--state", state, "--record", record], stderr=subprocess.PIPE, text=True)
    while not (record.exists() and record.stat().st_size > 1000):
        time.sleep(0.05)
    begun.terminate()
    assert "interrupted after" in begun.communicate(timeout=60)[1]
    assert begun.returncode == 143
    for goes_on in ([*play, "--resume", state, "--rounds", "1"], ["check", record]):
        subprocess.run([*forked_fairopt, *goes_on], check=True, capture_output=True, timeout=60)


def test_a_width_of_nothing_hides_nothing(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert "throughput" in fairopt(*SOLVE.split()).out


def test_words_that_fit_are_not_broken(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert "throughput" in fairopt("solve", "@oef-example", "--policy", "max-min", "--exact").out


@pytest.mark.parametrize("width", [60, 80])
def test_names_of_properties_are_whole(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert "strategy_proofness" in fairopt("policies").out
    assert width < 80 or "schedule_strategy_proofness" in fairopt("properties").out


def test_files_are_written_where_the_terminal_is_closed(tmp_path: Path) -> None:
    """A laptop is shut, say: what is computed by then is kept, though nobody sees it."""
    page, (terminal, inside) = tmp_path / "page.html", os.openpty()

    def in_it() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and then nothing ends

    options = {"stdin": inside, "stdout": inside, "stderr": inside, "start_new_session": True, "preexec_fn": in_it}
    two = ("--policy", "equal-split", "--policy", "oef-cooperative")
    endless = ("--evaluations", "100000", "--seconds", "600")  # the second is not done by then
    begun = subprocess.Popen([*FAIROPT, "compare", "@gavel-example", *two, *endless, "--html", page], **options)
    os.close(inside)
    seen = b""
    while b"oef-cooperative: strategy_proofness" not in seen:  # the first policy is done
        seen += os.read(terminal, 1000)
    os.close(terminal)
    assert begun.wait(60) == 130
    assert "equal-split" in page.read_text(encoding="utf-8")


def test_a_closed_terminal_of_which_no_signal_tells_stops_nothing(tmp_path: Path) -> None:
    page, (terminal, inside) = tmp_path / "page.html", os.openpty()
    options = {"stdin": inside, "stdout": inside, "stderr": inside, "start_new_session": True}  # it controls nobody
    begun = subprocess.Popen([*FAIROPT, "compare", "@oef-example", "--evaluations", "3", "--html", page], **options)
    os.close(inside)
    os.close(terminal)
    assert begun.wait(60) in (0, 1, 4)
    assert "oef-cooperative" in page.read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("name", ["market", "market.toml"])
def test_a_pipe_is_read_once(fairopt: Callable[..., Ran], tmp_path: Path, name: str) -> None:
    """A command looks at a file before it reads it; at a named pipe it waited for ever, as at <(...) of a shell."""
    pipe = tmp_path / name
    os.mkfifo(pipe)
    market = b'schema = 1\ntypes = ["A"]\ncapacity = [2]\nuser = [{ name = "a", speedup = [3] }]\n'
    with ThreadPoolExecutor() as pool:
        pool.submit(pipe.write_bytes, market)
        ran = fairopt("compare", pipe, "--policy", "equal-split", "--property", "envy_freeness")
    assert "1 user shares 2 A.\nequal-split keeps the property that was asked." in ran.out
