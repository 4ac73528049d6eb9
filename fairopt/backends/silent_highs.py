"""HiGHS that writes nothing unasked."""

from __future__ import annotations

import highspy


class SilentHighs(highspy.Highs):  # type: ignore[misc]  # highspy has no types
    """HiGHS without output from its first moment: 1.16 writes its name when it is made, before an option can be set."""

    def enableCallbacks(self) -> None:  # highspy's name; the first thing that it does with a new HiGHS
        """Set the option, then do what is asked."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()
