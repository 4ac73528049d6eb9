"""The modelling language: affine arrays mean what NumPy means, and programs say what they are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, broadcastable_shapes

from fairopt.backends import Highs, write
from fairopt.backends.silent_highs import SilentHighs
from fairopt.backends.solution import Status
from fairopt.errors import BadInput, NotCapable
from fairopt.program import Affine, Formulation, Program, between, cast, entry_names, log_sum

SHAPE = (2, 3)


def values_of(body: Affine, x: np.ndarray) -> np.ndarray:
    """Evaluate an affine array term by term: slow, and independent of the arithmetic under test."""
    out = []
    for entry, constant in enumerate(body.constant.ravel().tolist()):
        total = constant
        for place in range(body.start[entry], body.start[entry + 1]):
            total = total + body.coefficient[place] * x[body.column[place]]
        out.append(total)
    return np.array(out, dtype=object).reshape(body.shape)


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether two arrays are equal: exactly, except for entries that a float took part in."""
    return found.shape == wanted.shape and all(
        abs(one - other) <= (1e-9 * (1 + abs(other)) if isinstance(one - other, float) else 0)
        for one, other in zip(found.ravel().tolist(), wanted.ravel().tolist(), strict=True)
    )


integers = st.integers(-5, 5)
exact = st.fractions(min_value=-4, max_value=4, max_denominator=12)
floats = st.integers(-40, 40).map(lambda value: value / 8)


def numbers(shape):
    whole = arrays(np.int64, shape, elements=integers)
    real = arrays(np.float64, shape, elements=floats)
    rational = arrays(object, shape, elements=exact, fill=st.nothing())
    return st.one_of(whole, real, rational)


@st.composite
def expressions(draw):
    """An affine array built by up to five operations, and the same operations on plain numbers."""
    p = Formulation("drawn")
    x = p.variable("x", SHAPE)
    y = p.variable("y", (3,))
    point = np.array(draw(st.lists(exact, min_size=9, max_size=9)), dtype=object)
    pool = [(x, point[:6].reshape(SHAPE)), (y, point[6:])]
    for _ in range(draw(st.integers(1, 5))):
        body, value = pool[draw(st.integers(0, len(pool) - 1))]
        pool.append(draw(steps(body, value, pool)))
    return pool[-1], point


@st.composite
def steps(draw, body, value, pool):
    shape = body.shape
    names = ["add", "subtract", "rsubtract", "scale", "divide", "negate", "other", "other minus", "sum"]
    if shape:
        names += ["index", "axis", "transpose", "reshape", "slice", "new axis", "matmul"]
    name = draw(st.sampled_from(names))
    if name in ("add", "subtract", "rsubtract", "scale"):
        wide = draw(broadcastable_shapes(shape, max_dims=3, max_side=3)) if len(shape) < 3 else shape
        wide = np.broadcast_shapes(wide, shape)[-3:]
        operand = draw(numbers(wide if np.broadcast_shapes(wide, shape) == wide else shape))
        apply = {
            "add": lambda a: a + operand,
            "subtract": lambda a: a - operand,
            "rsubtract": lambda a: operand - a,
            "scale": lambda a: operand * a,
        }[name]
    elif name == "divide":
        operand = draw(st.sampled_from([1, 2, 3, -4, Fraction(2, 3), 0.5]))
        return body / operand, np.asarray(value * (1 / Fraction(operand)), dtype=object)
    elif name in ("other", "other minus"):
        other, known = pool[draw(st.integers(0, len(pool) - 1))]
        try:
            np.broadcast_shapes(shape, other.shape)
        except ValueError:
            return body, value
        sign = 1 if name == "other" else -1
        return (body + other if sign > 0 else body - other), np.asarray(value + sign * known, dtype=object)
    elif name == "matmul":
        matrix = draw(numbers((2, shape[-2] if len(shape) > 1 else shape[0])))
        return matrix @ body, np.asarray(matrix.astype(object) @ value, dtype=object)
    elif name == "index":
        place = tuple(draw(st.integers(-size, size - 1)) if size else slice(None) for size in shape)[:1]
        apply = lambda a: a[place] if shape[0] else a  # noqa: E731
    elif name == "axis":
        axis = draw(st.integers(-len(shape), len(shape) - 1))
        apply = lambda a: a.sum(axis=axis)  # noqa: E731
    else:
        apply = {
            "negate": lambda a: -a,
            "sum": lambda a: a.sum(),
            "transpose": lambda a: a.T,
            "reshape": lambda a: a.reshape(-1),
            "slice": lambda a: a[::-1],
            "new axis": lambda a: a[None],
        }[name]
    return apply(body), np.asarray(apply(value), dtype=object)


@given(expressions())
def test_affine_arithmetic_is_arithmetic(drawn):
    (body, value), point = drawn
    assert body.shape == value.shape
    assert len(body) == value.shape[0] if body.shape else True
    assert same(values_of(body, point), value)


@given(expressions())
def test_rows_of_a_program_have_the_values_of_their_expression(drawn):
    (body, value), point = drawn
    body.owner.minimize(body.sum())
    body.owner.constrain("row", body >= 0)
    written = body.owner.program()
    program = written.as_(Fraction)
    # an array has numbers of one kind: one float among coefficients or bounds makes floats of the fractions there
    wanted = value if written.exact and written.rows.lower.dtype == object else value.astype(float)
    activity = program.rows.activity(point) - program.rows.lower
    assert same(activity.astype(wanted.dtype), wanted.ravel())
    assert same(np.asarray(program.value(point), dtype=wanted.dtype), np.asarray(wanted.sum()))
    pairs = list(zip(program.rows.row.tolist(), program.rows.column.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert not (program.rows.value == 0).any()


def test_number_types_are_kept():
    p = Formulation("types")
    x = p.variable("x", (2,))
    assert (x / 3).coefficient.tolist() == [Fraction(1, 3)] * 2
    assert (x * np.array([1, 2])).coefficient.dtype == np.int64
    assert (x * 0.5).coefficient.dtype == np.float64
    assert (Fraction(1, 3) * x + Fraction(1, 2)).constant.tolist() == [Fraction(1, 2)] * 2


def test_a_matrix_product_has_numpys_shapes():
    p = Formulation("products")
    for left, right in (((2,), (2,)), ((3, 2), (2,)), ((2,), (2, 4)), ((3, 2), (2, 4)), ((3, 2), (5, 2, 4))):
        matrix = np.arange(np.prod(left)).reshape(left)
        body = matrix @ p.variable(f"x{left}{right}", right)
        assert body.shape == (matrix @ np.zeros(right)).shape
        point = np.arange(int(body.column.max()) + 1)
        known = point[-np.prod(right) :].reshape(right)
        assert (values_of(body, point) == matrix @ known).all()
    for left, right in (((1,), (2,)), ((2, 1), (3, 2)), ((3, 3), (2, 3))):
        with pytest.raises(ValueError, match="do not match"):
            np.ones(left) @ p.variable(f"y{left}{right}", right)


def test_what_is_not_affine_is_refused():
    p, q = Formulation("one"), Formulation("other")
    x, y = p.variable("x", (2,)), q.variable("y", (2,))
    with pytest.raises(TypeError, match="not affine"):
        x * x
    with pytest.raises(ValueError, match="two programs"):
        x + y
    with pytest.raises(TypeError, match="with numbers"):
        x + np.array(["a", "b"])
    with pytest.raises(TypeError, match="truth value"):
        bool(x >= 0)
    with pytest.raises(TypeError, match="not a constraint"):
        x != 0  # noqa: B015
    with pytest.raises(TypeError, match="no length"):
        len(x.sum())
    with pytest.raises(ValueError, match="belongs to other"):
        p.maximize(y.sum())
    with pytest.raises(ValueError, match="sum it"):
        p.maximize(x)
    with pytest.raises(TypeError, match="not minimized"):
        p.minimize(log_sum(1, x))
    with pytest.raises(BadInput, match="positive"):
        log_sum(0, x)
    with pytest.raises(ValueError, match="block called"):
        p.variable("x")
    with pytest.raises(TypeError, match="not a comparison"):
        p.constrain("true", True)


# -- blocks and names --------------------------------------------------------------------------------------------------
def pairs() -> Program:
    users, types = ("ann", "bob", "cy"), ("K80", "V100")
    p = Formulation("pairs")
    x = p.variable("share", (3, 2), lower=0, labels=(users, types))
    own = (np.array([[1, 2], [1, 3], [1, 4]]) * x).sum(axis=1)
    p.maximize(own.sum(), equation="sum_l w_l x_l", source="Eq. (9a)")
    p.constrain("capacity", x.sum(axis=0) <= np.array([2, 3]), equation="sum_l x_lj <= m_j", labels=(types,))
    gap = own[:, None] - own[None, :]
    p.constrain("order", (gap <= 1).where(~np.eye(3, dtype=bool)), source="Eq. (9c)", labels=(users, users))
    return p.program()


def test_rows_that_where_keeps_keep_their_names():
    program = pairs()
    assert list(entry_names(program.row_blocks)) == [
        "capacity[K80]",
        "capacity[V100]",
        "order[ann,bob]",
        "order[ann,cy]",
        "order[bob,ann]",
        "order[bob,cy]",
        "order[cy,ann]",
        "order[cy,bob]",
    ]
    assert [program.row_name(row) for row in range(8)] == list(entry_names(program.row_blocks))
    assert program.column_name(3) == "share[bob,V100]"
    assert program.row_block("order").span == slice(2, 8)
    with pytest.raises(KeyError, match="no rows called"):
        program.row_block("gone")
    with pytest.raises(KeyError, match="no variables called"):
        program.variable("gone", np.zeros(6))
    assert program.variable("share", np.arange(6)).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_where_and_between_keep_both_sides():
    p = Formulation("sides")
    x = p.variable("x", (3,))
    p.constrain("range", between([0, 1, 2], x + 1, 5).where(np.array([True, False, True])))
    p.minimize(x.sum())
    program = p.program()
    assert program.rows.lower.tolist() == [-1, 1]
    assert program.rows.upper.tolist() == [4, 4]
    assert list(entry_names(program.row_blocks)) == ["range[0]", "range[2]"]
    with pytest.raises(ValueError, match="already"):
        (x >= 0).where(np.ones(3, dtype=bool)).where(np.ones(3, dtype=bool))


def test_a_program_is_printed_with_its_blocks_and_equations():
    text = str(pairs())
    assert "pairs: 6 variables, 8 rows" in text
    assert "exact rationals" in text
    for part in ("sum_l w_l x_l", "Eq. (9a)", "capacity[2]", "sum_l x_lj <= m_j", "order[3, 3] (6 rows)", "Eq. (9c)"):
        assert part in text
    assert "capacity[K80]: share[ann,K80] + share[bob,K80] + share[cy,K80] <= 2" in text
    assert "floats" in str(pairs().as_(float))


def test_violations_are_named():
    program = pairs().as_(Fraction)
    x = cast(np.array([[3, 0], [0, 0], [0, -1]]), Fraction).ravel()
    broken = program.violations(x)
    assert broken["capacity[K80]"] == 1
    assert broken["share[cy,V100]"] == 1
    assert set(broken) == {"capacity[K80]", "order[ann,bob]", "order[ann,cy]", "order[bob,cy]", "share[cy,V100]"}


@pytest.mark.parametrize("bad", [float("nan"), np.array([1.0, float("nan")])])
@pytest.mark.parametrize("place", ["row", "side", "objective", "bound"])
def test_nan_is_refused_with_its_place(bad, place):
    p = Formulation("nan")
    x = p.variable("x", (2,), lower=bad if place == "bound" else 0)
    p.maximize(((bad if place == "objective" else 1) * x).sum())
    p.constrain("cap", (bad if place == "row" else 1) * x <= (bad if place == "side" else 1))
    where = {"row": "'cap'", "side": "'cap'", "objective": "the objective", "bound": "a variable's bound"}
    with pytest.raises(BadInput, match=f"{where[place]}.*NaN"):
        p.program()


@pytest.mark.parametrize("place", ["row", "objective"])
def test_an_infinite_coefficient_is_refused(place):
    p = Formulation("infinite")
    x = p.variable("x", (2,), lower=0)
    infinite = float("inf")
    p.maximize(((infinite if place == "objective" else 1) * x).sum())
    p.constrain("cap", (infinite if place == "row" else 1) * x <= 1)
    with pytest.raises(BadInput, match="infinite"):
        p.program()


# -- files and sessions ------------------------------------------------------------------------------------------
def mixed() -> Program:
    p = Formulation("mixed")
    x = p.variable("x", (2, 2), lower=0, upper=3)
    n = p.variable("n", (2,), lower=-2, upper=5, integer=True)
    free = p.variable("rest")
    p.maximize(2 * x.sum() + (np.array([3, -1]) * n).sum() - free + 7)
    p.constrain("range", between(-4, x.sum(axis=0) - n, 6))
    p.constrain("equal", x[0, 0] + free == 1)
    p.constrain("most", x.sum() + n.sum() <= Fraction(25, 2))
    p.constrain("least", free >= -2)
    return p.program()


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("program", [mixed(), pairs()], ids=lambda program: program.name)
def test_a_written_program_has_the_same_optimum(tmp_path, program, suffix):
    write(program, tmp_path / f"program{suffix}")
    highs = SilentHighs()
    assert highs.readModel(str(tmp_path / f"program{suffix}")).name == "kOk"
    highs.run()
    assert highs.getModelStatus().name == "kOptimal"
    assert highs.getInfo().objective_function_value == pytest.approx(Highs().solve(program).objective)
    names = {("pairs", ".lp"): "capacity(K80)", ("pairs", ".mps"): "capacity[K80]", ("mixed", ".lp"): "x(1,0)"}
    assert names.get((program.name, suffix), "x[1,0]") in (tmp_path / f"program{suffix}").read_text()


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(BadInput, match="format"):
        write(mixed(), tmp_path / "program.txt")
    with pytest.raises(BadInput, match="folder"):
        write(mixed(), tmp_path / "gone" / "program.lp")
    p = Formulation("logs")
    p.maximize(log_sum(1, p.variable("x", lower=0, upper=1)))
    with pytest.raises(NotCapable, match="logarithms"):
        write(p.program(), tmp_path / "program.lp")


@st.composite
def variations(draw):
    """Programs of one structure with different numbers."""
    factor = st.integers(1, 9)
    out = []
    for _ in range(draw(st.integers(2, 5))):
        p = Formulation("varied")
        x = p.variable("x", (3,), lower=draw(st.integers(-2, 1)), upper=draw(st.integers(2, 6)))
        cost = np.array([draw(integers) for _ in range(3)])
        (p.maximize if draw(st.booleans()) else p.minimize)((cost * x).sum() + draw(integers))
        matrix = np.array([[draw(factor) for _ in range(3)] for _ in range(2)])
        p.constrain("most", matrix @ x <= draw(st.integers(-3, 20)))
        p.constrain("range", between(draw(st.integers(-9, 0)), x[0] - draw(factor) * x[2], draw(st.integers(-1, 9))))
        out.append(p.program())
    return out


@given(variations())
def test_a_session_answers_as_a_fresh_solve(programs):
    session = Highs().opened()
    for program in programs:
        warm, fresh = session(program), Highs().solve(program)
        assert warm.status is fresh.status
        if fresh.status is Status.OPTIMAL:
            assert warm.objective == pytest.approx(fresh.objective, abs=1e-7)
            assert program.as_(float).violations(warm.x, 1e-6) == {}


def test_a_session_takes_another_structure():
    session = Highs().opened()
    for program in (pairs(), mixed(), pairs()):
        assert session(program).objective == pytest.approx(Highs().solve(program).objective)


def test_gradient_and_value_with_logarithms():
    p = Formulation("logs")
    x = p.variable("x", (2,), lower=0)
    p.maximize(log_sum(np.array([1, 3]), np.array([[2, 0], [1, 1]]) @ x + np.array([1, 0])))
    program = p.program().as_(float)
    here = np.array([0.5, 0.25])
    assert program.value(here) == pytest.approx(np.log(2) + 3 * np.log(0.75))
    step = 1e-6
    slope = [(program.value(here + step * unit) - program.value(here - step * unit)) / (2 * step) for unit in np.eye(2)]
    assert program.gradient(here) == pytest.approx(slope, rel=1e-6)
