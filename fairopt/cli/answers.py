"""What verdicts tell the shell."""

from __future__ import annotations

from collections.abc import Iterable

from fairopt.cli.exits import Exit
from fairopt.properties import Answer, Verdict


def status_of(verdicts: Iterable[Verdict]) -> Exit:
    """Return what verdicts come to: FAILS before UNDECIDED before FINE."""
    answers = {verdict.answer for verdict in verdicts}
    if Answer.FAILS in answers:
        return Exit.FAILS
    return Exit.UNDECIDED if answers & {Answer.UNDECIDED, Answer.DEPENDS} else Exit.FINE
