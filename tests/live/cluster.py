"""A small Slurm on this machine, as a Python module: slurmctld, slurmdbd, MariaDB and a slurmd for each node.

    accounts = ["add account a parent=root fairshare=1", "add user u1 account=a fairshare=1"]  # what sacctmgr is told
    with Cluster([Node("n1", {"a100": 4}), Node("n2", {"v100": 4})]) as slurm:
        slurm.begin(Settings(), accounts)
        slurm.run("sbatch", "--uid=u1", "-A", "a", "--gres=gpu:a100:1", "-o", "/dev/null", "--wrap", "sleep 1")
        print(slurm.run("squeue"))
        slurm.begin(Settings(fair_tree=False), accounts, usage={("a", "u1"): 100})  # the next, of another name

It needs root, and `install.sh`, which stands beside it, to have been run. The programs run in namespaces of their own
(network, processes, mounts, host name): the network has the loopback device and nothing else, users u0 to u39 are there
only inside, and everything ends with the first process inside, which ends when this Python ends, however it ends. GPUs
are made up: their files are empty. `run` calls a command inside, and raises `CalledProcessError` with what it said.
`begin` stops slurmctld and the slurmds, makes a cluster with a new name in the same slurmdbd in place of the last, and
starts them again; ``usage`` is RawUsage by (account, user), written as the state that slurmctld reads when it starts.
`restart` stops and starts slurmctld, with other usage where some is given. Usage does not decay.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

USERS = [f"u{number}" for number in range(40)]
#: Seconds that a daemon may take to answer, and a command to end.
PATIENCE = 90


@dataclass(frozen=True)
class Node:
    """A node: its GPUs by type, and CPUs."""

    name: str
    gpus: Mapping[str, int]
    cpus: int = 64


@dataclass(frozen=True)
class Settings:
    """What slurm.conf says of the order; ``partitions`` are its lines, the default one of all nodes."""

    fair_tree: bool = True
    backfill: bool = False
    weights: Mapping[str, int] = field(default_factory=dict)  # {"Fairshare": 1000, "QOS": 0, "Age": 0}
    partitions: Sequence[str] = ("PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP",)
    preempt: bool = False
    further: Sequence[str] = ()


class Cluster:
    """Slurm's daemons; see the module. ``folder``: where they write, removed at the end unless it is given."""

    def __init__(
        self, nodes: Sequence[Node], *, folder: Path | None = None, say: Callable[[str], None] = print
    ) -> None:
        """Note what is wanted; nothing runs before `start`."""
        self.nodes, self.say, self._given = list(nodes), say, folder
        self.folder = folder or Path()
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._keeper: subprocess.Popen[bytes] | None = None
        self._begun = 0
        self.version = ""

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- the machine ---------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Make the namespaces, and start MariaDB and slurmdbd."""
        self.folder = self._given or Path(tempfile.mkdtemp(prefix="fairopt-slurm-"))
        self.folder.chmod(0o755)
        for name in ("passwd", "group"):
            text = Path("/etc", name).read_text(encoding="utf-8")
            kept = [line for line in text.splitlines() if line.partition(":")[0] not in USERS]
            for number, user in enumerate(USERS):
                own = 61000 + number
                kept.append(f"{user}:x:{own}:{own}::/tmp:/bin/sh" if name == "passwd" else f"{user}:x:{own}:")
            (self.folder / name).write_text("\n".join(kept) + "\n", encoding="utf-8")
        # glibc looks up no IPv4 address where the only one is 127.0.0.1, so there is a second
        first = ["hostname localhost", "ip link set lo up", "ip addr add 127.0.0.2/8 dev lo"]
        # slurmdbd's messages are two writes each, of which the second waits for an acknowledgement: at once, not 40 ms
        told = "dev lo table local proto kernel scope host src 127.0.0.1 quickack 1"
        first += [f"ip route change local {each} {told}" for each in ("127.0.0.1", "127.0.0.0/8")]
        first += [f"mount --bind {self.folder}/{name} /etc/{name}" for name in ("passwd", "group")]
        script = " && ".join([*first, "echo ready", "read -r end"])
        words = (
            "unshare",
            "--net",
            "--uts",
            "--pid",
            "--mount",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "bash",
            "-c",
        )
        self._keeper = subprocess.Popen((*words, script), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._keeper.stdout is not None
        if self._keeper.stdout.readline().strip() != b"ready":
            raise RuntimeError("no namespaces could be made: run this as root, on Linux")
        children = Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children").read_text(encoding="utf-8")
        self._inside = int(children.split()[0])
        self.version = self.run("slurmctld", "-V").split()[-1]
        self._database()
        config = {
            "AuthType": "auth/none",
            "DbdHost": "localhost",
            "DbdAddr": "127.0.0.1",
            "SlurmUser": "root",
            "PidFile": self.folder / "slurmdbd.pid",
            "LogFile": self.folder / "slurmdbd.log",
            "CommunicationParameters": "NoInAddrAny",
            "StorageType": "accounting_storage/mysql",
            "StorageHost": "127.0.0.1",
            "StorageUser": "root",
        }
        path = self.folder / "slurmdbd.conf"
        path.write_text("".join(f"{name}={value}\n" for name, value in config.items()), encoding="utf-8")
        path.chmod(0o600)
        self._daemon("slurmdbd", ("slurmdbd", "-D"))
        self._configure(Settings())
        self._until("slurmdbd", lambda: self.run("sacctmgr", "-n", "show", "cluster"))

    def _database(self) -> None:
        data = self.folder / "mysql"
        quiet = ("--no-defaults", "--user=root", f"--datadir={data}", f"--tmpdir={self.folder}")
        self.run("mariadb-install-db", *quiet, "--auth-root-authentication-method=normal", "--skip-test-db")
        own = ("--bind-address=127.0.0.1", "--port=3306", f"--socket={self.folder}/mysql.sock")
        lean = ("--innodb-flush-log-at-trx-commit=0", f"--pid-file={self.folder}/mysql.pid", "--skip-log-bin")
        self._daemon("mariadbd", ("mariadbd", *quiet, *own, *lean))
        self._until("mariadbd", lambda: self.run("mariadb-admin", "-uroot", f"-S{self.folder}/mysql.sock", "ping"))

    def stop(self) -> None:
        """End every daemon, by its number, then the namespaces and what still runs in them; remove the folder."""
        for name in reversed(list(self._daemons)):
            self._end(name)
        if self._keeper is not None:
            assert self._keeper.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._keeper.stdin.close()
            try:
                self._keeper.wait(10)
            except subprocess.TimeoutExpired:
                self._keeper.kill()  # --kill-child: all inside end with it
                self._keeper.wait(10)
            self._keeper = None
        if self._given is None and self.folder != Path():
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- a cluster -----------------------------------------------------------------------------------------------------
    def begin(
        self,
        settings: Settings,
        accounts: Sequence[str],
        usage: Mapping[tuple[str, str], int] | None = None,
    ) -> str:
        """Make a new cluster of a new name with these accounts, start slurmctld and slurmds, and return the name."""
        if self._begun:
            self.cancel()
        for name in [each for each in self._daemons if each.startswith("slurmd ") or each == "slurmctld"]:
            self._end(name)
        if self._begun:  # sacctmgr would show its associations, too
            self._until("slurmdbd", lambda: self.run("sacctmgr", "-i", "delete", "cluster", self.cluster))
        self._begun += 1
        self.cluster = f"c{self._begun}"
        self._configure(settings)
        self.run("sacctmgr", "-i", "add", "cluster", self.cluster)
        if self._begun == 1:  # slurmdbd knows gres/gpu only after a slurmctld has told it
            self._controller()
            self._end("slurmctld")
        self.tell(accounts)
        self._usage(usage or {})
        self._start()
        return self.cluster

    def cancel(self) -> None:
        """Cancel all jobs, and wait until they are gone."""
        jobs = self.run("squeue", "-h", "-o", "%A").split()
        if jobs:
            self.run("scancel", *jobs)
        self._until("slurmctld", lambda: self._fail("jobs go on") if self.run("squeue", "-h").strip() else None)

    def tell(self, lines: Sequence[str]) -> None:
        """Have sacctmgr do these lines, each of which it must accept."""
        if lines:
            self.run("sacctmgr", "-i", given="\n".join(lines) + "\n")

    def configure(self, settings: Settings) -> None:
        """Write slurm.conf again, and have slurmctld read it."""
        self._configure(settings)
        self.run("scontrol", "reconfigure")

    def restart(self, usage: Mapping[tuple[str, str], int] | None = None) -> None:
        """Stop and start slurmctld, which reads the accounts from the database again."""
        self._end("slurmctld")
        if usage is not None:
            self._usage(usage)
        self._controller()

    def _start(self) -> None:
        self._controller()
        for node in self.nodes:
            if f"slurmd {node.name}" not in self._daemons:
                self._daemon(f"slurmd {node.name}", ("slurmd", "-D", "-N", node.name))
        self._until("slurmd", self._registered)

    def _controller(self) -> None:
        self._daemon("slurmctld", ("slurmctld", "-D"))
        self._until("slurmctld", lambda: self.run("scontrol", "ping") if self._up() else self._fail("not up"))

    def _up(self) -> bool:
        return "is UP" in self.run("scontrol", "ping")

    def _registered(self) -> None:
        states = self.run("sinfo", "-h", "-N", "-o", "%N %T %E").strip().split("\n")
        if not all(line.split()[1] in ("idle", "mixed", "allocated") for line in states):
            self._fail("; ".join(states))

    def _fail(self, why: str) -> None:
        raise RuntimeError(why)

    def _configure(self, settings: Settings) -> None:
        name = f"c{self._begun}"
        state = self.folder / name
        (state / "spool").mkdir(parents=True, exist_ok=True)
        types = sorted({kind for node in self.nodes for kind in node.gpus})
        config: dict[str, object] = {
            "ClusterName": name,
            "SlurmctldHost": "localhost(127.0.0.1)",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "AuthType": "auth/none",
            "CredType": "cred/none",
            "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
            "StateSaveLocation": state,
            "SlurmdSpoolDir": state / "spool" / "%n",
            "SlurmctldPidFile": state / "slurmctld.pid",
            "SlurmdPidFile": state / "slurmd.%n.pid",
            "SlurmctldLogFile": state / "slurmctld.log",
            "SlurmdLogFile": state / "slurmd.%n.log",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "MpiDefault": "none",
            "ReturnToService": 2,
            "SlurmdParameters": "config_overrides",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core",
            "GresTypes": "gpu",
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "127.0.0.1",
            "AccountingStorageEnforce": "associations,limits,qos",
            "AccountingStorageTRES": ",".join(["gres/gpu", *(f"gres/gpu:{kind}" for kind in types)]),
            "JobAcctGatherType": "jobacct_gather/none",
            "PriorityType": "priority/multifactor",
            "PriorityDecayHalfLife": 0,
            "PriorityUsageResetPeriod": "YEARLY",  # slurmctld insists on one of the two
            "PriorityCalcPeriod": 1,
            "SchedulerType": f"sched/{'backfill' if settings.backfill else 'builtin'}",
            "SchedulerParameters": "bf_interval=1,sched_interval=1",
            "KillWait": 1,
            "MinJobAge": 3600,
        }
        if not settings.fair_tree:
            config["PriorityFlags"] = "NO_FAIR_TREE"
        if settings.preempt:
            config |= {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}
        config |= {f"PriorityWeight{name}": weight for name, weight in settings.weights.items()}
        lines = [f"{name}={value}" for name, value in config.items()]
        for port, node in enumerate(self.nodes, 17000):
            gres = ",".join(f"gpu:{kind}:{count}" for kind, count in node.gpus.items())
            has = f"CPUs={node.cpus} RealMemory=4000 State=UNKNOWN" + (f" Gres={gres}" if gres else "")
            lines.append(f"NodeName={node.name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} {has}")
        lines += [*settings.partitions, *settings.further]
        (self.folder / "slurm.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        gres_lines = ["AutoDetect=off"]
        (self.folder / "gpus").mkdir(exist_ok=True)
        for node in self.nodes:
            for kind, count in node.gpus.items():
                files = [self.folder / "gpus" / f"{node.name}-{kind}-{number}" for number in range(count)]
                for file in files:
                    file.touch()
                gres_lines.append(f"NodeName={node.name} Name=gpu Type={kind} File={','.join(map(str, files))}")
        (self.folder / "gres.conf").write_text("\n".join(gres_lines) + "\n", encoding="utf-8")

    def _usage(self, usage: Mapping[tuple[str, str], int]) -> None:
        """Write RawUsage as slurmctld keeps it. Source: Slurm 22.05.8, src/common/assoc_mgr.c, dump_assoc_mgr_state."""
        listed = self.run(
            "sacctmgr", "-nP", "show", "assoc", f"cluster={self.cluster}", "format=account,user,id,partition"
        )
        known = dict(pair for pair in map(self._identified, listed.split("\n")) if pair)
        version = int(os.environ.get("SLURM_STATE_VERSION", "0")) or self._protocol()
        data = struct.pack("!Hq", version, int(time.time()))
        for key, used in usage.items():
            data += struct.pack("!I", known[key]) + _packed(f"{used:.6f}") + struct.pack("!I", 0) + struct.pack("!I", 0)
        (self.folder / self.cluster / "assoc_usage").write_bytes(data)

    @staticmethod
    def _identified(line: str) -> tuple[tuple[str, str], int] | None:
        parts = line.split("|")
        return ((parts[0], parts[1]), int(parts[2])) if len(parts) > 2 and parts[1] else None

    def _protocol(self) -> int:
        """Return the number of the protocol: 38 << 8 for 22.05, 39 for 23.02, 40 for 23.11, 41 for 24.05, and so on."""
        major, minor = map(int, self.version.split(".")[:2])
        first = {(22, 5): 38, (23, 2): 39, (23, 11): 40, (24, 5): 41, (24, 11): 42, (25, 5): 43, (25, 11): 44}
        return first[major, minor] << 8

    # -- processes -----------------------------------------------------------------------------------------------------
    def _words(self, words: Sequence[str]) -> list[str]:
        inside = ("nsenter", "-t", str(self._inside), "--net", "--uts", "--pid", "--mount", "--")
        return [*inside, *words]

    @property
    def _environment(self) -> dict[str, str]:
        path = os.environ.get("PATH", "/usr/bin") + ":/usr/sbin:/usr/bin:/sbin:/bin"
        return os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path, "TZ": "UTC", "LC_ALL": "C"}

    def run(self, *words: str, seconds: float = PATIENCE, check: bool = True, given: str = "") -> str:
        """Return what a command prints, run inside, with ``given`` as its input.

        Errors: `CalledProcessError`, `TimeoutExpired`.
        """
        ran = subprocess.run(
            self._words(words),
            env=self._environment,
            cwd="/",
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if check and ran.returncode:
            error = subprocess.CalledProcessError(ran.returncode, words, ran.stdout, ran.stderr)
            error.add_note(f"{' '.join(words)}: {ran.stdout}{ran.stderr}")
            raise error
        return ran.stdout

    def _daemon(self, name: str, words: Sequence[str]) -> None:
        log = (self.folder / f"{name.replace(' ', '-')}.out").open("ab")
        with log:
            self._daemons[name] = subprocess.Popen(
                self._words(words), env=self._environment, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _end(self, name: str) -> None:
        process = self._daemons.pop(name, None)
        if process is None or process.poll() is not None:
            return
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), 15)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), 9)
            process.wait(10)

    def _until(self, name: str, ask: Callable[[], object]) -> None:
        """Ask until it answers, or say what the daemon wrote."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                ask()
                return
            except (subprocess.SubprocessError, RuntimeError) as error:
                process = self._daemons.get(name)
                if time.monotonic() > end or (process is not None and process.poll() is not None):
                    raise RuntimeError(f"{name} does not answer: {error}\n{''.join(self._logs(name))}") from error
                time.sleep(0.2)

    def _logs(self, name: str) -> Iterator[str]:
        for path in sorted(self.folder.rglob(f"{name.split()[0]}*.[lo][ou][gt]")):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            yield f"-- {path.name}\n" + "\n".join(lines[-15:]) + "\n"


def _packed(text: str) -> bytes:
    """Return a string as Slurm packs it: its length with the zero at its end, and the bytes."""
    data = text.encode() + b"\0"
    return struct.pack("!I", len(data)) + data
