"""A controller over a real Slurm of 8 nodes: 200 jobs, killed five times, nothing lost."""

from __future__ import annotations

import pytest
from slurm_lab import SlurmLab
from slurm_show import Show
from slurm_workload import (
    assert_nothing_over_committed,
    assert_placed_as_planned,
    assert_ran_once,
    workload,
)

from dovetail.controller import schema
from dovetail.executors.slurm.commands import CommandLine
from dovetail.executors.slurm.options import Options
from dovetail.executors.slurm.site import Site, survey

pytestmark = pytest.mark.real

KILLS = 5


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
    ends = {(row["state"], row["reason"]) for row in show.rows(schema.jobs)}
    assert ends == {("done", "")}, f"{ends}\n{show.log()}"
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
