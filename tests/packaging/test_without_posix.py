"""The commands work where Python lacks what only POSIX systems have, as on Windows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Takes away what Python has on Linux only, once the standard library, which knows both systems, is loaded.
CODE = """
import asyncio, logging, multiprocessing, os, random, shutil, signal, socket, subprocess, sys, tempfile, threading
for name in ("resource", "fcntl", "grp", "pwd", "pty", "syslog"):
    sys.modules[name] = None
for name in ("killpg", "posix_spawn", "fork", "register_at_fork", "getuid", "setsid", "wait4", "getloadavg", "nice",
             "POSIX_SPAWN_DUP2", "POSIX_SPAWN_OPEN", "mkfifo", "fchmod"):
    delattr(os, name)
for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGPIPE", "SIGUSR1", "pthread_kill", "setitimer", "ITIMER_REAL", "alarm"):
    delattr(signal, name)
from fairopt.cli.app import app
for words in (
    "solve @oef-example --policy max-min --exact --time-limit 5 --certificate decided.json",
    "solve @oef-example --policy max-min --backend highs",
    "check decided.json",
    "compare @oef-example --policy max-min --property envy_freeness",
    "run @philly --cluster @philly-cluster --policy srtf --rounds 2 --length 300",
    "datasets philly-cluster --out cluster.toml",
    "bench list",
):
    app(words.split(), standalone_mode=False)
"""


def test_commands_need_nothing_of_posix(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "accepted" in ran.stdout.lower()
    assert (tmp_path / "cluster.toml").stat().st_size
