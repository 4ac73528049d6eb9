"""Finds the installed policies, backends and properties by their entry points; no list in the code names them.

A plug-in registers in the groups ``fairopt.policies``, ``fairopt.backends``, ``fairopt.properties``,
``fairopt.datasets``, ``fairopt.workloads``, ``fairopt.importers``, ``fairopt.emitters`` (functions of two markets that
write a change as a scheduler's objects), ``fairopt.planners`` (a `fairopt.audit.plans.Planner` for each scheduler),
``fairopt.sources`` (commands that print a cluster's files), ``fairopt.commands``, and for benchmarks
``fairopt.instances``, ``fairopt.contenders``, ``fairopt.tasks``; its objects are then on the same footing as fairopt's
own. A policy or a property that an audit is to ask of itself stands also in ``fairopt.policies.entitled`` or
``fairopt.properties.entitled``.

>>> policy("max-min").source
'Gavel, OSDI 2020, Sec. 4.1'
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from fairopt.backends import Backend, Method
from fairopt.errors import BadInput, FairoptError, NotInstalled, type_of
from fairopt.later import library as library
from fairopt.policy import Policy
from fairopt.problem import Market

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from fairopt.properties import Property
    from fairopt.workloads import Workload

_log = logging.getLogger(__name__)

POLICIES, BACKENDS, PROPERTIES = "fairopt.policies", "fairopt.backends", "fairopt.properties"
DATASETS, IMPORTERS, COMMANDS = "fairopt.datasets", "fairopt.importers", "fairopt.commands"
EMITTERS, PLANNERS, SOURCES = "fairopt.emitters", "fairopt.planners", "fairopt.sources"
WORKLOADS = "fairopt.workloads"
#: Those policies and properties, registered once more, that an audit asks where nobody names any.
ENTITLED_POLICIES, ENTITLED_PROPERTIES = f"{POLICIES}.entitled", f"{PROPERTIES}.entitled"
FAMILIES, CONTENDERS, TASKS = "fairopt.instances", "fairopt.contenders", "fairopt.tasks"

#: How a policy, a property and a solver may be given: by name, as a class (with its default options), or as itself; a
#: policy also as a function of a market (`fairopt.policy.function`). No solver is the policy's best way.
AnyPolicy: TypeAlias = str | type[Policy] | Policy | Callable[[Market], Any]
AnyProperty: TypeAlias = "str | type[Property] | Property"
AnySolver: TypeAlias = str | type[Backend | Method] | Backend | Method | None


def names(group: str) -> list[str]:
    """Return the registered names of a group, in the order of registration.

    >>> names(BACKENDS)
    ['clarabel', 'ecos', 'exact', 'highs', 'network', 'pyomo', 'scs']
    """
    return list(_registered(group))


def policy(name: str, problem: type | None = None) -> Policy:
    """Return the policy registered under ``name``, with its default options, which decides on ``problem`` (None: any).

    FILE.py:NAME, or MODULE:NAME, is a function of a market or a class that nobody registered.

    Errors: `BadInput` names the nearest policies, or the command that takes this one; and what is wrong with a file.

    >>> policy("max-min").source
    'Gavel, OSDI 2020, Sec. 4.1'
    """
    made: Policy | None = _made(POLICIES, name, Policy) if name in names(POLICIES) else None
    if made is None and (":" in name or name.endswith(".py")):
        return _unregistered(name, problem)
    if made is None or (problem is not None and not issubclass(made.problem, problem)):
        taker = "" if made is None else f"{_taker(made)} takes it. "
        raise _unknown(name, POLICIES, [each.name for each in policies(problem)], taker)
    return made


def policy_of(given: AnyPolicy, problem: type | None = None) -> Policy:
    """Return a policy that is given by name, as a class (with its default options), or as itself.

    >>> from fairopt.models import MaxMin
    >>> policy_of("max-min") == policy_of(MaxMin) == policy_of(MaxMin())
    True
    """
    if isinstance(given, str):
        return policy(given, problem)
    try:
        made: Any = given() if isinstance(given, type) else given
    except FairoptError:
        raise
    except Exception as error:  # any error of somebody's class
        wrong = f"{given!r} cannot be made: {type(error).__name__}: {error}"
        raise BadInput(wrong, place="policy", remedy="Give each of its options a default, or an instance") from error
    if not isinstance(made, Policy) and callable(made):
        from fairopt.policy.function import Function  # here, since few have one of their own

        made = Function(made)
        if made.name in names(POLICIES):
            wrong = f"a function is called {made.name}, as an installed policy is"
            raise BadInput(wrong, place="policy", remedy="Call the function otherwise")
    if not isinstance(made, Policy):
        remedy = "Give a policy, its class, a function of a market, or a name that `fairopt policies` lists"
        raise BadInput(f"got {type_of(made)}", place="policy", remedy=remedy)
    return made


def _unregistered(text: str, problem: type | None) -> Policy:
    """Return the policy, or the function as one, that FILE.py:NAME or MODULE:NAME names."""
    from fairopt.policy.function import Function, loaded  # here and below, since few have one of their own
    from fairopt.problem import Queue
    from fairopt.problem.files.storage import naming

    path, _, name = text.rpartition(":") if ":" in text else (text, "", "")
    with naming(path):
        made = policy_of(loaded(path, name) if path.endswith(".py") else named(text))
    if problem is not None and not issubclass(made.problem, problem):
        remedy = f"{_taker(made)} takes it"
        if issubclass(problem, Queue) and issubclass(made.problem, Market):
            remedy += f"; in rounds: --policy oef-rounds --set shares={text}"
        kind = "function" if isinstance(made, Function) else "policy"
        wrong = f"{text} is a {kind} of a {made.problem.__name__}, not of a {problem.__name__}"
        raise BadInput(wrong, remedy=remedy)
    return made


def policies_of(given: AnyPolicy | Iterable[AnyPolicy], problem: type | None = None) -> list[Policy]:
    """Return one or several policies, each as `policy_of` takes it.

    >>> from fairopt.models import MaxMin
    >>> [each.name for each in policies_of("max-min")], [each.name for each in policies_of([MaxMin, "equal-split"])]
    (['max-min'], ['max-min', 'equal-split'])
    """
    return [policy_of(each, problem) for each in several(given)]


def several(given: Any) -> Iterable[Any]:
    """Return what is given one by one: one thing alone, also a name, serves for several.

    >>> several("max-min"), several(("max-min", "equal-split"))
    (['max-min'], ('max-min', 'equal-split'))
    """
    return given if isinstance(given, Iterable) and not isinstance(given, str | type) else [given]


def policies(problem: type | None = None) -> list[Policy]:
    """Return the installed policies, with default options: all, or those that decide on a `Market`, `Queue` or `Batch`.

    Errors: `NotInstalled` where one cannot be loaded, `BadInput` for an entry point that gives no policy, and a
    ``problem`` that is no class.

    Source: each policy names its own in ``source``.

    >>> from fairopt.problem.batch import Batch
    >>> [each.name for each in policies(Batch)][:2]
    ['batch-private', 'fcfs']
    """
    if not (problem is None or isinstance(problem, type)):
        raise BadInput(
            f"got {type_of(problem)}", place="problem", remedy="Give Market, Queue or Batch, or leave it out"
        )
    made: list[Policy] = [_made(POLICIES, name, Policy) for name in names(POLICIES)]
    return [each for each in made if problem is None or issubclass(each.problem, problem)]


def backend(name: str) -> Any:
    """Return the backend registered under ``name``; its library need not be installed.

    >>> backend("highs").name
    'highs'
    """
    return _made(BACKENDS, name, object)


def solver(policy: AnyPolicy, name: str) -> Backend | Method | None:
    """Return the method of ``policy``, or the backend, of that name; None for "auto", the policy's best way.

    >>> solver("max-min", "highs").name
    'highs'
    >>> solver("max-min", "auto")
    """
    if name == "auto":
        return None
    methods = {each.name: each for each in policy_of(policy).methods}
    if name in methods:
        return methods[name]
    if name not in names(BACKENDS):
        raise _unknown(name, BACKENDS, [*methods, *names(BACKENDS)])
    found: Backend = backend(name)
    return found


def solver_of(policy: AnyPolicy, given: AnySolver) -> Backend | Method | None:
    """Return a solver that is given by name, as a class (with its default options), or as itself.

    >>> from fairopt.backends import Highs
    >>> solver_of("max-min", Highs).name
    'highs'
    """
    if given is None or isinstance(given, str):
        return None if given is None else solver(policy, given)
    made = given() if isinstance(given, type) else given
    if not isinstance(made, Backend | Method | None):
        remedy = "Give a backend, its class, or a name that `fairopt backends` lists; None for the policy's best way"
        raise BadInput(f"got {type_of(made)}", place="backend", remedy=remedy)
    return made


def property_of(given: AnyProperty) -> Property:
    """Return a property that is given by name, as a class, or as itself.

    >>> from fairopt.properties import EnvyFreeness
    >>> property_of(EnvyFreeness).name
    'envy_freeness'
    """
    from fairopt.properties import Property  # here and below, since a policy decides without them

    if isinstance(given, str):
        return property_(given)
    made = given() if isinstance(given, type) else given
    if not isinstance(made, Property):
        remedy = "Give a property, its class, or a name that `fairopt properties` lists"
        raise BadInput(f"got {type_of(made)}", place="property", remedy=remedy)
    return made


def properties_of(given: AnyProperty | Iterable[AnyProperty]) -> list[Property]:
    """Return one or several properties, each as `property_of` takes it.

    >>> [each.name for each in properties_of("envy_freeness")]
    ['envy_freeness']
    """
    return [property_of(each) for each in several(given)]


def property_(name: str) -> Property:
    """Return the property registered under ``name``.

    >>> property_("envy_freeness").definition
    'E_l(x_l) >= E_l(pi_l / pi_i * x_i) for all users l, i'
    """
    from fairopt.properties import Property

    made: Property = _made(PROPERTIES, name, Property)
    return made


def plugins() -> list[EntryPoint]:
    """Return what packages other than fairopt register in its groups, by group and name.

    >>> all(each.group.startswith("fairopt.") and package_of(each) != "fairopt" for each in plugins())
    True
    """
    from importlib.metadata import entry_points  # here and below, since it takes longer to load than half of fairopt

    points = {
        point for group in entry_points().groups if group.startswith("fairopt.") for point in entry_points(group=group)
    }
    return sorted((each for each in points if package_of(each) != "fairopt"), key=lambda each: (each.group, each.name))


def package_of(point: EntryPoint) -> str:
    """Return the name of the package that registers an entry point; "" where that is not known.

    >>> from importlib.metadata import EntryPoint
    >>> package_of(EntryPoint("my-policy", "my_package:MyPolicy", "fairopt.policies"))
    ''
    """
    return point.dist.name if point.dist else ""


def workload(name: str) -> Workload:
    """Return the generator of traces registered under ``name``, with its default options.

    >>> workload("poisson").name
    'poisson'
    """
    from fairopt.workloads import Workload  # here, so that other commands begin sooner

    made: Workload = _made(WORKLOADS, name, Workload)
    return made


def properties(problem: type | None = None) -> list[Property]:
    """Return the installed properties: all, or those on a `Market`, a `Setting` (runs) or a `Batch`.

    >>> from fairopt.problem.batch import Batch
    >>> [each.name for each in properties(Batch)][:2]
    ['batch_sharing_incentive', 'budget_balance']
    """
    made = map(property_, names(PROPERTIES))
    return [each for each in made if problem is None or issubclass(problem, each.problem)]


def load(group: str, name: str) -> Any:
    """Return what an entry point names: usually a class.

    >>> load(WORKLOADS, "poisson").name
    'poisson'
    """
    registered = _registered(group)
    if name not in registered:
        raise _unknown(name, group, list(registered))
    point = registered[name]
    _log.debug("%s: %s is %s", group, name, point.value)
    try:
        return point.load()
    except Exception as error:  # any error of its module means that the plug-in is broken
        raise NotInstalled(f"{name!r} is registered as {point.value}, which cannot be loaded: {error!r}") from error


def named(path: str, place: str = "") -> Any:
    """Return the object that MODULE:NAME names. Errors: `BadInput`, also for any error of the module.

    >>> named("fairopt.models:MaxMin").name
    'max-min'
    """
    from importlib.metadata import EntryPoint

    if not path.partition(":")[0].strip():
        raise BadInput(f"{path!r} names no module", place=place, remedy="Write MODULE:NAME")
    try:
        return EntryPoint(name=path, value=path, group="").load()
    except Exception as error:  # any error of the module is reported as a bad name
        remedy = "Check the module and the name"
        raise BadInput(f"{path!r} cannot be loaded: {error!r}", place=place, remedy=remedy) from error


def _unknown(name: str, group: str, known: Sequence[str], taker: str = "") -> BadInput:
    kind = group.removeprefix("fairopt.").replace("_", " ")
    begins = [each for each in known if name and each.startswith(name)]
    near = (begins or get_close_matches(name, known, 3, 0.4))[:3]
    guess = f"Did you mean {' or '.join(near)}? " if near else ""
    installed = ", ".join(known) or "none"
    return BadInput(f"there is no {name!r} among the {kind}", remedy=f"{taker or guess}Installed: {installed}")


def _taker(policy: Policy) -> str:
    """Return the command that takes a policy."""
    from fairopt.problem import Queue  # here, since only a message needs all kinds of problems
    from fairopt.problem.batch import Batch

    return {Market: "`fairopt solve`", Queue: "`fairopt run`", Batch: "`fairopt schedule`"}[policy.problem]


def _made(group: str, name: str, kind: Any) -> Any:
    made = load(group, name)
    made = made() if isinstance(made, type) else made
    if not isinstance(made, kind):
        problem = f"the entry point {name!r} of {group} gives {made!r}, which is not one"
        raise BadInput(problem, remedy="Mend the plug-in")
    return made


def _registered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, as they are while no folder of packages changes."""
    return _read(group, tuple((path, changed) for path in sys.path if (changed := _changed(path)) is not None))


def _changed(folder: str) -> int | None:
    """Return when a folder was changed last; every name that is looked up asks all folders, so each is asked once."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:  # a folder that is not there
        return None


@lru_cache(maxsize=1)
def _all_registered(folders: tuple[tuple[str, int], ...]) -> Any:
    """Return the entry points of all groups, which takes as long to read as those of one."""
    from importlib.metadata import entry_points

    return entry_points()


@lru_cache(maxsize=64)
def _read(group: str, folders: tuple[tuple[str, int], ...]) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in _all_registered(folders).select(group=group):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            problem = f"two packages register {point.name!r} in {group}: {other.value} and {point.value}"
            raise BadInput(problem, remedy="Uninstall one of them")
    return found
