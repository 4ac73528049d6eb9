"""Count the words of the pages under docs/: ``make words`` prints each page, the longest first, and the total."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
#: The most words of a page that people read from its beginning, and of all pages together.
PAGE, TOTAL = 2_500, 35_000
#: Pages and folders that are looked up and not read: they are made by scripts, or are templates.
LOOKED_UP = ("ledger.md", "templates", "_generated", "_templates")
#: What a script writes between two marks, such as a table of measurements.
WRITTEN = re.compile(r"<!-- ([\w ,-]+): (?:begin|written by)[^>]*-->.*?<!-- \1: end -->", re.S)
#: A block between fences: its fence, what stands after it, and what it holds.
BLOCK = re.compile(r"^(`{3,}|:{3,})([^\n`]*)\n(.*?)^\1[ ]*$", re.S | re.M)
#: Directives that hold or run code; others, such as ``{glossary}``, hold text.
CODE = ("{code", "{literalinclude")


class Words(NamedTuple):
    r"""Words of one page: of its text, of its blocks of code, and of what scripts write into it.

    >>> Words.of("Two words.\n\n```\nfairopt list\n```\n<!-- speed: begin -->\n| 1 |\n<!-- speed: end -->\n")
    Words(text=2, code=2, written=1)
    """

    text: int
    code: int
    written: int

    @classmethod
    def of(cls, page: str) -> Words:
        """Count the words of a page in Markdown."""
        written = sum(_count(found[0]) for found in WRITTEN.finditer(page))
        rest = WRITTEN.sub("", page)
        code = sum(_count(found[3]) for found in BLOCK.finditer(rest) if _is_code(found))
        return cls(_count(BLOCK.sub(lambda found: "" if _is_code(found) else found[3], rest)), code, written)


def pages() -> dict[str, Words]:
    """Return the words of every page that people read, by its path under docs/."""
    names = sorted(path.relative_to(HERE) for path in HERE.rglob("*.md"))
    read = (name for name in names if name.parts[0] not in LOOKED_UP)
    return {name.as_posix(): Words.of((HERE / name).read_text(encoding="utf-8")) for name in read}


def _is_code(block: re.Match[str]) -> bool:
    return not block[2].startswith("{") or block[2].startswith(CODE)


def _count(text: str) -> int:
    lines = [line for line in text.splitlines() if not line.startswith("<!--")]
    return sum(bool(re.search(r"\w", word)) for word in " ".join(lines).split())


if __name__ == "__main__":
    counted = pages()
    print(f"{'page':42}{'text':>8}{'code':>8}{'written by scripts':>20}")
    for name, words in sorted(counted.items(), key=lambda each: -each[1].text):
        print(f"{name:42}{words.text:8,}{words.code:8,}{words.written:20,}")
    sums = (sum(column) for column in zip(*counted.values(), strict=True))
    print("{:42}{:8,}{:8,}{:20,}".format("total", *sums))
