"""The local engine with small jobs, under each kind of fence this machine can set."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from executor_contract import PATIENCE, Does, collect, small, until
from remains import remains

from dovetail.executors.local import Local, detect
from dovetail.executors.local.cgroup_v1 import Legacy
from dovetail.executors.local.cgroup_v2 import Unified
from dovetail.executors.local.executor import branch
from dovetail.executors.local.fences import Fences, find
from dovetail.executors.local.folders import folder_of
from dovetail.executors.protocol import Attempt, Ended, Launch, Running

FIRST = Attempt(1, 1)
PYTHON = sys.executable
COUNT = """
import time, dovetail_client
for step in range(1000):
    dovetail_client.progress(step + 1, total=1000)
    time.sleep(0.05)
"""
LOOP = "while :; do sleep 0.1; done"
INSIST = f"trap '' TERM INT HUP; ({LOOP}) & echo deaf; {LOOP}"
COMMANDS = {
    Does.SUCCEEDS: ("true",),
    Does.FAILS: ("sh", "-c", "exit 3"),
    Does.WAITS: ("sleep", "600"),
    Does.INSISTS: ("sh", "-c", INSIST),
    Does.COUNTS: (PYTHON, "-c", COUNT),
}
KINDS: dict[str, Callable[[str], Fences]] = {
    "best": find,
    "v1": lambda name: Fences([able(Legacy(name))]),
    "v2": lambda name: Fences([able(Unified(name))]),
    "none": lambda name: Fences(),
}


def able(mechanism: Any) -> Any:
    """It, or a test that is skipped."""
    if not mechanism.abilities:
        pytest.skip(f"{mechanism.name} may not be written here")
    return mechanism


class LocalRig:
    """An engine over a folder of its own, with two virtual GPUs."""

    def __init__(self, data: Path, kind: str) -> None:
        self.data, self._kind = data, kind
        self.directory = data.parent
        self._launched: dict[Attempt, Launch] = {}
        self.reopen()

    def reopen(self) -> None:
        fences = KINDS[self._kind](branch(self.data))
        self.executor = Local(self.data, detect(virtual=2), fences)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def launch(self, attempt: Attempt, does: Does) -> Launch:
        return self.command(*COMMANDS[does], attempt=attempt)

    def command(self, *words: str, attempt: Attempt = FIRST, **given: Any) -> Launch:
        given.setdefault("allocation", small())
        launch = Launch(attempt, "../a name", words, directory=self.directory, **given)
        self._launched[attempt] = launch
        return launch

    def start(self, *words: str, **given: Any) -> Launch:
        launch = self.command(*words, **given)
        self.executor.start(launch)
        return launch

    def running(self, *words: str, **given: Any) -> Launch:
        launch = self.start(*words, **given)
        until(self, Running)
        return launch

    def run(self, *words: str, **given: Any) -> Ended:
        """Start it and wait for its end."""
        self.start(*words, **given)
        return self.ended()

    def ended(self) -> Ended:
        return next(each for each in until(self, Ended) if isinstance(each, Ended))

    def python(self, text: str, **given: Any) -> Launch:
        return self.running(PYTHON, "-c", text, **given)

    def folder(self, attempt: Attempt = FIRST) -> Path:
        return folder_of(self.data, attempt).path

    def log(self, attempt: Attempt = FIRST) -> str:
        return (self.folder(attempt) / "log").read_text()

    def said(self, text: str) -> None:
        """Wait until the job has written this."""
        self.true(lambda: (self.folder() / "log").exists() and text in self.log())

    def true(self, fact: Callable[[], bool]) -> None:
        """Wait until it is so."""
        collect(self, lambda _: fact())

    def members(self, attempt: Attempt = FIRST) -> list[int]:
        return self.executor.fences.members(self.folder(attempt).name)

    def close(self) -> None:
        """End everything, and see that nothing is left: no process, no control group."""
        for attempt, launch in self._launched.items():
            self.executor.adopt(launch)
            self.executor.stop(attempt, 0.0)
        deadline = time.monotonic() + PATIENCE
        while self.executor._runs or self.executor._leftovers:
            assert time.monotonic() < deadline, "a job could not be ended"
            self.executor.reports()
            time.sleep(0.01)
        # One whose start was cut short may only now find out.
        while found := remains(self.data):
            assert time.monotonic() < deadline, found
            time.sleep(0.01)
        assert groups(branch(self.data)) == []


def groups(name: str) -> list[str]:
    """Control groups of this name. Others come and go while we look, which `walk` does not mind."""
    return [at for at, _, _ in os.walk("/sys/fs/cgroup") if Path(at).name == name]


@contextmanager
def local_rig(folder: Path, kind: str) -> Iterator[LocalRig]:
    rig = LocalRig(folder / "data", kind)
    try:
        yield rig
    finally:
        rig.close()
