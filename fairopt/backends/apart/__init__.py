"""Steps that nothing can interrupt, in another process that is ended when a time limit is over, or by a signal.

HiGHS looks at the clock between its own steps only, and flint not at all; neither hears Ctrl-C. Under a time limit, and
where a signal may stop what runs (`fairopt.deadline.stoppable`), they run in a process that is kept for the next one,
if a program is large enough for that to matter: one for each thread that asks. Where it is ended or dies, what asked
gets an error of fairopt, and the next step has a new process. Elsewhere there is none. What goes to and fro is numbers
and names (`fairopt.backends.apart.wire`), never code.

Such a process needs POSIX (Linux, macOS). On Windows everything runs in the one process, and a solver may overrun.
"""

from fairopt.backends.apart.process import Remote, solved, wanted
from fairopt.backends.apart.worker import heard, tell

__all__ = ["Remote", "heard", "solved", "tell", "wanted"]
