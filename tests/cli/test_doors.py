"""What a newcomer meets first: help in words, and messages about files, which are never written over."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from ran_command import Ran

from fairopt.cli.app import COMMANDS, in_words, load


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_what_an_option_takes_in_words_and_not_by_types_of_python(name: str) -> None:
    command = load(name)
    for each in getattr(command, "commands", {"": command}).values():
        context = each.context_class(each, info_name=name)
        rows = [row for parameter in each.get_params(context) if (row := in_words(parameter, context)) is not None]
        odd = [
            called for called, _ in rows if re.search("<(str|int|float|path|list|uuid)|[][{}]", called, re.IGNORECASE)
        ]
        assert rows
        assert not odd
        assert not re.search(r"[{}<]|\[\[|\.\.\.\S*\.\.\.", " ".join(each.collect_usage_pieces(context)))


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["solve", "m.csv", "--policy", "max-min", "--certificate", "m.csv"], "--certificate"),
        (["lie", "m.csv", "--policy", "max-min", "--out", "n.csv"], "--out"),
        (["import", "job-csv", "m.csv", "--out", "./m.csv"], "--out"),
    ],
)
def test_what_is_read_is_not_written_over(
    fairopt: Callable[..., Ran], arguments: list[str], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "user,K80,V100\ncapacity,4,2\nAnn,1,2\n"
    Path("m.csv").write_text(text)
    Path("n.csv").symlink_to("m.csv")
    ran = fairopt(*arguments)
    assert ran.status == 2
    assert f"{option}: " in ran.err
    assert "Name another file" in ran.err
    assert Path("m.csv").read_text() == text


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("m.toml", 'schema=1\ntypes=["A"]\ncapacity="many"\n[[user]]\nname="u"\nspeedup=[1]\n', "got 'many'"),
        ("m.toml", 'schema=1\ntypes=["A"]\ncapacity=[1e400]\n[[user]]\nname="u"\nspeedup=[1]\n', "got 1e+400, which"),
        ("m.csv", "", "`fairopt datasets` lists examples"),
        ("m.csv", "id,submit\n1,2\n", "user (a market) or job_id (a trace)"),
    ],
)
def test_messages_about_files_name_the_value_and_the_remedy(
    fairopt: Callable[..., Ran], tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text)
    ran = fairopt("compare", tmp_path / name)
    assert ran.status == 2
    assert says in ran.err


@pytest.mark.parametrize("command", ["solve", "lie"])
def test_guarantees_that_do_not_fit_together_are_named_with_their_file(
    fairopt: Callable[..., Ran], tmp_path: Path, command: str
) -> None:
    """They are read, since quotas may promise more than there is; most policies cannot keep them."""
    market = tmp_path / "now.toml"
    users = ", ".join(f'{{ name = "{name}", speedup = [1], guarantee = [6] }}' for name in "AB")
    market.write_text(f'schema = 1\ntypes = ["H100"]\ncapacity = [8]\nuser = [{users}]\n')
    ran = fairopt(command, market, "--policy", "max-min")
    says = f"{market}: guarantee, 'H100': guarantees and reserves add up to 12, and there are only 8. Give smaller "
    assert (ran.status, says in ran.err) == (2, True)
    wrong = fairopt("solve", market, "--policy", "max-min", "--seed", -1)
    assert wrong.err.startswith("fairopt: option seed: got -1")  # which is not the file's
