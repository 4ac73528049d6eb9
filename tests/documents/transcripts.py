"""The transcripts of ``docs/first-ten-minutes`` and of tutorials: after ``$`` stands a command, below it its output.

``make transcripts`` runs them again and writes the outputs into the pages. A page is one session of bash in an empty
folder: its blocks ``console`` hold commands (``$``, gone on with by ``>``) and outputs, standard error among them. Its
blocks with a ``:caption:`` are files, which are written there beforehand, where they stand.

``pip install`` is done by `installing`, without the network; ``kubectl`` and ``sshare`` print files of
``fairopt/datasets/clusters``. In a comparison all seconds are alike, and
spaces at the ends of lines do not count.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page for where in ("first-ten-minutes/*", "tutorials/cluster-*") for page in ROOT.glob(f"docs/{where}.md")
)
BLOCK = re.compile(r"^```(\{[\w-]+\} \S+|console)\n(.*?)^```$", re.M | re.S)
#: What is printed after each command; no command prints it.
DONE = "\x1e"
INSTALL = shlex.join([sys.executable, str(Path(__file__).with_name("installing.py"))])
CLUSTERS = ROOT / "fairopt" / "datasets" / "clusters"
BEGIN = f"""exec 2>&1
kubectl() {{ cat {CLUSTERS}/kueue/cluster.json; }}
sshare() {{ cat {CLUSTERS}/slurm/sshare.txt; }}
pip() {{ {INSTALL} "${{@: -1}}" "$SITE"; }}
done_() {{ local status=$?; printf '{DONE}'; return $status; }}
"""
#: What a session has of the caller's environment, besides PATH.
KEPT = ("HOME", "TMPDIR", "OPENBLAS_CORETYPE")
SECONDS = re.compile(r"\b\d+(\.\d+)?(e-?\d+)?(?= (s|ms|seconds)\b)")


@dataclass(frozen=True)
class Step:
    """A command as it stands on the page, without its prompts, and its output."""

    command: str
    output: str


def steps(block: str) -> list[Step]:
    """Return the commands of a block ``console`` with their outputs."""
    found = []
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        first, *rest = part.splitlines(keepends=True)
        more = 0
        while more < len(rest) and rest[more].startswith((">\n", "> ")):
            more += 1
        command = first + "".join(line[2:] or "\n" for line in rest[:more])
        found.append(Step(command, "".join(rest[more:])))
    return found


def written(block: re.Match[str], page: Path) -> tuple[str, str] | None:
    """Return name and text of the file that a block shows; None where it is none."""
    kind, body = block.groups()
    name = re.search(r"^:caption: (\S+)$", body, re.M)
    if name is None:
        return None
    if kind.startswith("{literalinclude}"):
        return name[1], (page.parent / kind.split()[1]).read_text(encoding="utf-8")
    return name[1], re.sub(r"\A(:\w+:.*\n)+\n?", "", body)


def script(page: Path) -> str:
    """Return the session of a page, for bash."""
    lines = [BEGIN]
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if (file := written(block, page)) is not None:
            lines.append(f"cat > {shlex.quote(file[0])} <<'END OF FILE'\n{file[1]}END OF FILE\n")
        elif block[1] == "console":
            lines += [f"{step.command}\ndone_\n" for step in steps(block[2])]
    return "".join(lines)


def run(page: Path, *programs: Path) -> list[str]:
    """Return what the commands of a page print, each in turn, in a folder that is empty at first.

    Programs are looked for in the folders ``programs`` before all others.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as site:
        path = os.pathsep.join([*map(str, programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        known = {"PATH": path, "PYTHONPATH": site, "SITE": site, "COLUMNS": "120", "LC_ALL": "C.UTF-8"}
        # not the whole environment: by CI, NO_COLOR and many others, tools print something else
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment = {**kept, **known, "PYTHONDONTWRITEBYTECODE": "1"}
        session = Path(site, "session")
        session.write_text(script(page), encoding="utf-8")
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True, "cwd": folder, "env": environment}
        ran = subprocess.run(["bash", session], check=False, **how)
    return [ended(output) for output in ran.stdout.split(DONE)[:-1]]


def ended(output: str) -> str:
    """Return an output without spaces at the ends of its lines, whose last line is ended."""
    lines = [line.rstrip() for line in output.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def alike(output: str) -> str:
    """Return an output without what differs from run to run: seconds."""
    return SECONDS.sub("0", output)


def rewritten(page: Path, *programs: Path) -> str:
    """Return the text of a page with what its commands print now; alike outputs stay as they are."""
    outputs = iter(run(page, *programs))

    def again(block: re.Match[str]) -> str:
        if block[1] != "console":
            return block[0]
        text = ""
        for step in steps(block[2]):
            now = next(outputs)
            shown = step.command.rstrip("\n").replace("\n", "\n> ").replace("> \n", ">\n")
            text += f"$ {shown}\n{step.output if alike(now) == alike(step.output) else now}"
        return f"```console\n{text}```"

    text = BLOCK.sub(again, page.read_text(encoding="utf-8"))
    assert next(outputs, None) is None, f"{page.name}: more outputs than commands"
    return text


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(rewritten(each), encoding="utf-8")
