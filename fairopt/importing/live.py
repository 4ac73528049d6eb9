"""A cluster's own files from its own commands: those that the pages name, which read and never write.

A source (group ``fairopt.sources``) is a mapping from the name of a file to the words of the command that prints it. A
word may hold $NAME, a variable of the environment.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import which
from types import MappingProxyType
from typing import TypeAlias

from fairopt import discovery
from fairopt.deadline import remaining
from fairopt.errors import BadInput, NotInstalled, OutOfTime
from fairopt.problem.files.storage import AnyPath
from fairopt.replacing import replacing

Source: TypeAlias = Mapping[str, tuple[str, ...]]

#: Seconds that a command may take.
PATIENCE = 120
_VARIABLE = re.compile(r"\$([A-Z_]+)")


def _kubectl(kinds: str, configured_in: str = "") -> Source:
    """Return the commands for objects, and for the ConfigMaps of the namespace where the scheduler is configured."""
    read: dict[str, tuple[str, ...]] = {"cluster.json": ("kubectl", "get", kinds, "-A", "-o", "json")}
    if configured_in:
        read["configuration.json"] = ("kubectl", "get", "configmaps", "-n", configured_in, "-o", "json")
    return MappingProxyType(read)


KUEUE = _kubectl(
    "clusterqueues,cohorts,localqueues,resourceflavors,topologies,admissionchecks,workloads,nodes", "kueue-system"
)
KAI = _kubectl("queues.scheduling.run.ai,podgroups.scheduling.run.ai,nodes,pods,priorityclasses")
VOLCANO = _kubectl(
    "queues.scheduling.volcano.sh,podgroups.scheduling.volcano.sh,jobs.batch.volcano.sh,pods,nodes,priorityclasses",
    "volcano-system",
)
YARN: Source = MappingProxyType(
    {
        "capacity-scheduler.xml": ("cat", "$HADOOP_CONF_DIR/capacity-scheduler.xml"),
        "scheduler.json": ("curl", "-sSf", "$YARN_RM/ws/v1/cluster/scheduler"),
        "metrics.json": ("curl", "-sSf", "$YARN_RM/ws/v1/cluster/metrics"),
    }
)
SLURM: Source = MappingProxyType(
    {
        "sshare.txt": ("sshare", "-alP"),
        "assoc.txt": ("sacctmgr", "show", "assoc", "tree", "-P"),
        "nodes.txt": ("scontrol", "show", "node"),
        "qos.txt": ("sacctmgr", "show", "qos", "-P"),
        "partitions.txt": ("scontrol", "show", "partition"),
        "config.txt": ("scontrol", "show", "config"),
        "squeue.txt": ("squeue", "-o", "%i|%P|%u|%a|%q|%T|%V|%D|%R|%b|%C|%l|%L|%M|%y"),
    }
)


def source(importer: str) -> Source:
    """Return the commands of an importer. Errors: `BadInput` where it has none, which names those that have some.

    >>> source("slurm")["sshare.txt"]
    ('sshare', '-alP')
    """
    known = discovery.names(discovery.SOURCES)
    if importer not in known:
        remedy = f"Save its files and give them. Those that have some: {', '.join(known)}"
        raise BadInput(f"{importer!r} has no commands that can be run as they are", place="--from", remedy=remedy)
    found: Source = discovery.load(discovery.SOURCES, importer)
    return found


def as_lines(commands: Source) -> str:
    """Return commands as lines for a shell, each of which writes its file.

    >>> print(as_lines({"a.txt": ("curl", "$RM/a b")}), end="")
    curl "$RM/a b" > a.txt
    """
    lines = (" ".join(map(_quoted, words)) for words in commands.values())
    return "".join(f"{line} > {shlex.quote(file)}\n" for file, line in zip(commands, lines, strict=True))


def _quoted(word: str) -> str:
    return f'"{word}"' if _VARIABLE.search(word) else shlex.quote(word)


def fetched(
    importer: str,
    folder: AnyPath,
    *,
    seconds: float = PATIENCE,
    watch: Callable[[str], None] = lambda doing: None,
) -> list[Path]:
    """Run the commands of an importer, one after another, and return the files in ``folder`` that they wrote.

    ``seconds``: what each may take. Errors: `BadInput` for a command that fails, with what it said, and a variable that
    is not set; `NotInstalled` for a program that is not there; `OutOfTime`.
    """
    commands = source(importer)
    called = [(file, _filled(words)) for file, words in commands.items()]
    for _, words in called:
        if which(words[0]) is None:
            remedy = f"Run it where it is, or save what it prints: fairopt audit --from {importer} --print-commands"
            raise NotInstalled(f"there is no {words[0]} on the PATH. {remedy}")
    written = []
    for file, words in called:
        watch(shlex.join(words))
        path = Path(folder, file)
        printed = _printed(words, min(seconds, remaining()))
        with replacing(path) as whole:
            whole.write(printed)
        written.append(path)
    return written


def _filled(words: Sequence[str]) -> list[str]:
    """Return the words with variables in them. Errors: `BadInput` for one that is not set."""
    for name in (name for word in words for name in _VARIABLE.findall(word)):
        if not os.environ.get(name):
            wrong = f"the variable {name} is not set"
            raise BadInput(wrong, place=shlex.join(words), remedy=f"Say where it is: export {name}=...")
    return [_VARIABLE.sub(lambda found: os.environ[found[1]], word) for word in words]


def _printed(words: Sequence[str], seconds: float) -> bytes:
    """Return what a command prints."""
    place = shlex.join(words)
    limit = seconds if seconds < float("inf") else None
    try:
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        remedy = "Look whether the server answers; or run it by hand, and give the files"
        raise OutOfTime(f"{place}: it did not end within {seconds:g} s. {remedy}") from error
    except OSError as error:
        remedy = "Run it by hand, and give the files"
        raise BadInput(f"it cannot be run: {error.strerror}", place=place, remedy=remedy) from error
    if ran.returncode:
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        why = f": {said[-1][:300]}" if said else ""
        remedy = "Run it by hand to see what it needs, and give the files"
        raise BadInput(f"it ended with status {ran.returncode}{why}", place=place, remedy=remedy)
    if not ran.stdout.strip():
        raise BadInput("it printed nothing", place=place, remedy="Run it by hand to see what it needs")
    return ran.stdout
