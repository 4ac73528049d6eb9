"""Changes of a market in words: ``team-a.H100.quota=8``, ``team-a.weight=2``, ``H100.capacity=64``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from fairopt.errors import BadInput
from fairopt.problem import Entitlements, Market
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import amount, exact, integer
from fairopt.program import INFINITY, Array, number_text
from fairopt.report import ResultForm, Statement, few

#: What stands for no bound.
NO_BOUND = ("none", "unlimited")


#: What can be set of users and groups: the words for it, and the column of the entitlements.
SETTABLE: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("quota", "guarantee"), "guarantee"),
        **dict.fromkeys(("cap", "limit"), "cap"),
        "reserve": "reserve",
        "weight": "borrow_weight",
        **dict.fromkeys(("priority", "tier"), "tier"),
    }
)
CAPACITY = "capacity"


def _change(it: Statement) -> str:
    value = "unlimited" if it.value == INFINITY else number_text(it.value)
    target = ".".join(part for part in (it.name, it.type, it.key) if part)
    return f"{target}{'+' if it.adds else ''}={value}"


SETTING = ResultForm("A change of a market.", sentence=_change)


def set_to(name: str, kind: str, key: str, value: Any, adds: bool = False) -> Statement:
    """Return a change: of a user or group ("": of the cluster), of a type ("": of all), what, and to which value.

    With ``adds`` the value is added to what is there.
    """
    return SETTING.of(name=name, type=kind, key=key, value=value, adds=adds)


def read_setting(text: str, market: Market) -> Statement:
    """Return the change that a text states: ``NAME.TYPE.KEY=VALUE``, ``NAME.KEY=VALUE`` or ``TYPE.capacity=VALUE``.

    ``+=`` adds to what is there. Errors: `BadInput` that names what is unknown, with the nearest names.

    >>> from fairopt.problem import Entitlements
    >>> owed = Entitlements.of(["team.a"], ["H100"])
    >>> market = Market.of([[1]], [8], users=["team.a"], types=["H100"], entitlements=owed)
    >>> read_setting("team.a.H100.quota=8", market)
    <A change of a market: team.a.H100.quota=8>
    """
    place = f"--set {text}"
    said = market.entitlements
    assert said is not None
    target, equals, given = text.partition("=")
    adds = target.endswith("+")
    rest, dot, key = target.removesuffix("+").rpartition(".")
    if not (equals and given and dot):
        remedy = "Write NAME.TYPE.quota=8, NAME.weight=2 or TYPE.capacity=64"
        raise BadInput("it is no setting", place=place, remedy=remedy)
    if key == CAPACITY:
        if rest not in market.types:
            raise BadInput(f"there is no type {rest!r}", place=place, remedy=nearest(rest, market.types, "type"))
        return set_to("", rest, key, amount(given, place), adds)
    if key not in SETTABLE:
        raise BadInput(f"nothing is called {key!r}", place=place, remedy=nearest(key, [*SETTABLE, CAPACITY], "key"))
    column: Array = getattr(said, SETTABLE[key])
    if column.ndim == 1:  # it is not by type
        said.node(rest, place)
        return set_to(
            rest, "", key, (integer if column.dtype.kind == "i" else amount)(exact(given, place), place), adds
        )
    ends = [i for i, letter in enumerate(rest) if letter == "."]
    known = [(rest[:i], rest[i + 1 :]) for i in ends if rest[:i] in said.nodes and rest[i + 1 :] in said.columns]
    if not known and rest in said.nodes:
        remedy = f"Write {few([f'{rest}.{name}.{key}' for name in said.columns])}"
        raise BadInput(f"a {key} is set for one GPU type, and none is named", place=place, remedy=remedy)
    if not known:
        pairs = [f"{each}.{column}" for each in said.nodes[:200] for column in said.columns]
        raise BadInput(f"{rest!r} is no user or group with a type", place=place, remedy=nearest(rest, pairs, "target"))
    if len(known) > 1:
        raise BadInput(f"it may mean {known[0]} or {known[1]}", place=place, remedy="Rename one of them")
    free = given in NO_BOUND and SETTABLE[key] != "reserve"
    value = INFINITY if free else amount(given, place)
    return set_to(*known[0], key, value, adds)


def with_settings(market: Market, settings: Iterable[Statement]) -> Market:
    """Return the market with changes made.

    A group whose guarantee is at least the sum of its members' gains or loses what they do; its own part stays.
    Errors: `BadInput` for what would leave a guarantee above the cap or below the reserve.
    """
    made = tuple(settings)
    for each in made:
        market = _capacity(market, each) if each.key == CAPACITY else _entitled(market, each)
    for each in made:  # a quota and its cap may be given in either order
        _require_in_order(market, each)
    return market


def _capacity(market: Market, each: Statement) -> Market:
    capacity, j = market.capacity.copy(), market.types.index(each.type)
    capacity[j] = _new(capacity[j], each)
    return replace(market, capacity=capacity)


def _entitled(market: Market, each: Statement) -> Market:
    said = market.entitlements
    assert said is not None
    node, field = said.node(each.name), SETTABLE[each.key]
    own: Array = getattr(said, field).copy()
    at: Any = (node, said.columns.index(each.type)) if each.type else node
    more = _new(own[at], each) - own[at]
    own[at] = _new(own[at], each)
    if field == "guarantee":
        _with_groups(said, own, node, at[1], more)
    changed: Any = {field: own}
    if field == "guarantee":  # a group that has its quota and no more, as a cohort, has more of it
        cap, column = said.cap.copy(), at[1]
        for group in (each for each in said.path(node) if each >= len(said.users)):
            if cap[group, column] == said.guarantee[group, column]:
                cap[group, column] = max(cap[group, column], own[group, column])
        changed["cap"] = cap
    return replace(market, entitlements=replace(said, **changed))


def _new(old: Any, each: Statement) -> Any:
    return type(old)(old + each.value if each.adds else each.value) if each.value != INFINITY else INFINITY


def _with_groups(said: Entitlements, own: Array, node: int, column: int, more: Any) -> None:
    """Pass a change of a guarantee on to the groups that have at least what their members have together."""
    before = said.guarantee[:, column]
    for group in said.path(node):
        if group != node:
            if before[group] < sum(before[child] for child in said.children[group]) or before[group] == INFINITY:
                return
            own[group, column] = before[group] + more


def _require_in_order(market: Market, each: Statement) -> None:
    """Refuse a change that leaves a reserve above its quota, or a quota that is a number above its cap."""
    said = market.entitlements
    if said is None or not (each.name and each.type):
        return
    node, column, own = said.node(each.name), said.columns.index(each.type), SETTABLE[each.key]
    for low, high, endless in (("reserve", "quota", False), ("quota", "cap", True)):
        fields = [SETTABLE[word] for word in (low, high)]
        least, most = (getattr(said, field)[node, column] for field in fields)
        if own not in fields or least <= most or (endless and least == INFINITY):
            continue
        lower = f"{each.name}.{each.type}.{low} to {number_text(most)} or less"
        higher = f"{each.name}.{each.type}.{high} to {number_text(least)} or more"
        this, other = (lower, higher) if own == fields[0] else (higher, lower)
        wrong = f"the {low} of {number_text(least)} is above the {high} of {number_text(most)}"
        raise BadInput(wrong, place=f"--set {each}", remedy=f"Set {this}, or {other} too")
