"""What `fairopt study` and `fairopt compare --seeds` print and write, and what they say of wrong inputs."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from ran_command import Ran
from study_examples import cells_of, spec_file, spec_text, study_process

from fairopt.errors import BadInput
from fairopt.experiment.studies.page import page
from fairopt.experiment.studies.results import StudyResults
from fairopt.experiment.studies.spec import StudySpec


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the study has been played."""
    folder = tmp_path_factory.mktemp("study")
    tables = [word for suffix in ("csv", "parquet", "tex") for word in ("--table", f"cells.{suffix}")]
    ran = study_process(
        folder, spec_file(folder, spec_text(folder).replace("seeds = 3", "seeds = 4")), "--json", "--jobs", "1", *tables
    )
    assert ran.returncode == 0, ran.stderr
    (folder / "out.json").write_text(ran.stdout)
    return folder


def test_json_says_who_is_better_and_how_sure(done: Path) -> None:
    said = json.loads((done / "out.json").read_text())
    assert said["schema"] == 1
    assert (said["study"], said["cells"], said["missing"], said["failed"]) == ("small", 16, 0, [])
    assert len(said["pairs"]) == 2
    for pair in said["pairs"]:
        assert pair["factor"]["low"] <= pair["factor"]["value"] <= pair["factor"]["high"]
        assert pair["factor"]["value"] >= 1
        assert pair["p"] <= pair["p_holm"] <= 1
        assert {pair["better"], pair["than"]} == {"srtf", "tiresias"}
    # the numbers are those of the cells: of a trace that is a file, its own
    cells = {(each.policy, each.load, each.seed): each.observed for each in cells_of(done / "small.jsonl")}
    for mean in said["means"]:
        seen = cells[mean["policy"], float(mean["load"]), 0]
        assert seen is not None
        assert mean["value"] == pytest.approx(seen.measures["jct_mean"])


def test_tables_have_every_cell(done: Path) -> None:
    import pyarrow.parquet

    rows = list(csv.DictReader((done / "cells.csv").read_text().splitlines()))
    assert len(rows) == 16
    table = pyarrow.parquet.read_table(done / "cells.parquet")
    assert table.num_rows == 16
    assert [float(row["jct_mean"]) for row in rows] == pytest.approx(table["jct_mean"].to_pylist())
    latex = (done / "cells.tex").read_text()
    assert latex.startswith("\\begin{tabular}{llr}")
    assert "jct\\_mean" in latex
    assert latex.count("\\\\\n") == 1 + 4


def test_the_page_needs_no_other_file_and_says_what_the_table_says(done: Path) -> None:
    text = (done / "small.html").read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!#)[^"']*""", re.sub(r'xlink:href="#[^"]*"', "", text))
    assert "@import" not in text
    assert "url(http" not in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert text.count("<svg") == text.count("<figcaption") >= 12
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
    for pair in json.loads((done / "out.json").read_text())["pairs"]:
        assert f"{pair['factor']['value']:.3g}"[:4] in text
    HTMLParser().feed(text)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium here")
def test_a_browser_shows_the_page_in_light_and_dark(done: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    corners = {}
    for mode, options in {
        "light": [],
        "dark": ["--blink-settings=preferredColorScheme=0", "--force-dark-mode"],
    }.items():
        shot = tmp_path / f"{mode}.png"
        words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / mode}"]
        size = ["--window-size=1200,1600", "--hide-scrollbars", f"--screenshot={shot}"]
        subprocess.run([*words, *options, *size, f"file://{done / 'small.html'}"], capture_output=True, timeout=120)
        picture = image.open(shot).convert("L")
        corners[mode] = picture.getpixel((5, 5))
        assert len(picture.getcolors()) > 50  # something is drawn
    assert corners["light"] > 240
    assert corners["dark"] < 60


def test_the_same_cells_give_the_same_page(done: Path) -> None:
    spec = StudySpec.parse((done / "small.toml").read_text())
    found = StudyResults(spec, cells_of(done / "small.jsonl"))
    assert page(found) == (done / "small.html").read_text()


@pytest.mark.usefixtures("no_pictures")
def test_a_report_of_what_is_played_plays_nothing(done: Path, tmp_path: Path, study: Callable[..., Ran]) -> None:
    whole = (done / "small.jsonl").read_text().splitlines(keepends=True)
    part = tmp_path / "part.jsonl"
    part.write_text("".join(whole[:-3]) + whole[-1][:50])
    ran = study(tmp_path, "report", part, "--page", "part.html")
    assert ran.status == 0, ran.err
    assert "the last line was cut off" in ran.err
    assert "3 of 16 cells are not played yet" in ran.out
    assert (tmp_path / "part.html").exists()
    assert part.read_text().count("\n") == len(whole) - 3


@pytest.mark.usefixtures("no_pictures")
def test_a_study_that_grows_goes_on_and_is_reported_as_it_is_now(
    done: Path, tmp_path: Path, study: Callable[..., Ran]
) -> None:
    shutil.copy(done / "small.jsonl", tmp_path)
    shutil.copy(done / "trace.csv", tmp_path)
    more = spec_file(tmp_path, (done / "small.toml").read_text().replace("seeds = 4", "seeds = 5"))
    ran = study(tmp_path, more, "--jobs", 1)
    assert "going on from 16 of 20 cells" in ran.err
    before = (done / "small.jsonl").read_text()
    assert (tmp_path / "small.jsonl").read_text().startswith(before)
    for command in (["report", "small.jsonl"], ["merge", "small.jsonl", "-o", "all.jsonl"], ["report", "all.jsonl"]):
        ran = study(tmp_path, *command, "--json")
        assert ran.status == 0, ran.err
        assert json.loads(ran.out)["cells"] == 20
    ran = study(tmp_path, "report", "small.jsonl", done / "small.jsonl")
    assert ran.status == 2
    assert "is of another specification than small.jsonl. Give files of one" in ran.err


def test_the_cells_of_another_study_are_left_alone(done: Path, tmp_path: Path, study: Callable[..., Ran]) -> None:
    text = (done / "small.toml").read_text().replace('name = "small"', 'name = "mine"').replace("length = 60", "")
    before = (done / "small.jsonl").read_text()
    ran = study(tmp_path, spec_file(tmp_path, text), "--cells", done / "small.jsonl")
    assert ran.status == 2
    assert "holds cells of the study 'small', and this is 'mine'. Name another file" in ran.err
    assert (done / "small.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('policy = "srtf"', 'policy = "srft"', ["policies 1", "there is no 'srft'", "Did you mean srtf"]),
        ('policy = "srtf"', 'policy = "max-min"', ["policies 1", "`fairopt solve` takes it"]),
        ('policy = "srtf"', 'policy = "tiresias"\nlabel = "t"\noptions = { skp = 1 }', ["no option 'skp'", "'skip'"]),
        ('policy = "srtf"', 'policy = "tiresias"', ["policies 2", "'tiresias' stands twice", "labels that differ"]),
        ("seeds = 3", "seeds = 0", ["key 'seeds'", "got 0"]),
        ("seeds = 3", "seeds = [1, 2]", ["key 'seeds'", "Add 0"]),
        ("seeds = 3", "sedes = 3", ["unknown key 'sedes'", "'seeds'"]),
        ("loads = [1, 2]", "loads = [1, 0]", ["key 'loads'", "got 0", "above 0"]),
        ("length = 60", "length = -1", ["key 'length'", "got -1", "above 0"]),
        ("length = 60", "window = { warm_up = 0.6, cool_down = 0.5 }", ["1.1 for both", "Leave some jobs"]),
        ("[2, 2]", "[2, 0]", ["host 'T-1', gpus", "got 0"]),
        ("[2, 2]", "[-2, 2]", ["hosts of type 'T'", "got -2"]),
        ("seeds = 3", "seeds = 1_000_000_000", ["key 'seeds'", "got 1000000000", "at most 10000"]),
        ("loads = [1, 2]", "loads = [1, nan]", ["key 'loads'", "got nan", "above 0"]),
        ("seeds = 3", "seeds = [0, -1]", ["key 'seeds'", "got -1", "from 0"]),
        ('name = "small"', 'name = "../small"', ["key 'name'", "'../small'", "no folder"]),
        ('policy = "srtf"', 'policy = "srtf"\noptions = { foo = 1 }', ["policies 1, options", "no option 'foo'"]),
        (
            'policy = "srtf"',
            'policy = "tiresias"\nlabel = "t"\noptions = { thresholds = "abc" }',
            ["policies 1, options thresholds", "'abc'"],
        ),
        ('measure = "jct_mean"', 'measure = "jct"', ["compare 1", "'jct'", "jct_"]),
        ('better = "less"', 'better = "fewer"', ["compare 1", "'fewer'", "less"]),
        ('better = "less"', 'better = "less"\nbaseline = "fft"', ["compare 1, key 'baseline'", "'fft'"]),
        ("schema = 1", "schema = 2", ["key 'schema'", "got 2", "schema = 1"]),
        ("trace.csv", "nowhere.csv", ["nowhere.csv", "cannot be read"]),
        ("[2, 2]", "[1_000_000_000_000, 2]", ["clusters 1", "hosts of type 'T'", "got 1000000000000", "to 1000000"]),
        ("seeds = 3", "seeds = [0, 10000000]", ["key 'seeds'", "got 10000000", "to 1000000"]),
        ("length = 60", "length = 1e-320", ["key 'length'", "1e-320", "ordinary size"]),
        ('name = "small"', 'name = "a\\u0007"', ["key 'name'", "'a\\x07'", "files can have"]),
        ('name = "small"', f'name = "{"a" * 300}"', ["key 'name'", "files can have"]),
        ("length = 60", "mechanics = [{ restart = nan }]", ["mechanics 1", "restart", "got nan"]),
        ("length = 60", "mechanics = [{ spread = 2 }]", ["mechanics 1, spread", "got 2", "at most 1"]),
        ("length = 60", "errors = [{ size = 1.5 }]", ["errors 1", "got 1.5", "sign=over"]),
        ('label = "made up"', "block = -1", ["traces 1", "key 'block'", "got -1", "from 0"]),
        ('label = "made up"', "jobs = 0", ["traces 1", "key 'jobs'", "got 0", "from 1"]),
        ('label = "made up"', "grid = nan", ["traces 1", "key 'grid'", "got nan", "finite"]),
        ('label = "made up"', "grid = -10", ["traces 1", "key 'grid'", "got -10", "from 0"]),
        (
            "[[compare]]",
            '[[compare]]\nmeasure = "jct_mean"\nbetter = "more"\n\n[[compare]]',
            ["compare 2", "'jct_mean'"],
        ),
        ('label = "made up"', 'clusters = ["X"]', ["traces 1, key 'clusters'", "'X'"]),
        ('label = "made up"', 'generator = "poisson"', ["traces 1", "got both", "Give file, or generator"]),
    ],
)
def test_wrong_specifications_are_refused_with_place_value_and_remedy(
    tmp_path: Path, old: str, new: str, said: list[str]
) -> None:
    text = spec_text(tmp_path)
    assert old in text
    with pytest.raises(BadInput) as refused:
        StudySpec.read(spec_file(tmp_path, text.replace(old, new, 1)))
    for part in said:
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nowhere.toml"], ["nowhere.toml", "no such file", "fairopt study list"]),
        (["first-lok"], ["no specification 'first-lok'", "Did you mean 'first-look'"]),
        (["SPEC", "--shard", "4/3"], ["--shard", "'4/3'", "Write i/n"]),
        (["SPEC", "--table", "a.xls"], ["'.xls'", ".csv, .tex, .parquet"]),
        (["SPEC", "--table", "no/a.csv"], ["--table", "no/a.csv"]),
        (["SPEC", "--jobs", "2", "--dask", "local:2"], ["--jobs 2 with --dask", "one of the two"]),
        (["SPEC", "--page", "x", "--cells", "x"], ["x is the file of --cells"]),
        (["merge", "SPEC", "-o", "all.jsonl"], ["line 1", "not JSON"]),
    ],
)
def test_wrong_options_are_refused_before_anything_is_played(
    tmp_path: Path, study: Callable[..., Ran], options: list[str], said: list[str]
) -> None:
    spec = spec_file(tmp_path)
    ran = study(tmp_path, *(spec if each == "SPEC" else each for each in options))
    assert ran.status == 2, ran.err
    for part in said:
        assert part in ran.err
    assert "Traceback" not in ran.err
    assert not list(tmp_path.glob("*.jsonl"))


def test_compare_with_seeds(tmp_path: Path, fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    spec_text(tmp_path)
    (tmp_path / "cluster.toml").write_text('schema = 1\n[[host]]\nname = "h"\ntype = "T"\ngpus = 3\n')
    monkeypatch.chdir(tmp_path)
    words = ["compare", "trace.csv", "--cluster", "cluster.toml", "--seeds", "4"]
    policies = ["--policy", "srtf", "--policy", "tiresias"]
    ran = fairopt(*words, *policies, "--json")
    assert ran.status == 0, ran.err
    assert {pair["measure"] for pair in ran.data["pairs"]} >= {"jct_mean", "ltgf_tenant_min"}
    assert all(pair["seeds"] == 4 for pair in ran.data["pairs"])
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # the processes are begun above
    few = fairopt(*words, *policies).out
    assert "mean time to" in few
    assert "Of 4 pairs" in few
    assert "With 4 seeds much stays undecided" in few
    assert "jct_mean" not in few
    many = fairopt(*words, *policies, "--pairs").out
    assert many.count("mean time to complete (jct_mean), less is better:") == 1
    assert fairopt(*words[:-2], *policies, "--pairs").err.startswith(
        "fairopt: --pairs: it says who is better over seeds"
    )
    for extra, part in (
        (["--property", "no_starvation"], "--property"),
        (["--policy", "nobody"], "'nobody'"),
        (["--type", "T"], "--type: it means nothing for a trace"),
    ):
        ran = fairopt(*words, *policies, *extra)
        assert ran.status == 2
        assert part in ran.err
    ran = fairopt(*words[:-1], "10001", *policies)
    assert ran.status == 2
    assert "--seeds: got 10001. Give at most 10000" in ran.err
    ran = fairopt(*words, "--policy", "srtf")
    assert ran.status == 2
    assert "two at least" in ran.err
