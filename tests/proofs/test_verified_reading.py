"""What the verifier that Coq proves reads and prints, beside what the one in Python does: names, numbers, spellings."""

from __future__ import annotations

import json
import re
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from certificate_kinds.examples import certificate, market

from fairopt.cli.verified import PROGRAM
from fairopt.proofs.verifier import front
from fairopt.proofs.verifier.reading import one_line

VERIFIED = Path(__file__).parents[2] / "proofs" / "verified"
BUILT = pytest.mark.skipif(not PROGRAM.exists(), reason="it is not built: make verified")


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="this Python knows another version of Unicode")
def test_the_table_of_characters_is_that_of_unicode() -> None:
    told = re.findall(r"\((\d+), (\d+)\)", (VERIFIED / "Unicode.v").read_text(encoding="utf-8"))
    inside = {c for low, high in told for c in range(int(low), int(high) + 1)}
    assert inside == {c for c in range(128, 0x110000) if chr(c).isprintable()}


def test_what_is_not_proved_is_less_than_a_hundred_lines() -> None:
    lines = [(VERIFIED / name).read_text(encoding="utf-8").splitlines() for name in ("main.ml", "integer.ml")]
    assert sum(map(len, lines)) < 100


def both(path: Path, content: bytes) -> tuple[str, str]:
    """Return what each of the two says of a file."""
    path.write_bytes(content)
    said = subprocess.run([PROGRAM, path], capture_output=True, text=True, check=False).stdout
    return one_line(front.report(path)[1][0]), said.partition(": ")[2].rstrip("\n")


def of(name: str, share: Any = "1/2", **more: Any) -> dict[str, Any]:
    """Return a certificate about a user of this name, who has this share of a GPU."""
    told = {"market": market({name: [2]}, [1]), "allocation": [[share]], "property": "feasibility"}
    return certificate("property", **({"answer": "HOLDS"} | told | more))


@BUILT
@pytest.mark.parametrize(
    "name",
    [
        "Ada",
        "O'Hara",
        'so-called "A"',
        "both ' and \"",
        "back\\slash",
        "é",
        "名前",
        "😀 e\u0301",
        "\u00a0",
        "\ud800",
        "\x7f",
        " ",
        "x" * 201,
    ],
)
def test_names_are_printed_alike_or_refused_by_both(name: str, tmp_path: Path) -> None:
    for ascii_ in (True, False):
        content = json.dumps(of(name), ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
        python, coq = both(tmp_path / "a.json", content)
        if python.startswith("accepted: "):
            assert coq == python
        else:
            assert coq.partition(": ")[0] == python.partition(": ")[0]


#: Shares as they are written in JSON.
SHARES = """0 1 -1 01 -0 +1 1.5 1e0 1E2 0x1 true null "" "0" "1/3" "2/6" "007/0021" "-0" "-1/2" "1/0" "1/-2" "+1" " 1"
 "1.5" "/" "1/2/3" "\u0663" "1e-1" [] {}"""
LONG = [
    '"' + "1" * 130 + "/3" + "2" * 140 + '"',
    '"-' + "9" * 121 + '"',
    '"' + "9" * 20_000 + '"',
    '"' + "9" * 20_001 + '"',
]
LONG += ["1" * 4_000, "1" * 4_001, "-" + "1" * 3_999, "-" + "1" * 4_000]
LONG += ["1" * 4_001 + more for more in (".5", "e1", "E-4001", ".", "e", "x")]


@BUILT
@pytest.mark.parametrize("share", SHARES.split() + LONG, ids=lambda share: f"{share[:12]} {len(share)}")
def test_numbers_are_read_and_printed_alike(share: str, tmp_path: Path) -> None:
    for answer in ("HOLDS", "FAILS"):
        content = json.dumps(of("A", "SHARE", answer=answer)).replace('"SHARE"', share)
        python, coq = both(tmp_path / "a.json", content.encode())
        if python.startswith("accepted: "):
            assert coq == python
        else:
            assert coq.partition(": ")[0] == python.partition(": ")[0]


RIGHT = json.dumps(of("A"))


@BUILT
@pytest.mark.parametrize(
    "content",
    [
        RIGHT.encode(),
        b"\xef\xbb\xbf" + RIGHT.encode(),
        RIGHT.replace(" ", "\n\t\r ").encode(),
        RIGHT.replace('"A"', '"\\u0041"').encode(),
        RIGHT.replace('"A"', '"\\ud83d\\ude00"').encode(),
        RIGHT.replace('"A"', '"\\ud83d"').encode(),
        RIGHT.replace('"A"', '"\\x41"').encode(),
        RIGHT.replace('"A"', '"\x01"').encode(),
        RIGHT.replace('"A"', "'A'").encode(),
        RIGHT.replace('"A"', '"\xe9"').encode("latin-1"),
        RIGHT.replace('"A"', '"\\u00e9"').encode(),
        RIGHT.encode() + b"{}",
        RIGHT.encode() + b"\n",
        RIGHT.encode() + b"\n\r\t \n",
        RIGHT.encode() + b"\n\f",
        RIGHT.encode() + b"\v",
        RIGHT.encode() + b"\n\n" + RIGHT.encode(),
        RIGHT.encode()[:-1],
        *(RIGHT.replace("{", "{" + "".join(f'"{at}":0,' for at in range(most)), 1).encode() for most in (1_000, 9_999)),
        RIGHT.replace("{", "{" + "".join(f'"{key % 1_001}":0,' for key in range(1_002)), 1).encode(),
        *(RIGHT.replace("1", "[" * deep + "1" + "]" * deep, 1).encode() for deep in (100, 899, 900, 950, 5_000)),
        *(b"[" * deep + b"]" * deep for deep in (900, 901)),
        b'{"run": 1}\n{"round": 1}',
        b'{"run": 1} {"round": 1}',
        RIGHT.replace('"schema": 1', '"schema": 1, "schema": 1', 1).encode(),
        RIGHT.replace('"schema": 1', '"schema": 1.0', 1).encode(),
        RIGHT.replace('"schema": 1', '"schema": 01', 1).encode(),
        RIGHT.replace('"schema": 1', '"schema": -1', 1).encode(),
        RIGHT.replace('"schema": 1', '"schema": NaN', 1).encode(),
        RIGHT.replace('"schema": 1', '"schema": nul', 1).encode(),
        RIGHT.replace("}", ",}", 1).encode(),
        RIGHT.replace("]", ",]", 1).encode(),
        b"",
        b"[]",
        b"null",
        b"1",
        b"-",
        b'"\\',
        b"[1 2]",
        b'{"a" 1}',
        b"\xc0\xaf",
        b'"\xed\xa0\x80"',
        b'"\xf4\x90\x80\x80"',
    ],
)
def test_spellings_are_read_alike(content: bytes, tmp_path: Path) -> None:
    python, coq = both(tmp_path / "a.json", content)
    if python.startswith("accepted: "):
        assert coq == python
    elif coq == "NOT COVERED: a run":
        assert content.startswith(b'{"run": 1}\n')
    else:
        assert coq.partition(": ")[0] == python.partition(": ")[0]
