"""Stands over one attempt: starts its command, keeps its output, writes down how it ended.

Run as a file of its own, with the standard library only, in a session of its own, so that neither
the end nor an upgrade of the controller touches it. It reads `launch.json` in the attempt's folder
and writes `begun` and `state.json` there. Descendants that lose their parents become its children;
the attempt is over when the command and all of them are gone. Signals are for the controller to
send.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import errno
import json
import os
import select
import signal
import stat
import sys
import time
from typing import Any, NoReturn

SUBREAPER, DEATH_SIGNAL = 36, 1
"""Numbers of prctl: inherit orphans; be told when the parent dies."""
CHUNK, ROUNDS = 65536, 64
"""Bytes read at once, and how often in a row: more than a pipe holds."""
NO, YES = b"no ", b"yes"
"""Has the command begun? As many bytes each: a full disk has room for the other word, too."""


def main(folder: str, claim: str) -> None:
    """Run the attempt whose folder this is, unless the claim is taken."""
    os.chdir(folder)
    known = _identity()
    if not _take(claim, known):
        return
    with open("launch.json") as file:
        launch: dict[str, Any] = json.load(file)
    _control(SUBREAPER, 1)
    state = State(known)
    begun = _unbegun()
    awake, alarm = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    reader, output = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(reader, False)
    command, complaint = _start(launch, output, begun)
    os.close(output)
    os.close(begun)
    log = Log(launch["log_bytes"], launch["log_files"], launch["owner"])
    if complaint:
        os.waitpid(command, 0)
        state.write(phase="ended", reason=complaint)
        return
    state.write(phase="running", group=command, group_started=_started(command))
    status = _watch(command, reader, awake, log)
    _end_descendants()
    log.drain(reader)
    how = {"signal": -status} if status < 0 else {"code": status}
    state.write(phase="ended", **how)


def _take(claim: str, known: dict[str, Any]) -> bool:
    """Is this attempt ours to start? A controller that gave us up has taken the claim instead."""
    name = f"claiming.{os.getpid()}"
    with open(name, "w", opener=_private) as file:
        json.dump(known, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        # Unlike a file that is made and then written, a link is there with all it says.
        os.link(name, claim)
    except FileExistsError:
        return False
    finally:
        os.unlink(name)
    return True


def _identity() -> dict[str, Any]:
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    return {"pid": os.getpid(), "started": _started(os.getpid()), "boot": boot}


def _unbegun() -> int:
    """Write down that the command has not begun, where its process will say that it does.

    What cannot be written down is not begun: whoever finds no word of it may begin it again.
    """
    begun = _private("begun", os.O_WRONLY | os.O_CREAT)
    os.write(begun, NO)
    os.fsync(begun)
    _fsync_folder()
    return begun


def _fsync_folder() -> None:
    here = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(here)
    os.close(here)


class State:
    """What others know of the attempt: a file that is replaced as a whole."""

    def __init__(self, known: dict[str, Any]) -> None:
        self._known = known

    def write(self, **news: Any) -> None:
        """Note what is new, where that is possible: a full disk does not end a job."""
        with contextlib.suppress(OSError):
            self._keep(**news)

    def _keep(self, **news: Any) -> None:
        """Note what is new, on the disk when this returns."""
        self._known |= news
        self._known[f"{news['phase']}_at"] = datetime.datetime.now(datetime.UTC).isoformat()
        with open("state.new", "w", opener=_private) as file:
            json.dump(self._known, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace("state.new", "state.json")
        _fsync_folder()


class Log:
    """Output in files of limited size: `log`, and before that `log.1` and so on."""

    def __init__(self, size: int, files: int, owner: list[int] | None) -> None:
        self._size, self._files, self._owner = max(size, 1), max(files, 1), owner
        self._open()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._file = os.open("log", flags, 0o600)
        except OSError:
            # A full disk costs output, not the job. After as much again there may be room.
            self._file = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        self._written = os.fstat(self._file).st_size
        if self._owner and os.geteuid() == 0 and stat.S_ISREG(os.fstat(self._file).st_mode):
            os.fchown(self._file, *self._owner)

    def drain(self, reader: int) -> bool:
        """Keep what can be read now; False: nobody will write any more."""
        # Not for ever: who writes without end must not keep us from seeing the command's end.
        for _ in range(ROUNDS):
            try:
                text = os.read(reader, CHUNK)
            except BlockingIOError:
                return True
            if not text:
                return False
            self._keep(text)
        return True

    def _keep(self, text: bytes) -> None:
        while text:
            if self._written >= self._size:
                self._rotate()
            part = text[: self._size - self._written]
            with contextlib.suppress(OSError):
                os.write(self._file, part)
            self._written += len(part)
            text = text[len(part) :]

    def _rotate(self) -> None:
        os.close(self._file)
        names = ["log", *(f"log.{number}" for number in range(1, self._files))]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            with contextlib.suppress(OSError):
                os.replace(newer, older)
        if self._files == 1:
            with contextlib.suppress(OSError):
                os.unlink("log")
        self._open()


def _start(launch: dict[str, Any], output: int, begun: int) -> tuple[int, str]:
    """Fork the command; its number, and why it could not be executed if it could not."""
    heard, said = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    command = os.fork()
    if command == 0:
        _become(launch, output, begun, said, parent)
    os.close(said)
    with open(heard, errors="replace") as file:
        return command, file.read()


def _become(launch: dict[str, Any], output: int, begun: int, said: int, parent: int) -> NoReturn:
    """In the new process: take on everything that was granted, then be the command."""
    words = launch["command"]
    try:
        os.setpgid(0, 0)
        for door in launch["doors"]:
            with open(door, "w") as file:
                file.write("0")
        if launch["cores"]:
            os.sched_setaffinity(0, launch["cores"])
        _redirect(output)
        _drop(launch["owner"], launch["groups"])
        _control(DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.umask(0o022)
        _check_reachable(launch["reachable"])
        _enter(launch["directory"])
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.pwrite(begun, YES, 0)
        os.fdatasync(begun)
        _execute(words, launch["environment"])
    except OSError as error:
        _say(said, f"{error.filename}: {error.strerror}")
    except Exception as error:
        _say(said, f"{words[0]}: {error}")
    os._exit(127)


def _execute(words: list[str], environment: dict[str, str]) -> NoReturn:
    try:
        os.execvpe(words[0], words, environment)
    except OSError as error:
        # Also where the interpreter that a script names is missing.
        absent = isinstance(error, FileNotFoundError) or not _exists(words[0], environment)
        why = "there is no such command" if absent else error.strerror
        raise OSError(error.errno, why, words[0]) from None


def _exists(word: str, environment: dict[str, str]) -> bool:
    """Was there something to execute? Folders that may not be looked into have nothing."""
    folders = os.get_exec_path(environment)
    return "/" in word or any(os.path.exists(os.path.join(each, word)) for each in folders)


def _redirect(output: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


def _drop(owner: list[int] | None, groups: list[int]) -> None:
    """Become the owner for good; only root can, and only root has to."""
    if owner and os.geteuid() == 0:
        os.setgroups(groups)
        os.setgid(owner[1])
        os.setuid(owner[0])


def _check_reachable(folder: str) -> None:
    """A job that cannot report would look as if it made no progress."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "its owner cannot reach this folder", folder)


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except FileNotFoundError as error:
        raise OSError(error.errno, "there is no such folder", directory) from None


def _say(said: int, text: str) -> None:
    os.write(said, f"could not start: {text}".encode(errors="replace"))


def _watch(command: int, reader: int, awake: int, log: Log) -> int:
    """Keep the output until the command ends; its exit code, or minus the signal."""
    poll = select.poll()
    poll.register(awake, select.POLLIN)
    poll.register(reader, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if reader in ready and not log.drain(reader):
            poll.unregister(reader)
        if awake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(awake, CHUNK)
        for pid, status in _reaped():
            if pid == command:
                return os.waitstatus_to_exitcode(status)


def _reaped() -> list[tuple[int, int]]:
    """Children that ended since the last call, ours and those we inherited."""
    found = []
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(ended)
    return found


def _end_descendants() -> None:
    """End what the command left behind; the orphans of those we end are our children next."""
    pause = 0.002
    while children := _children():
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 2, 1.0)
        _reaped()


def _children() -> list[int]:
    """Our children, ended ones that nobody asked about included."""
    mine = str(os.getpid())
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):
            if _stat(name)[1] == mine:
                found.append(int(name))
    return found


def _started(pid: int) -> int:
    """When a process began, in clock ticks after the boot."""
    try:
        return int(_stat(pid)[19])
    except OSError:
        return 0


def _stat(pid: int | str) -> list[str]:
    """What /proc says of a process, from its state on."""
    with open(f"/proc/{pid}/stat", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _control(option: int, value: int) -> None:
    """A call of prctl; where there is none, orphans are found by their session."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


if __name__ == "__main__":
    main(*sys.argv[1:])
    # All is written: the attempt is over when this process is gone, so do not tarry.
    os._exit(0)
