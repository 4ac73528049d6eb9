"""``--policy FILE.py:NAME``: somebody's own function as a policy, in every command; and what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ran_command import Ran

RULES = """
import numpy as np

def proportional(market):
    print("said by the function")
    return market.speedup / market.speedup.sum(axis=0) * market.capacity

def roots(market):
    roots = np.sqrt(market.speedup)
    return roots / roots.sum(axis=0) * market.capacity

def table(market):
    import pandas as pd
    return pd.DataFrame(proportional(market), index=market.users, columns=market.types)

def no_envy(market):
    import cvxpy as cp
    n, k = market.speedup.shape
    x = cp.Variable((n, k), nonneg=True)
    own = cp.sum(cp.multiply(market.speedup, x), axis=1)
    envy = [own[i] >= market.speedup[i] @ x[j] for i in range(n) for j in range(n) if i != j]
    return cp.Problem(cp.Maximize(cp.sum(own)), [cp.sum(x, axis=0) <= market.capacity, *envy])

def logs(market):
    import cvxpy as cp
    x = cp.Variable(market.speedup.shape, nonneg=True)
    own = cp.sum(cp.multiply(market.speedup, x), axis=1)
    return cp.Problem(cp.Maximize(cp.sum(cp.log(own))), [cp.sum(x, axis=0) <= market.capacity])

def narrow(market):
    return market.speedup[:, :1]

def broken(market):
    nothing = None
    return nothing + 1

def not_numbers(market):
    return -np.full(market.speedup.shape, np.nan)

def words(market):
    return "all to me"

def nobody(market):
    pass

def two_variables(market):
    import cvxpy as cp
    x, y = cp.Variable(market.speedup.shape), cp.Variable(market.speedup.shape)
    return cp.Problem(cp.Maximize(cp.sum(x + y)), [x <= 1, y <= 1])

def impossible(market):
    import cvxpy as cp
    x = cp.Variable(market.speedup.shape)
    return cp.Problem(cp.Maximize(cp.sum(x)), [x <= 1, x >= 2])

def drf(market):
    return proportional(market)

def too_much(market):
    return 3 * proportional(market)

def not_convex(market):
    import cvxpy as cp
    x = cp.Variable(market.speedup.shape, nonneg=True)
    return cp.Problem(cp.Maximize(cp.sum_squares(x)), [x <= 1])

def leaves(market):
    raise SystemExit(0)

def two_lines(market):
    raise ValueError("first\\nsecond.")

def holes(market):
    return np.full(market.speedup.shape, None)

asked = []
def changes_its_mind(market):
    asked.append(market)
    return proportional(market) / len(asked)

thirds = lambda market: market.equal_split() / 3

class WithOptions:
    def __init__(self, part):
        self.part = part

number = 3
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules.py"
    path.write_text(RULES)
    return str(path)


def test_shares_are_decided_exactly(fairopt: Callable[..., Ran], rules: str) -> None:
    ran = fairopt("solve", "@oef-example", "--policy", f"{rules}:proportional", "--json", "--exact")
    assert ran.status == 0
    assert ran.data["allocation"] == [["1/3", "2/9"], ["1/3", "1/3"], ["1/3", "4/9"]]
    assert ran.data["policy"] == "proportional"
    assert ran.err == "said by the function\n"
    table = fairopt("solve", "@oef-example", "--policy", f"{rules}:table", "--json", "--exact")
    assert table.data["allocation"] == ran.data["allocation"]
    ran = fairopt("solve", "@oef-example", "--policy", f"{rules}:roots", "--json")
    assert sum(map(sum, ran.data["allocation"])) == pytest.approx(2)
    assert fairopt("solve", "@oef-example", "--policy", f"{rules}:roots", "--exact").status == 3


def test_every_command_takes_it(fairopt: Callable[..., Ran], rules: str) -> None:
    own = ["--policy", f"{rules}:proportional"]
    compared = fairopt("compare", "@oef-example", *own, "--policy", "max-min", "--evaluations", "30", "--json")
    verdicts = compared.data["policies"]["proportional"]["properties"]
    assert verdicts["feasibility"]["answer"] == "HOLDS"
    assert verdicts["envy_freeness"]["answer"] == verdicts["strategy_proofness"]["answer"] == "FAILS"
    assert fairopt("incentives", "@oef-example", *own, "--evaluations", "20").status == 0
    assert fairopt("frontier", "@oef-example", *own, "--goal", "total_efficiency").status == 0
    assert "FILE.py:NAME" in fairopt("solve", "--help").out


def test_a_lie_is_found_and_shrunk(fairopt: Callable[..., Ran], rules: str) -> None:
    ran = fairopt("lie", "@oef-example", "--policy", f"{rules}:proportional", "--shrink", "--json")
    assert ran.status == 1
    assert ran.data["found"]
    assert len(ran.data["market"]["user"]) == 2


def test_a_linear_problem_is_a_program_with_certificates(
    fairopt: Callable[..., Ran], rules: str, tmp_path: Path
) -> None:
    own, proof = ["solve", "@oef-example", "--policy", f"{rules}:no_envy"], tmp_path / "proof.json"
    house = fairopt("solve", "@oef-example", "--policy", "oef-cooperative", "--exact", "--json").data
    ran = fairopt(*own, "--certificate", proof, "--json")
    assert ran.data["objective"] == house["objective"] == "9/2"
    checked = fairopt("check", proof)
    assert checked.status == 0
    assert "the author of 'no_envy' wrote, has this optimum: objective 9/2" in checked.out
    assert fairopt(*own, "--backend", "highs", "--json").data["objective"] == pytest.approx(4.5)
    assert fairopt(*own, "--unique", "--json").data["unique"] is True
    assert fairopt(*own, "--write", tmp_path / "x.mps").status == 0


def test_a_problem_that_is_not_linear_is_left_to_cvxpy(fairopt: Callable[..., Ran], rules: str) -> None:
    ran = fairopt("solve", "@oef-example", "--policy", f"{rules}:logs", "--json")
    nash = fairopt("solve", "@oef-example", "--policy", "nash-welfare", "--json")
    assert ran.data["utilities"] == pytest.approx(nash.data["utilities"], rel=1e-4)
    assert fairopt("solve", "@oef-example", "--policy", f"{rules}:logs", "--certificate", "x.json").status == 3


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("narrow", "line 30, narrow: it returned an array of shape (3, 1). Return shares of shape (3, 2)"),
        ("broken", "line 35, broken: TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'. Correct it"),
        ("not_numbers", "not_numbers: it returned nan for u1 of GPU1"),
        ("words", "words: it returned a str. Return shares"),
        ("nobody", "nobody: it returned None"),
        ("two_variables", "cvxpy.Variable((3, 2), nonneg=True, name='share')"),
        ("drf", "a function is called drf, as an installed policy is"),
        ("not_convex", "line 62, not_convex: DCPError: Problem does not follow DCP rules."),
        ("leaves", "line 68, leaves: SystemExit: 0. Correct it"),
        ("two_lines", "line 71, two_lines: ValueError: first second. Correct it"),
        ("holes", "holes: it returned an array of shape (3, 2): allocation, user 1 ('u1'), type 'GPU1': got None"),
        ("changes_its_mind", "asked twice of one market, it gives shares that differ by 0.0740741. Return the same"),
        ("WithOptions", "WithOptions'> cannot be made: TypeError: WithOptions.__init__() missing 1 required"),
        ("number", "it has no function 'number'"),
        ("propotional", "Did you mean 'proportional'?"),
    ],
)
def test_mistakes_name_the_file_and_the_line(fairopt: Callable[..., Ran], rules: str, name: str, says: str) -> None:
    ran = fairopt("solve", "@oef-example", "--policy", f"{rules}:{name}")
    assert ran.status == 2
    assert "rules.py" in ran.err
    assert says in ran.err
    assert "Traceback" not in ran.err


def test_a_function_without_a_name_has_the_one_it_was_asked_by(fairopt: Callable[..., Ran], rules: str) -> None:
    assert fairopt("solve", "@oef-example", "--policy", f"{rules}:thirds", "--json").data["policy"] == "thirds"


def test_shares_that_do_not_fit_are_told(fairopt: Callable[..., Ran], rules: str) -> None:
    ran = fairopt("solve", "@oef-example", "--policy", f"{rules}:too_much")
    assert "These shares are not feasible: 3 GPUs of GPU1" in ran.out
    compared = fairopt(
        "compare", "@oef-example", "--policy", f"{rules}:too_much", "--property", "feasibility", "--json"
    )
    assert compared.data["policies"]["too_much"]["properties"]["feasibility"]["answer"] == "FAILS"


def test_a_negative_share_is_called_so(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    """It was called more than there is."""
    path = tmp_path / "rule.py"
    path.write_text("def rule(market):\n    return -market.equal_split()\n")
    asked = ("--policy", f"{path}:rule", "--property", "feasibility", "--property", "pareto_efficiency")
    said = fairopt("compare", "@oef-eq6", *asked).out
    assert "rule breaks 2: u1 is given a negative share and an infeasible allocation is not efficient." in said


def test_a_file_may_import_files_beside_it(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "beside_the_rule.py").write_text("def half(market):\n    return market.equal_split() / 2\n")
    path = tmp_path / "rule.py"
    path.write_text("def rule(market):\n    from beside_the_rule import half\n\n    return half(market)\n")
    ran = fairopt("solve", "@oef-example", "--policy", f"{path}:rule", "--json")
    assert ran.status == 0, ran.err


def test_files_that_cannot_be_read(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "rule.py"
    assert "there is no such file" in fairopt("solve", "@oef-example", "--policy", f"{path}:rule").err
    path.write_text("def rule(market):\n    return market.equal_split()\n")
    for given in (f"{path}", f"{path}:"):
        ran = fairopt("solve", "@oef-example", "--policy", given)
        assert f"nothing says which function. Give {path}:NAME; it has rule" in ran.err
    path.write_text("def rule(market):\n    return (\n")
    assert "rule.py: line 2: SyntaxError" in fairopt("solve", "@oef-example", "--policy", f"{path}:rule").err
    path.write_text("import sys\nsys.exit(0)\n")
    ran = fairopt("solve", "@oef-example", "--policy", f"{path}:rule")
    assert (ran.status, "rule.py: line 2: SystemExit: 0" in ran.err) == (2, True)
    path.write_text("import numpy\nimport no_such_module\n")
    assert "rule.py: line 2: ModuleNotFoundError" in fairopt("solve", "@oef-example", "--policy", f"{path}:rule").err


def test_what_cannot_be_done_with_one_is_said(fairopt: Callable[..., Ran], rules: str, tmp_path: Path) -> None:
    own = ["solve", "@oef-example", "--policy", f"{rules}:proportional"]
    assert "no program for highs" in fairopt(*own, "--backend", "highs").err
    assert "is a rule and not a program" in fairopt(*own, "--write", tmp_path / "x.mps").err
    assert "returns shares and no linear program" in fairopt(*own, "--certificate", tmp_path / "x.json").err
    ran = fairopt("solve", "@oef-example", "--policy", f"{rules}:impossible")
    assert ran.status == 3
    ran = fairopt("run", "@philly", "--cluster", "@philly-cluster", "--policy", f"{rules}:proportional")
    assert "in rounds: --policy oef-rounds --set shares=" in ran.err
    few = ("compare", "@oef-example", "--evaluations", 3)
    twice = fairopt(*few, "--policy", f"{rules}:table", "--policy", f"{rules}:table")
    assert twice.status in (0, 4)
    other = tmp_path / "other.py"
    other.write_text(RULES)
    both = fairopt(*few, "--policy", f"{rules}:table", "--policy", f"{other}:table")
    assert "two are called table" in both.err


def test_a_function_shares_the_rounds_of_a_trace(fairopt: Callable[..., Ran], rules: str) -> None:
    shares = f"shares={rules}:proportional"
    arguments = ["--cluster", "@philly-cluster", "--policy", "oef-rounds", "--set", shares, "--rounds", "2"]
    assert fairopt("run", "@philly", *arguments).status == 0


def test_a_class_that_nobody_registered(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("solve", "@oef-example", "--policy", "fairopt.models.gavel.max_min:MaxMin", "--json")
    assert ran.data["policy"] == "max-min"
