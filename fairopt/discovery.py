"""What is installed: policies, back ends and properties, found by entry point and never by a list in the code.

A plug-in registers in the groups ``fairopt.policies``, ``fairopt.round_policies``, ``fairopt.backends``,
``fairopt.properties``, and for benchmarks ``fairopt.instances``, ``fairopt.contenders``, ``fairopt.tasks``; its objects
are then on the same footing as fairopt's own.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from fairopt.errors import BadInput, NotInstalled
from fairopt.policy import Policy
from fairopt.properties import MechanismProperty, Property
from fairopt.schedules import SchedulePolicy
from fairopt.simulation import RoundPolicy

POLICIES, BACKENDS, PROPERTIES = "fairopt.policies", "fairopt.backends", "fairopt.properties"
FAMILIES, CONTENDERS, TASKS = "fairopt.instances", "fairopt.contenders", "fairopt.tasks"
ROUND_POLICIES, SCHEDULE_POLICIES = "fairopt.round_policies", "fairopt.schedule_policies"

#: Who takes the policies of a group, on the command line.
_TAKERS = {POLICIES: "`fairopt solve`", ROUND_POLICIES: "`fairopt run`", SCHEDULE_POLICIES: "`fairopt schedule`"}


def names(group: str) -> list[str]:
    """Return the registered names of a group, in the order of registration."""
    return list(_registered(group))


def policy(name: str) -> Policy:
    """Return the policy registered under ``name``; `BadInput` names the nearest ones."""
    made: Policy = _made(POLICIES, name, Policy)
    return made


def round_policy(name: str) -> RoundPolicy:
    """Return the policy of rounds registered under ``name``, with its default options."""
    made: RoundPolicy = _made(ROUND_POLICIES, name, RoundPolicy)
    return made


def schedule_policy(name: str) -> SchedulePolicy:
    """Return the policy of schedules registered under ``name``, with its default options."""
    made: SchedulePolicy = _made(SCHEDULE_POLICIES, name, SchedulePolicy)
    return made


def backend(name: str) -> Any:
    """Return the back end registered under ``name``; whether its library is installed is for it to say."""
    return _made(BACKENDS, name, object)


def property_(name: str) -> Property | MechanismProperty:
    """Return the property registered under ``name``."""
    made: Property | MechanismProperty = _made(PROPERTIES, name, Property | MechanismProperty)
    return made


def load(group: str, name: str) -> Any:
    """Return what an entry point names: usually a class."""
    registered = _registered(group)
    if name not in registered:
        kind = group.removeprefix("fairopt.").replace("_", " ")
        near = get_close_matches(name, registered, 3, 0.4)
        remedy = f"Did you mean {' or '.join(near)}? " if near else ""
        # of another kind: what was meant is plain, and only the command is wrong
        taker = next((by for of, by in _TAKERS.items() if group in _TAKERS and name in _registered(of)), None)
        remedy = remedy if taker is None else f"{taker} takes it. "
        raise BadInput(f"there is no {name!r} among the {kind}", remedy=f"{remedy}Installed: {', '.join(registered)}")
    point = registered[name]
    try:
        return point.load()
    except Exception as error:  # whatever a plug-in's module raises, it is the plug-in that is broken
        raise NotInstalled(f"{name!r} is registered as {point.value}, which cannot be loaded: {error!r}") from error


def _made(group: str, name: str, kind: Any) -> Any:
    made = load(group, name)
    made = made() if isinstance(made, type) else made
    if not isinstance(made, kind):
        raise BadInput(
            f"the entry point {name!r} of {group} gives {made!r}, which is not one", remedy="Mend the plug-in"
        )
    return made


def _registered(group: str) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise BadInput(
                f"two packages register {point.name!r} in {group}: {other.value} and {point.value}",
                remedy="Uninstall one of them",
            )
    return found
