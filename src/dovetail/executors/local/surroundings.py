"""The environment a job finds: its devices, its threads, the files it reports through.

Nothing of the controller's own environment is handed on but the search path, since it may hold
secrets. What the user set is kept, except for what tells a job which devices are its own.
"""

from __future__ import annotations

import os
import pwd
from importlib.util import find_spec
from pathlib import Path

from dovetail.executors.local.folders import Folder
from dovetail.executors.local.machine import Machine
from dovetail.executors.protocol import Launch
from dovetail.profiler.pinning import THREADS


def surroundings(launch: Launch, machine: Machine, folder: Folder, client: str) -> dict[str, str]:
    """All variables of an attempt on this machine."""
    return common(launch, folder, client, launch.allocation.cpu) | _devices(launch, machine)


def common(launch: Launch, folder: Folder, client: str, cpu: int) -> dict[str, str]:
    """All but the devices, whoever gives these out; `cpu` is what its processes share on a node."""
    given = {**_usual(launch.owner), **_threads(cpu), **launch.environment}
    path = os.pathsep.join(filter(None, (given.get("PYTHONPATH"), client)))
    return {
        **given,
        "PYTHONPATH": path,
        "DOVETAIL_JOB": str(launch.attempt.job),
        "DOVETAIL_ATTEMPT": str(launch.attempt.number),
        "DOVETAIL_JOB_DIR": str(folder.kept),
        "DOVETAIL_PROGRESS": str(folder.progress),
        "DOVETAIL_CHECKPOINT": str(folder.checkpoint),
    }


def client_folder(data: Path) -> str:
    """A folder with a copy of the client and nothing else: our other packages are not the job's.

    A copy, since not every owner of a job may read the place we are installed in.
    """
    found = find_spec("dovetail_client")
    if found is None or found.origin is None:
        return ""
    target = data / "client" / "dovetail_client"
    target.mkdir(parents=True, exist_ok=True)
    for source in Path(found.origin).parent.glob("*.py"):
        fresh = target / f"{source.name}.{os.getpid()}"
        fresh.write_bytes(source.read_bytes())
        fresh.chmod(0o644)
        # Jobs that import it at this moment find the old or the new, never a part.
        fresh.replace(target / source.name)
    for folder in (target, target.parent):
        folder.chmod(0o755)
    return str(target.parent)


def _usual(owner: tuple[int, int] | None) -> dict[str, str]:
    usual = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    try:
        account = pwd.getpwuid(os.geteuid() if owner is None else owner[0])
    except KeyError:
        return usual
    return {**usual, "HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name}


def _threads(cpu: int) -> dict[str, str]:
    """As many threads as whole cores, at least one; not said where cores are not limited."""
    if not cpu:
        return {}
    return {f"{library}_NUM_THREADS": str(max(cpu // 1000, 1)) for library in THREADS}


def _devices(launch: Launch, machine: Machine) -> dict[str, str]:
    mask = 0
    for part in launch.allocation.parts:
        mask |= part.devices
    numbers = ",".join(map(str, machine.numbers(mask)))
    if machine.gpus:
        return {"CUDA_VISIBLE_DEVICES": numbers, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return {"CUDA_VISIBLE_DEVICES": "", "DOVETAIL_VIRTUAL_GPUS": numbers}
