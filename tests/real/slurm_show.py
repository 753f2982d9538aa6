"""One workload on a lab: under a controller in a process of its own, or under Slurm alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from slurm_lab import SlurmLab
from slurm_workload import COUNT, Task, write
from sqlalchemy import select

from dovetail.controller import schema
from dovetail.controller.store import Store
from dovetail.core import codec
from dovetail.model.allocation import Allocation

HERE = Path(__file__).parent
LIMIT = 600.0


class Show:
    """One workload under one policy."""

    def __init__(self, lab: SlurmLab, policy: str, tasks: list[Task], interval: float) -> None:
        self.lab, self.policy, self.tasks, self.interval = lab, policy, tasks, interval
        self.folder = lab.folder / f"show-{time.monotonic_ns()}"
        self.states = self.folder / "states"
        self.states.mkdir(parents=True)
        write(tasks, self.folder / "tasks.json")

    def process(self) -> subprocess.Popen[bytes]:
        words = [HERE / "slurm_controller.py", self.folder, self.policy, self.interval]
        with (self.folder / "controller.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *map(str, words)],
                env=self.lab.environment,
                stdout=log,
                stderr=log,
            )

    def run(self, kills: int = 0) -> float:
        """Until all jobs have ended; returns the seconds it took."""
        rng, begun = Random(3), time.monotonic()
        for _ in range(kills):
            self._live(rng.randint(1, len(self.tasks) // (2 * kills)), rng.uniform(0.0, 1.0))
        process = self.process()
        try:
            assert process.wait(LIMIT) == 0, self.log()
        finally:
            process.kill()
        return time.monotonic() - begun

    def _live(self, jobs: int, moment: float) -> None:
        """A controller that is killed a moment after so many more jobs have begun."""
        process = self.process()
        try:
            enough = self._seen() + jobs
            deadline = time.monotonic() + LIMIT
            while self._seen() < enough:
                assert process.poll() is None, self.log()
                assert time.monotonic() < deadline, "no job begins"
                time.sleep(0.02)
            time.sleep(moment)
        finally:
            process.kill()
            process.wait()

    def _seen(self) -> int:
        return sum(1 for _ in self.states.glob("*.began"))

    def log(self) -> str:
        return (self.folder / "controller.log").read_text()[-2000:]

    def rows(self, table: Any) -> list[Any]:
        store = Store(f"sqlite:///{self.folder / 'dovetail.db'}")
        try:
            return list(store.rows(select(table)))
        finally:
            store.close()

    def attempts(self) -> list[dict[str, Any]]:
        rows = [dict(row) for row in self.rows(schema.attempts)]
        for row in rows:
            plain = json.loads(row["launch"])["allocation"]
            row["allocation"] = codec.from_plain(Allocation, plain)
        return rows

    def completion_times(self) -> list[float]:
        """Seconds from submission to the job's last line."""
        submitted = {row["id"]: row["submitted"] for row in self.rows(schema.jobs)}
        return [self.ended(number) - at for number, at in sorted(submitted.items())]

    def ended(self, number: int) -> float:
        return (self.states / f"{number}.done").stat().st_mtime

    def run_by_slurm(self) -> list[float]:
        """The same jobs submitted to Slurm as users do; returns their completion times."""
        begun, submitted = time.monotonic(), []
        for number, task in enumerate(self.tasks, 1):
            time.sleep(max(0.0, begun + task.at - time.monotonic()))
            submitted.append(time.time())  # noqa: TID251
            self._sbatch(number, task)
        deadline = time.monotonic() + LIMIT
        while self.lab.call("squeue", "-h", check=False):
            assert time.monotonic() < deadline, "Slurm did not end them"
            time.sleep(0.2)
        return [self.ended(number) - at for number, at in enumerate(submitted, 1)]

    def _sbatch(self, number: int, task: Task) -> None:
        own = {"STATE": str(self.states / str(number)), "STEPS": str(task.steps)}
        gang = [f"--ntasks={task.gpus}", "--gpus-per-task=1", "--cpus-per-task=3"]
        subprocess.run(
            ["sbatch", *gang, "--mem-per-gpu=32768", "--time=1", "--output=/dev/null"],
            input=f"#!/bin/sh\n{COUNT}",
            env={**self.lab.environment, **own, "DOVETAIL_ATTEMPT": "1"},
            text=True,
            check=True,
            capture_output=True,
        )
