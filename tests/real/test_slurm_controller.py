"""A controller over a real Slurm of 8 nodes: 200 jobs, killed five times, nothing lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from slurm_lab import NoLab, Shape, SlurmLab, slurm_lab
from slurm_workload import (
    Task,
    assert_nothing_over_committed,
    assert_placed_as_planned,
    assert_ran_once,
    workload,
    write,
)
from sqlalchemy import select

from dovetail.controller import schema
from dovetail.controller.store import Store
from dovetail.core import codec
from dovetail.executors.slurm.commands import CommandLine
from dovetail.executors.slurm.options import Options
from dovetail.executors.slurm.site import Site, survey
from dovetail.model.allocation import Allocation

pytestmark = pytest.mark.real

HERE = Path(__file__).parent
KILLS = 5
LIMIT = 600.0


@pytest.fixture(scope="module")
def large() -> Iterator[SlurmLab]:
    """Eight nodes of four GPUs."""
    try:
        with slurm_lab(Shape(nodes=8, gpus=4, cpus=12, memory=131072)) as lab:
            yield lab
    except NoLab as reason:
        pytest.skip(str(reason))


class Show:
    """One workload under one policy."""

    def __init__(self, lab: SlurmLab, policy: str, tasks: list[Task], interval: float) -> None:
        self.lab, self.policy, self.tasks, self.interval = lab, policy, tasks, interval
        self.folder = lab.folder / f"show-{time.monotonic_ns()}"
        (self.folder / "states").mkdir(parents=True)
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
            process = self.process()
            time.sleep(rng.uniform(3.0, 9.0))
            assert process.poll() is None, self.log()
            process.kill()
            process.wait()
        process = self.process()
        try:
            assert process.wait(LIMIT) == 0, self.log()
        finally:
            process.kill()
        return time.monotonic() - begun

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


def seen(lab: SlurmLab, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("SLURM_CONF", str(lab.conf))
    return survey(CommandLine(), Options())


@pytest.mark.parametrize("policy", ["fifo", "las:thresholds=8/32", "synergy"])
def test_all_jobs_end_once_where_they_were_planned_though_the_controller_is_killed(
    large: SlurmLab, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = seen(large, monkeypatch)
    before = {job.id for job in site.questions.jobs()}
    show = Show(large, policy, workload(200), 0.5)
    took = show.run(KILLS)
    states = {row["state"] for row in show.rows(schema.jobs)}
    assert states == {"done"}, show.log()
    assert len(show.rows(schema.jobs)) == 200
    assert_ran_once(show.folder / "states", show.tasks)
    records = [job for job in site.questions.jobs() if job.id not in before]
    attempts = show.attempts()
    compared = assert_placed_as_planned(attempts, records, site)
    most = assert_nothing_over_committed(records, site)
    assert compared >= 200
    assert most <= 32
    print(f"\n{policy}: {took:.0f} s, {len(attempts)} attempts, {compared} placements as planned,")
    print(f"  at most {most} of 32 GPUs in use, calls of the last controller", end=" ")
    print((show.folder / "calls").read_text())
