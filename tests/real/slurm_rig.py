"""The Slurm engine with small jobs, on a lab."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from executor_contract import Does, collect, small, until
from slurm_lab import SlurmLab

from dovetail.executors.protocol import Attempt, Ended, Launch, Running
from dovetail.executors.slurm import Options, Slurm

FIRST = Attempt(1, 1)
COUNT = """
import time, dovetail_client
for step in range(1000):
    dovetail_client.progress(step + 1, total=1000)
    time.sleep(0.05)
"""
COMMANDS = {
    Does.SUCCEEDS: ("true",),
    Does.FAILS: ("sh", "-c", "exit 3"),
    Does.WAITS: ("sleep", "600"),
    Does.INSISTS: ("sh", "-c", "trap '' TERM INT HUP; echo deaf; while :; do sleep 0.1; done"),
    Does.COUNTS: (sys.executable, "-c", COUNT),
}
#: asked more often than on a real cluster, so that tests are short
QUICK = Options(interval=0.2)


class SlurmRig:
    """An engine over a folder of its own."""

    def __init__(self, lab: SlurmLab, options: Options = QUICK) -> None:
        self.lab, self.options = lab, options
        self.data = lab.folder / f"data-{time.monotonic_ns()}"
        self.directory = lab.folder
        self.executor = Slurm(self.data, options)

    def reopen(self, options: Options | None = None) -> None:
        self.executor.close()
        self.executor = Slurm(self.data, options or self.options)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def launch(self, attempt: Attempt, does: Does) -> Launch:
        return self.command(*COMMANDS[does], attempt=attempt)

    def command(self, *words: str, attempt: Attempt = FIRST, **given: Any) -> Launch:
        given.setdefault("allocation", small())
        given.setdefault("directory", self.directory)
        return Launch(attempt, "../a name", words, **given)

    def start(self, *words: str, **given: Any) -> Launch:
        launch = self.command(*words, **given)
        self.executor.start(launch)
        return launch

    def running(self, *words: str, **given: Any) -> Launch:
        launch = self.start(*words, **given)
        until(self, Running)
        return launch

    def ended(self) -> Ended:
        return next(each for each in until(self, Ended) if isinstance(each, Ended))

    def run(self, *words: str, **given: Any) -> Ended:
        """Start it and wait for its end."""
        self.start(*words, **given)
        return self.ended()

    def true(self, fact: Callable[[], bool]) -> None:
        """Wait until it is so."""
        collect(self, lambda _: fact())

    def log(self, attempt: Attempt = FIRST) -> str:
        return (self.folder(attempt) / "log").read_text()

    def folder(self, attempt: Attempt = FIRST) -> Path:
        return self.data / "attempts" / f"{attempt.job}-{attempt.number}"

    def jobs(self) -> list[dict[str, str]]:
        """All jobs as Slurm has them, the latest last."""
        told = self.lab.call("scontrol", "show", "job", "--details", "--oneliner")
        lines = [line for line in told.splitlines() if line.startswith("JobId=")]
        return [dict(word.partition("=")[::2] for word in line.split()) for line in lines]

    def close(self) -> None:
        self.executor.close()
