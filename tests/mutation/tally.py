"""What became of the mutants, counted: the table of a run, and why those do no harm that are not killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

COLUMNS = ("mutants", "killed", "alike by rule", "read", "not read", "not tried")


class Tally:
    """Counts of a subject's mutants, by module and by reason; as text it is a table in Markdown and a list of reasons.

    >>> tally = Tally("verifiers")
    >>> tally.add("runs.py", "survived", rule=None, read="it refuses more", seconds=0.25)
    'read'
    >>> print(tally)
    | verifiers | mutants | killed | alike by rule | read | not read | not tried |
    |---|---:|---:|---:|---:|---:|---:|
    | `runs.py` | 1 | 0 | 0 | 1 | 0 | 0 |
    | **in all** | **1** | **0** | **0** | **1** | **0** | **0** |
    <BLANKLINE>
    Read:
    <BLANKLINE>
    * It refuses more: 1.
    <BLANKLINE>
    The last tries took 0 s of processor in all, 0.25 s the longest.
    """

    def __init__(self, subject: str) -> None:
        self.subject, self.counts = subject, dict[str, Counter[str]]()
        self.seconds = [0.0]
        self.why = {"alike by rule": Counter[str](), "read": Counter[str]()}

    def add(self, file: str, fate: str | None, *, rule: str | None, read: str | None, seconds: float) -> str:
        """Count a mutant by its fate (None: it was not tried), and what is known of it; return its column.

        ``seconds``: of the processor that it took when it was last tried.
        """
        known = {"killed": "killed", "survived": "not read"}
        column = "alike by rule" if rule else "read" if read and fate != "killed" else known.get(str(fate), "not tried")
        self.counts.setdefault(file, Counter()).update(["mutants", column])
        self.seconds.append(seconds)
        if column in self.why:
            self.why[column].update([str(rule or read)])
        return column

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"| {self.subject} | {' | '.join(COLUMNS)} |"
        yield f"|---|{'---:|' * len(COLUMNS)}"
        for file, count in self.counts.items():
            yield f"| `{file}` | {' | '.join(f'{count[each]:,}' for each in COLUMNS)} |"
        whole = sum(self.counts.values(), Counter[str]())
        yield f"| **in all** | {' | '.join(f'**{whole[each]:,}**' for each in COLUMNS)} |"
        for column, whys in self.why.items():
            if whys:
                yield from ("", f"{column.capitalize()}:", "")
            for why, number in sorted(whys.items(), key=lambda each: (-each[1], each[0])):
                yield f"* {why[0].upper()}{why[1:]}: {number}."
        took = sum(self.seconds), max(self.seconds)
        yield from ("", f"The last tries took {took[0]:.0f} s of processor in all, {took[1]:.2f} s the longest.")
