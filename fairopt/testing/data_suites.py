"""The conformance suites of data sets, of importers and of generators of traces.

from fairopt.testing.data_suites import dataset_suite, importer_suite, workload_suite
dataset_suite().run([my_data_set]).require_complete()
importer_suite("example.file").run([my_importer]).require_complete()
workload_suite(my_cluster).run([MyWorkload()]).require_complete()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, get_type_hints

from fairopt.errors import BadInput
from fairopt.importing.imported import Imported, read_with
from fairopt.problem import Cluster, Market, Trace, read_cluster, read_market, read_trace
from fairopt.problem.batch import Batch
from fairopt.problem.files.batch import read_batch
from fairopt.problem.files.problem import KINDS, kind_of
from fairopt.problem.files.storage import AnyPath
from fairopt.testing.suite import Suite, Traits, checks_of
from fairopt.workloads import Workload

__all__ = ["dataset_suite", "importer_suite", "workload_suite"]

#: How a problem is read again from the file that it was written to.
READERS: Mapping[type, Callable[[Path, Any], Any]] = {
    Market: lambda path, _: read_market(path),
    Trace: lambda path, trace: read_trace(path, trace.jobs.types),
    Cluster: lambda path, _: read_cluster(path),
    Batch: lambda path, _: read_batch(path),
}
#: What reads a file of another tool.
Importer: TypeAlias = Callable[[AnyPath], Any]


def dataset_suite() -> Suite[Callable[[], Any]]:
    """Return the suite of data sets: functions without arguments that return a problem.

    >>> from fairopt.datasets import oef_example
    >>> dataset_suite().run([oef_example]).require_complete()
    """
    return Suite(
        "data sets",
        checks_of(says_what_it_is, is_the_same_each_time, survives_a_file),
        lambda made: Traits(_name(made)),
    )


def importer_suite(example: AnyPath) -> Suite[Importer]:
    """Return the suite of importers: functions of a path that return a problem; they can read the ``example``.

    >>> [each.name for each in importer_suite("example.toml").checks]
    ['says what it reads', 'reads its example', 'refuses a missing file', 'refuses noise']
    """
    return Suite(
        "importers",
        checks_of(says_what_it_reads, reads_its_example, refuses_a_missing_file, refuses_noise, given=Path(example)),
        lambda each: Traits(_name(each)),
    )


def workload_suite(cluster: Cluster) -> Suite[Workload]:
    """Return the suite of generators: frozen dataclasses derived from `Workload`, whose traces suit the ``cluster``.

    >>> [each.name for each in workload_suite(Cluster.uniform({"V100": (1, 4)})).checks]
    ['generator says what it is', 'depends on its seed only', 'trace survives a file', 'has a load']
    """
    return Suite(
        "workloads",
        checks_of(
            generator_says_what_it_is, depends_on_its_seed_only, trace_survives_a_file, has_a_load, given=cluster
        ),
        lambda each: Traits(each.name),
    )


def says_what_it_is(made: Callable[..., Any]) -> None:
    """Guards against data that nobody knows the origin of, and against lists that cannot say what a data set is."""
    assert "Source:" in (getdoc(made) or ""), "the docstring does not say where it is from"
    returned = get_type_hints(made).get("return")
    assert returned in KINDS, f"it is annotated to return {returned}, which is no problem"


def is_the_same_each_time(made: Callable[[], Any]) -> None:
    """Guards against data drawn without a seed."""
    with TemporaryDirectory() as folder:
        assert _written(made(), Path(folder, "one.json")) == _written(made(), Path(folder, "two.json"))


def survives_a_file(made: Callable[[], Any]) -> None:
    """Guards against problems that no command can be given, as files lose a part of them."""
    _survives(made())


def says_what_it_reads(each: Importer) -> None:
    """Guards against importers of a format that nobody can look up."""
    if get_type_hints(each).get("return") is Imported:
        assert "Source:" in (getdoc(each) or ""), "the docstring does not say where the format is from"
    else:
        says_what_it_is(each)


def reads_its_example(each: Importer, given: Path) -> None:
    """Guards against importers that return something else than a problem, or write into the file."""
    before = given.read_bytes() if given.is_file() else None
    _survives(read_with(each, [given]).problem)
    assert before is None or given.read_bytes() == before, "the file was changed"


def refuses_a_missing_file(each: Importer, given: Path) -> None:
    """Guards against a traceback where a name was mistyped."""
    _refuses(each, given.with_name("no such file"))


def refuses_noise(each: Importer, given: Path) -> None:
    """Guards against tracebacks, or a problem made of nothing, where the file is of another kind."""
    with TemporaryDirectory() as folder:
        path = Path(folder, given.name)
        path.write_bytes(b"\x00\xff\xfe 1 2 3\n,,;\n")
        _refuses(each, path)


def generator_says_what_it_is(each: Workload) -> None:
    """Guards against traces that nobody knows the origin of, and options that a study could not set."""
    assert each.name, "it has no name"
    assert each.source, "it has no source"
    assert is_dataclass(each), "it is no dataclass"
    type(each)()  # every option has a default


def depends_on_its_seed_only(each: Workload, given: Cluster) -> None:
    """Guards against random numbers of another origin, and against state that one trace leaves to the next."""
    traces = [each.trace(seed, given) for seed in (1, 2, 1)]
    with TemporaryDirectory() as folder:
        first, _, again = (_written(trace, Path(folder, f"{at}.json")) for at, trace in enumerate(traces))
    assert first == again, "the same seed gives another trace"


def trace_survives_a_file(each: Workload, given: Cluster) -> None:
    """Guards against numbers that a file cannot hold: a run of the file would be another."""
    trace = each.trace(3, given)
    assert trace.jobs.exact, "the numbers are floats"
    assert trace.jobs.types == given.types, "the throughputs are for other types"
    _survives(trace)


def has_a_load(each: Workload, given: Cluster) -> None:
    """Guards against loads that are stated and not there, where there is an option ``load``."""
    load = float(each.load_of(each.trace(4, given), given))
    assert load > 0
    wanted = getattr(each, "load", None)
    assert wanted is None or abs(load / wanted - 1) < 1e-3, f"the load is {load}, and not {wanted}"


def _refuses(each: Importer, path: Path) -> None:
    try:
        found: Any = each(path)
    except BadInput as error:
        found = error
    assert isinstance(found, BadInput), f"made {found!r} of {path.name}"
    assert path.name in str(found), f"the message does not name the file: {found}"


def _survives(problem: Any) -> None:
    kind_of(problem, "the result")
    with TemporaryDirectory() as folder:
        path = Path(folder, "problem.json")
        text = _written(problem, path)
        reader = next(read for kind, read in READERS.items() if isinstance(problem, kind))
        assert _written(reader(path, problem), Path(folder, "again.json")) == text


def _written(problem: Any, path: Path) -> str:
    KINDS[kind_of(problem, "the result")](problem, path)
    return path.read_text(encoding="utf-8")


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))
