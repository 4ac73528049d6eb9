"""TOML and JSON text to dictionaries, with every decimal exact, and dictionaries to text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import tomli_w

from fairopt.errors import BadInput
from fairopt.problem.numbers import MOST_DIGITS, shown

_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text; `BadInput` names the line and column of what cannot be read."""
    try:
        return tomllib.loads(text, parse_float=_decimal_in(text))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _TOML_PLACE.search(message)
        line, column = (found[1], found[2]) if found and found[1] else (str(_lines(text)), "end")
        problem = _TOML_PLACE.sub("", message)
        remedy = "Correct the syntax there"
        raise BadInput(f"not TOML: {problem}", place=f"line {line}, column {column}", remedy=remedy) from error
    except RecursionError as error:
        raise _too_deep(text) from error
    except BadInput:  # a ValueError too, and already said well
        raise
    except ValueError as error:  # an integer of thousands of digits, or a date such as 2026-02-31
        raise _unreadable_number(text) from error


def parse_json(text: str) -> dict[str, Any]:
    """Return the object of a JSON text; errors as `parse_toml`, and for keys that stand twice in one object."""
    how: dict[str, Any] = {
        "parse_float": _decimal_in(text),
        "parse_constant": Decimal,  # NaN and Infinity; they are refused where the number is read, with its place
        "object_pairs_hook": _object,
    }
    try:
        try:
            data = json.loads(text, **how)
        except (json.JSONDecodeError, BadInput):
            raise
        except ValueError:  # an integer of thousands of digits
            data = json.loads(text, **how, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"not JSON: {error.msg}",
            place=f"line {error.lineno}, column {error.colno}",
            remedy="Correct the syntax there",
        ) from error
    except RecursionError as error:
        raise _too_deep(text) from error
    if not isinstance(data, dict):
        raise BadInput(f"got {shown(data)}", place="the top level", remedy="Give an object {...} of keys and values")
    return data


def _lines(text: str) -> int:
    return text.count("\n", 0, len(text.rstrip())) + 1


def _line_of(literal: str, text: str) -> str:
    return f"line {text.count(chr(10), 0, max(0, text.find(literal))) + 1}"


def _too_deep(text: str) -> BadInput:
    deepest = max(text.split("\n"), key=lambda line: line.count("[") + line.count("{"))
    return BadInput(
        "lists or tables nested too deeply to read",
        place=_line_of(deepest, text),
        remedy="A market needs four levels at most",
    )


def _unreadable_number(text: str) -> BadInput:
    found = re.search(rf"[\d_]{{{MOST_DIGITS},}}|\d{{4}}-\d\d-\d\d\S*|\d\d:\d\d\S*", text)
    literal = found[0] if found else text[:0]
    return BadInput(f"cannot read {shown(literal)}", place=_line_of(literal, text), remedy="Write an ordinary number")


def _decimal_in(text: str) -> Callable[[str], Decimal]:
    def decimal(literal: str) -> Decimal:
        try:
            return Decimal(literal)
        except InvalidOperation as error:  # an exponent that no Decimal can hold
            remedy = "Choose units in which the numbers are of ordinary size"
            raise BadInput(f"got {shown(literal)}", place=_line_of(literal, text), remedy=remedy) from error

    return decimal


def _integer(literal: str) -> int | Decimal:
    """Return an int, or a Decimal where Python reads no int of so many digits: its reader refuses it with its place."""
    return int(literal) if len(literal) <= MOST_DIGITS else Decimal(literal)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        name = next((value for key, value in pairs if key == "name"), None)
        whose = f" of {shown(name)}" if isinstance(name, str) else ""
        remedy = "Leave one of them out"
        raise BadInput("the key stands twice in one object", place=f"key {shown(twice)}{whose}", remedy=remedy)
    return table


# -- writing -------------------------------------------------------------------------------------------------------
def toml_text(data: Mapping[str, Any]) -> str:
    """Return the TOML text of a dictionary, with one line for each list of numbers or names."""
    return _with_short_lists(tomli_w.dumps(data))


def json_text(data: Mapping[str, Any]) -> str:
    """Return the JSON text of a dictionary, with one line for each list of numbers or names."""
    return _with_short_lists(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _with_short_lists(text: str) -> str:
    """Return the text of a document in which a list of nothing but numbers and names stands in one line."""

    def in_one_line(found: re.Match[str]) -> str:
        items = [line.strip().rstrip(",") for line in found[1].rstrip("\n").split("\n")]
        return f"[{', '.join(items)}]"

    return _LIST.sub(in_one_line, text)


#: A list written over several lines, with a number or a string in each; strings have no end of a line in them.
_LIST = re.compile(r'\[\n((?: *(?:"[^\n]*"|[^\s"\[\]{}][^\n"\[\]{}]*),?\n)+) *\]')
