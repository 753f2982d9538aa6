"""A private Slurm of many nodes on one host, with fake GPUs: real daemons, loopback alone.

Every daemon is a child of the test process and dies with it. Nothing of the system's own Slurm is
read or touched. Nodes claim more cores and memory than the host has; nothing is enforced.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

NEEDED = ("slurmctld", "slurmd", "sbatch", "munged", "setpriv")
PATIENCE = 90.0


@dataclass(frozen=True)
class Shape:
    """How large the cluster is."""

    nodes: int = 4
    gpus: int = 4
    cpus: int = 8
    memory: int = 32768
    #: more lines for slurm.conf
    more: str = ""


FOUR = Shape()


class NoLab(Exception):
    """A lab cannot be had here; the message is the line to skip with."""


class SlurmLab:
    """The daemons and their folder."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-lab-"))
        # Jobs of other users pass through.
        self.folder.chmod(0o755)
        self.names = [f"n{number + 1}" for number in range(shape.nodes)]
        self.conf = self.folder / "slurm.conf"
        self.environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    # ---- beginning and ending ----------------------------------------------------------------

    def start(self) -> None:
        """Write the configuration, start all daemons and wait until every node is idle."""
        self._write()
        run = self.folder / "munge"
        munged = ["--foreground", "--force", f"--socket={run}/socket", f"--key-file={run}/key"]
        munged += [f"--pid-file={run}/pid", f"--log-file={run}/log", f"--seed-file={run}/seed"]
        self._spawn("munged", "munged", *munged)
        self._until((run / "socket").exists, "munged did not start")
        self.start_controller()
        for name in self.names:
            self.start_node(name)
        self._until(lambda: set(self.states().values()) == {"idle"}, "nodes did not come up")

    def start_controller(self) -> None:
        """Start slurmctld; again, where it was ended before."""
        self._spawn("slurmctld", "slurmctld", "-D", "-f", str(self.conf))

    def start_node(self, name: str) -> None:
        """Start the slurmd of one node."""
        self._spawn(name, "slurmd", "-D", "-f", str(self.conf), "-N", name)

    def end_controller(self) -> None:
        """End slurmctld as an administrator does: it saves what it knows first."""
        daemon = self._daemons.pop("slurmctld")
        daemon.terminate()
        daemon.wait()

    def kill(self, name: str) -> None:
        """Kill one daemon: `slurmctld` or the slurmd of a node."""
        daemon = self._daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def clear(self, name: str) -> None:
        """End what is left of jobs on a node: they outlive its slurmd."""
        for process in self.processes():
            with suppress(psutil.Error):
                if process.environ().get("SLURMD_NODENAME") == name:
                    process.kill()

    def stop(self) -> None:
        """End everything that was started, jobs first."""
        for name in ["slurmctld", *self.names, "munged"]:
            if name in self._daemons:
                self.kill(name)
        for process in self.processes():
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def processes(self) -> list[psutil.Process]:
        """What runs in this lab besides the daemons: steps and jobs."""
        found = []
        for process in psutil.process_iter():
            try:
                mine = process.environ().get("SLURM_CONF") == str(self.conf)
                if mine and process.pid != os.getpid():
                    found.append(process)
            except psutil.Error:
                continue
        return [each for each in found if each.pid not in self._pids()]

    def _pids(self) -> set[int]:
        return {daemon.pid for daemon in self._daemons.values()}

    def _spawn(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    # ---- asking ------------------------------------------------------------------------------

    def call(self, *command: str, check: bool = True) -> str:
        """A command of Slurm, as an administrator types it."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=180
        )
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def states(self) -> dict[str, str]:
        """Every node's state, as `sinfo` writes it."""
        lines = self.call("sinfo", "-h", "-N", "-o", "%N %T", check=False).split("\n")
        return dict(line.split() for line in lines if line)

    def quiet(self) -> None:
        """End all jobs and put all nodes in order again."""
        self.call("scancel", "--user", pwd.getpwuid(os.geteuid()).pw_name, check=False)
        names = ",".join(self.names)
        self._until(lambda: not self.call("squeue", "-h", check=False), "jobs did not end")
        self.call("scontrol", "update", f"NodeName={names}", "State=RESUME", check=False)
        self._until(lambda: set(self.states().values()) == {"idle"}, f"{self.states()}")

    def _until(self, fact: object, complaint: str) -> None:
        assert callable(fact)
        deadline = time.monotonic() + PATIENCE
        while not fact():
            if time.monotonic() > deadline:
                raise NoLab(f"Slurm's daemons do not work here: {complaint}{self._last_words()}")
            time.sleep(0.1)

    def _last_words(self) -> str:
        log = self.folder / "slurmctld.out"
        lines = log.read_text(errors="replace").strip().split("\n") if log.exists() else []
        return f" ({lines[-1]})" if lines else ""

    # ---- configuration -----------------------------------------------------------------------

    def _write(self) -> None:
        for name in ("munge", "state", "spool", "dev"):
            (self.folder / name).mkdir(mode=0o755)
        for name in self.names:
            (self.folder / "spool" / name).mkdir()
        key = self.folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        for number in range(self.shape.gpus):
            # A device of some kind is asked for; a link to one will do.
            (self.folder / "dev" / f"gpu{number}").symlink_to("/dev/null")
        devices = f"{self.folder}/dev/gpu[0-{self.shape.gpus - 1}]"
        (self.folder / "gres.conf").write_text(
            f"NodeName=n[1-{self.shape.nodes}] Name=gpu Type=v100 File={devices}\n"
        )
        # The plug-in that touches nothing; the others want systemd or newer versions.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self.conf.write_text("\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        shape, folder, user = self.shape, self.folder, pwd.getpwuid(os.geteuid()).pw_name
        ports = free_ports(shape.nodes + 1)
        host = socket.gethostname().partition(".")[0]
        yield CONFIGURATION.format(folder=folder, user=user, host=host, port=ports[0])
        for name, port in zip(self.names, ports[1:], strict=True):
            yield (
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
                f" CPUs={shape.cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={shape.cpus}"
                f" ThreadsPerCore=1 RealMemory={shape.memory} Gres=gpu:v100:{shape.gpus}"
                f" Feature=fast,lab State=UNKNOWN"
            )
        yield "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
        yield f"PartitionName=half Nodes=n[1-{max(shape.nodes // 2, 1)}] MaxTime=60 State=UP"
        yield shape.more
        yield ""


CONFIGURATION = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,default_queue_depth=1000,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
PriorityType=priority/basic
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
MinJobAge=7200
KillWait=2
MessageTimeout=5
SlurmctldTimeout=30
SlurmdTimeout=10
MaxJobCount=100000
"""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody has."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def absent(commands: Sequence[str] = NEEDED) -> list[str]:
    """What would have to be installed."""
    return [name for name in commands if shutil.which(name) is None]


@contextmanager
def slurm_lab(shape: Shape = FOUR) -> Iterator[SlurmLab]:
    """A lab that is there while the block runs; `NoLab` where it cannot be had."""
    if missing := absent():
        raise NoLab(f"Slurm is not installed: no {', '.join(missing)} (tests/real/prepare.py)")
    lab = SlurmLab(shape)
    try:
        lab.start()
        yield lab
    finally:
        lab.stop()
