"""Files and values that are changed: by bytes, by values, by lines."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

#: What stands where a number, a name or a table is expected.
STRANGE: list[Any] = [
    *(None, True, 0, -1, 2**63, 10**60, 1e308, 5e-324, -0.0, "", " ", "\u0000", "x" * 5000, "-1", "1e999", "NaN"),
    *(
        "Infinity",
        "1/0",
        "0x10",
        "1_000",
        "<script>alert(1)</script>",
        "../../etc/passwd",
        "100Ei",
        "-5m",
        "٣",
        "\ud800",
    ),
    *(
        "unlimited",
        "2026-99-99T00:00:00Z",
        [],
        {},
        [[]],
        {"": ""},
        [None],
        ["x"],
        {"items": []},
        {"a": {"b": {"c": 1}}},
    ),
]
LINES = [
    *(
        "",
        "|" * 500,
        "a|b|c",
        "=",
        "NodeName=",
        "\x1b[2J",
        "1-99:99:99",
        "gres/gpu:=",
        ",,,,",
        '"',
        "[[user]]",
        "[a.b]",
    ),
    *("<!DOCTYPE a [<!ENTITY b 'c'>]>", "schema = 2", "&a [*a]", "\ufeff", "1e999", "user = [", "'''"),
]


def changed_bytes(data: bytes, draw: Random) -> bytes:
    """Return a text with some bytes changed, cut out, doubled, or a strange line put in."""
    out = bytearray(data)
    for _ in range(draw.randint(1, 5)):
        at, width = draw.randrange(max(1, len(out))), draw.choice([1, 1, 2, 20, 500])
        how = draw.randrange(6)
        if how == 0:
            out[at : at + width] = draw.randbytes(width)
        elif how == 1:
            del out[at : at + width]
        elif how == 2:
            out[at:at] = out[at : at + width]
        elif how == 3:
            out[at:at] = draw.choice(LINES).encode() + b"\n"
        elif how == 4:
            digits = [place for place, byte in enumerate(out) if 48 <= byte <= 57]
            if digits:
                out[draw.choice(digits)] = draw.choice(b"0123456789./e-")
        else:
            out = out[:at] + draw.choice(b'{}[]",:|&*!%<>=\n\t\x00\xff').to_bytes(1, "little") + out[at:]
    return bytes(out)


def changed_values(data: Any, draw: Random) -> Any:
    """Return a document with some values changed, left out, doubled, exchanged, or put deep inside lists."""
    out = copy.deepcopy(data)
    for _ in range(draw.randint(1, 4)):
        at, key, above = out, None, out
        while isinstance(at, dict | list) and at and (key is None or draw.random() < 0.85):
            above, key = at, draw.choice(list(at) if isinstance(at, dict) else range(len(at)))
            at = above[key]
        if key is None:
            continue
        how = draw.randrange(6)
        if how == 0:
            above[key] = copy.deepcopy(draw.choice(STRANGE))
        elif how == 1:
            del above[key]
        elif how == 2 and isinstance(above, list):
            above.extend(copy.deepcopy([at] * draw.choice([1, 50])))
        elif how == 3 and isinstance(at, int | float) and not isinstance(at, bool):
            above[key] = draw.choice([at + 1, -at, at / 3, at * 10**9, str(at), [at], True])
        elif how == 4 and isinstance(above, dict):
            above[draw.choice(["", "schema", "user", "x y", str(key) + "s"])] = above.pop(key)
        else:
            deep: Any = at
            for _ in range(draw.choice([1, 90, 120])):
                deep = [deep]
            above[key] = deep
    return out
