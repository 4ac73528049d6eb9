"""``fairopt`` in processes that are forked from one that has imported it: like any other, but for their start.

To import what a command needs takes most of the time of a short one. Where the start is not what a test is about, it
runs the words of the fixture ``forked_fairopt`` instead of ``python -m fairopt``. What runs is the same `main`, in a
process with the streams, the folder and the environment of who asks, which ends with the same status.
"""

from __future__ import annotations

import gc
import marshal
import os
import select
import signal
import socket
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

CLIENT = Path(__file__).with_name("forked_client.py")
#: What commands import besides what they are, and what is found by name.
BESIDES = ("numpy", "highspy", "flint", "pydantic", "yaml", "zoneinfo", "fairopt.audit", "fairopt.simulation")
NAMED = ("fairopt.policies", "fairopt.properties")


def serve(where: str) -> None:
    """Listen at a socket, and fork a process for each who asks, until nobody holds the other end of standard input."""
    from fairopt.cli.app import COMMANDS

    found = [each.module for group in NAMED for each in entry_points(group=group)]
    for name in (*BESIDES, *(each.module for each in COMMANDS.values()), *found):
        import_module(name)
    gc.freeze()  # else to look for garbage would copy all memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for who asks for them
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(where)
        listening.listen()
        print(flush=True)  # it is ready
        while listening in select.select([listening, sys.stdin], [], [])[0]:
            asker, _ = listening.accept()
            with asker:
                if os.fork() == 0:
                    listening.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    return _answer(asker)


def _answer(asker: socket.socket) -> None:
    """Become the process that was asked for; who began it tells its number and how it ended."""
    length, streams, _, _ = socket.recv_fds(asker, 8, 3)
    with asker.makefile("rb") as rest:
        arguments, folder, environment = marshal.loads(rest.read(int.from_bytes(length, "big")))
    if number := os.fork():
        for each in streams:
            os.close(each)
        asker.sendall(number.to_bytes(8, "big"))
        ended = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        asker.sendall(ended.to_bytes(8, "big", signed=True))
        os._exit(0)
    asker.close()
    for to, each in enumerate(streams):
        os.dup2(each, to)
        os.close(each)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[1:1] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = ["fairopt", *arguments]
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = (
        open(0, closefd=False),  # noqa: SIM115
        open(1, "w", closefd=False),  # noqa: SIM115
        open(2, "w", errors="backslashreplace", buffering=1, closefd=False),  # noqa: SIM115
    )
    from fairopt.cli import main

    main()


if __name__ == "__main__":
    serve(sys.argv[1])
