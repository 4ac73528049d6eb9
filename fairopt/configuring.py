"""A policy, or a generator, with other options than its own: texts, as ``--set`` and specifications have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, fields, is_dataclass, replace
from functools import partial
from inspect import signature
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
    MODULE:NAME names a function, or a class, of which an instance with default options is made.

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
        read = readers.get(name, partial(decode, hints[name], named=_named))
        values[name] = read(value, called)
    changed: P = replace(policy, **values) if values else policy  # type: ignore[type-var]
    return changed


def _named(text: str, kind: Any) -> Any:
    """Return the object that MODULE:NAME names, or an instance of that class; it must have the methods of ``kind``.

    A policy of shares has a name of its own.
    """
    if kind is Policy:
        return discovery.policy(text, Market)
    called, count = getattr(kind, "__name__", str(kind)), arguments(kind)
    if ":" not in text or not (count is not None or isinstance(kind, type)):
        remedy = "Name a function or class by MODULE:NAME; others can be given in Python only"
        raise BadInput(f"got {text!r} for an option of type {called}", remedy=remedy)
    made = discovery.named(text)
    if isinstance(made, type):
        try:
            made = made()
        except Exception as error:  # any error of the class
            raise BadInput(f"{text!r} cannot be made: {error!r}", remedy="Name another one") from error
    if count is not None:
        fits = _takes(made, count)
    elif getattr(kind, "_is_protocol", False):
        methods = {
            name: of for name, of in vars(kind).items() if callable(of) and (name[0] != "_" or name == "__call__")
        }
        # a function's own __call__ takes anything
        fits = all(
            _takes(made if name == "__call__" else getattr(made, name, None), len(signature(of).parameters) - 1)
            for name, of in methods.items()
        )
    else:
        fits = isinstance(made, kind)
    if not fits:
        raise BadInput(f"{text!r} is no {called}", remedy="Name one, as the policy's class says")
    return made


def _takes(made: Any, count: int) -> bool:
    """Whether an object can be called with ``count`` arguments."""
    try:
        signature(made).bind(*(None,) * count)
    except (TypeError, ValueError):
        return False
    return True
