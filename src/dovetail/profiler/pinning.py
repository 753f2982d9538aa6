"""A command on some of this machine's cores: started there, watched, and ended with its children.

Linux only. What is started gets a session of its own, so that ending it ends nothing else.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import psutil

from dovetail.model.errors import UserError

GRACE = 5.0
"""Seconds between asking a command to end and ending it."""

THREADS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS")
"""Libraries that start one thread a core unless <NAME>_NUM_THREADS says otherwise."""


def available_cores() -> list[int]:
    """The cores this process may use."""
    return sorted(os.sched_getaffinity(0))


def check_cores(cores: int) -> None:
    """Refuse what this machine does not have."""
    there = len(available_cores())
    if not 1 <= cores <= there:
        raise UserError(f"{cores} cores asked for, and this process may use 1 to {there}")


@contextmanager
def pinned(
    command: Sequence[str], cores: int, folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """The command running on that many cores, its output in `folder`; ended on the way out."""
    chosen = available_cores()[:cores]
    given = [word.replace("{cores}", str(cores)) for word in command]
    process = _start(given, chosen, folder, {**_surroundings(cores, folder), **environment})
    try:
        yield process
    finally:
        _end(process)


def family(process: int) -> list[psutil.Process]:
    """A process and all below it, as far as they still run."""
    try:
        top = psutil.Process(process)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _start(
    command: list[str], cores: list[int], folder: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    before = os.sched_getaffinity(0)
    with (folder / "output").open("wb") as output:
        # A child inherits the cores of the thread that starts it. Changing them between fork and
        # exec would do the same, but is not safe while other threads hold locks.
        os.sched_setaffinity(0, cores)
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            # Folders of the path that may not be looked into have nothing.
            there = "/" in command[0] or which(command[0], os.F_OK, environment.get("PATH"))
            if isinstance(error, FileNotFoundError) or not there:
                raise UserError(f"{command[0]}: there is no such command") from None
            raise UserError(f"{command[0]}: cannot be run ({error.strerror})") from None
        finally:
            os.sched_setaffinity(0, before)


def _surroundings(cores: int, folder: Path) -> dict[str, str]:
    """Our environment, the threads that fit the cores, and the client on Python's path."""
    threads = {f"{library}_NUM_THREADS": str(cores) for library in THREADS}
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join(filter(None, (known, _client(folder))))
    return {**os.environ, **threads, "DOVETAIL_CORES": str(cores), "PYTHONPATH": path}


def _client(folder: Path) -> str:
    """A folder with the client in it and nothing else: our other packages are not the job's."""
    found = find_spec("dovetail_client")
    if found is None or found.origin is None:
        return ""
    alone = folder / "client"
    alone.mkdir()
    (alone / "dovetail_client").symlink_to(Path(found.origin).parent)
    return str(alone)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what was started: its session, and children that left it."""
    below = family(process.pid)
    _signal(process.pid, signal.SIGTERM)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        _signal(process.pid, signal.SIGKILL)
        process.wait()
    _signal(process.pid, signal.SIGKILL)
    for each in below:
        with suppress(psutil.NoSuchProcess):
            each.kill()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
