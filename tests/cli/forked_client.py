"""Ask `forked.py` for a process: ``python -I -S forked_client.py SOCKET ARGUMENT ...``; ends as that process ends.

It imports nothing that takes long, since it is started instead of what does. It hands over its streams, its folder and
its environment, and hands on the signals by which commands are asked to end.
"""

import _socket
import marshal
import os
import signal
import sys
from array import array

if __name__ == "__main__":
    _, where, *arguments = sys.argv
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(where)
    asked = marshal.dumps((arguments, os.getcwd(), dict(os.environ)))
    streams = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [0, 1, 2]))]
    server.sendmsg([len(asked).to_bytes(8, "big")], streams)
    server.sendall(asked)
    number = int.from_bytes(server.recv(8), "big")
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda which, _: os.kill(number, which))
    status = int.from_bytes(server.recv(8), "big", signed=True)
    if status < 0:  # by a signal
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
