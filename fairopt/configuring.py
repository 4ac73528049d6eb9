"""A policy, or a generator, with other options than its own: texts, as ``--set`` and specifications have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass, replace
from enum import Enum
from functools import cache, partial
from inspect import getmembers, isabstract, isclass, signature
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from fairopt import discovery
from fairopt.codec import arguments, decode
from fairopt.errors import BadInput
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.problem.labels import nearest

if TYPE_CHECKING:
    from fairopt.workloads import Workload

P = TypeVar("P", bound="Policy | Workload")


def configured(policy: P, settings: Sequence[str], place: str = "--set") -> P:
    """Return a policy, or a generator, with the options in ``settings``: truth values, numbers, lists, policies.

    Each is a text OPTION=VALUE; ``place`` is what messages call where they stand.
    An option of another type may have a reader in its field's metadata: ``read`` (text, place) -> value. Without one,
    the name of one of its `choices`, or MODULE:NAME, names a class, of which an instance with default options is made;
    MODULE:NAME may name a function too.

    Errors: `BadInput` for an unknown option, a value of another kind, and an option that is given twice.
    """
    options: list[Field[Any]] = [each for each in fields(policy) if each.init] if is_dataclass(policy) else []
    names = [each.name for each in options]
    values: dict[str, Any] = {}
    readers = {each.name: each.metadata["read"] for each in options if "read" in each.metadata}
    hints = get_type_hints(type(policy))
    for text in settings:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise BadInput(f"got {text!r}", place=place, remedy="Write OPTION=VALUE")
        if name not in names:
            remedy = nearest(name, names, "option")
            raise BadInput(f"{policy.name} has no option {name!r}", place=place, remedy=remedy)
        called = f"{place} {name}"
        if name in values:
            raise BadInput("it is given twice", place=called, remedy="Give each option once")
        read = readers.get(name, partial(decode, hints[name], named=partial(_named, type(policy))))
        values[name] = read(value, called)
    changed: P = replace(policy, **values) if values else policy  # type: ignore[type-var]
    return changed


@cache
def choices(kind: Any, owner: type) -> Mapping[str, type]:
    """Return by name the classes that an option of type ``kind`` takes, from the packages of that type and its owner.

    Each can be made without arguments. There are none for a type that is no class, a function's for instance.

    >>> from fairopt.models.gavel.objectives import Objective
    >>> from fairopt.models.gavel.rounds import GavelRounds
    >>> list(choices(Objective, GavelRounds))[:2]
    ['FinishTimeFairness', 'LeastCost']
    """
    if not isinstance(kind, type) or kind is Policy:
        return MappingProxyType({})
    packages = dict.fromkeys(each.__module__.rpartition(".")[0] or each.__module__ for each in (kind, owner))
    found = {made.__name__: made for package in packages for made in _classes(package)}
    return MappingProxyType({name: found[name] for name in sorted(found) if _fits(found[name](), kind)})


def _classes(package: str) -> Iterator[type]:
    """Yield the classes of a package that can be made without arguments, and are meant to be."""
    paths = getattr(discovery.named(package), "__path__", ())
    modules = [each.name for each in iter_modules(paths, f"{package}.") if not each.name.endswith(".__main__")]
    for module in [package, *modules]:
        for _, made in getmembers(discovery.named(module), isclass):
            whole = not (isabstract(made) or getattr(made, "_is_protocol", False) or issubclass(made, Enum))
            if made.__module__ == module and made.__name__[0] != "_" and whole and _takes(made, 0):
                yield made


def _named(owner: type, text: str, kind: Any) -> Any:
    """Return an instance of the choice of that name, or what MODULE:NAME names; it must have the methods of ``kind``.

    A policy of shares has a name of its own. ``owner`` is the class that has the option.
    """
    if kind is Policy:
        return discovery.policy(text, Market)
    count, known = arguments(kind), choices(kind, owner)
    called = getattr(kind, "__name__", str(kind)) if count is None else f"function of {count} arguments"
    if text in known:
        return known[text]()
    if ":" not in text or not (count is not None or isinstance(kind, type)):
        remedy = "Name a function or class by MODULE:NAME; others can be given in Python only"
        if known:
            remedy = f"Name a choice, or a class by MODULE:NAME. {nearest(text, known, 'choice')}"
        raise BadInput(f"got {text!r} for an option of type {called}", remedy=remedy)
    made = discovery.named(text)
    if isinstance(made, type):
        try:
            made = made()
        except Exception as error:  # any error of the class
            raise BadInput(f"{text!r} cannot be made: {error!r}", remedy="Name another one") from error
    if not _fits(made, kind):
        raise BadInput(f"{text!r} is no {called}", remedy="Name one, as the policy's class says")
    return made


def _fits(made: Any, kind: Any) -> bool:
    """Whether an object is of a class, has the methods of a protocol, or takes the arguments of a function's type."""
    count = arguments(kind)
    if count is not None:
        return _takes(made, count)
    if not getattr(kind, "_is_protocol", False):
        return isinstance(made, kind)
    methods = {name: of for name, of in vars(kind).items() if callable(of) and (name[0] != "_" or name == "__call__")}
    # a function's own __call__ takes anything
    return all(
        _takes(made if name == "__call__" else getattr(made, name, None), len(signature(of).parameters) - 1)
        for name, of in methods.items()
    )


def _takes(made: Any, count: int) -> bool:
    """Whether an object can be called with ``count`` arguments."""
    try:
        signature(made).bind(*(None,) * count)
    except (TypeError, ValueError):
        return False
    return True
