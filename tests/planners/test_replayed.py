"""Joint allocators through whole replays, and what executors and others may do meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from sensitive_world import job, tuned

from dovetail.core.scheduler import Scheduler
from dovetail.metrics.summary import summarise
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.event import Freed, Held, Started, Submitted
from dovetail.model.plan import Change
from dovetail.simulator.experiment import Replay, replay

TRACE = "generate:synergy,rate=40,jobs=40,seed=4,sizes=mix,split=50/30/20"
CLUSTER = "4x8,cpus=24,mem=500"


SETTINGS: list[dict[str, object]] = [
    {"policy": "srtf", "stop_cost": 20.0},
    {"policy": "srtf", "faults": "node_mtbf=360000,repair=3600"},
    {"policy": "fifo:skip=true", "span_penalty": 0.3},
    {"policy": "tiresias"},
    {"policy": "easy", "predictor": "noisy"},
]
CASES = [(each, allocator) for each in SETTINGS for allocator in ("greedy", "tune")]
CASES += [(SETTINGS[0], "optimal"), (SETTINGS[2], "optimal")]


@pytest.mark.parametrize(("settings", "allocator"), CASES, ids=str)
def test_a_replay_ends_with_everybody_done(
    settings: dict[str, object], allocator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Scheduler.step

    def checked(self: Scheduler, *given: object) -> object:
        plan = step(self, *given)  # type: ignore[arg-type]
        self.validate()
        return plan

    monkeypatch.setattr(Scheduler, "step", checked)
    found = summarise(replay(Replay(TRACE, CLUSTER, allocator=allocator, **settings)))  # type: ignore[arg-type]
    assert found["jobs"]["finished"] == 40


def test_a_replay_with_partitions_ends_with_everybody_done(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("user,nodes\nann,1\nbob,2\n")
    rows = [
        f"{number},{60 * number},{1 + number % 4},{3000 + 100 * number},{model},{user}"
        for number, (model, user) in enumerate(
            [("alexnet", "ann"), ("gnmt", "bob"), ("m5", "bob"), ("res18", "ann")] * 6
        )
    ]
    trace = tmp_path / "jobs.csv"
    trace.write_text("\n".join(["job_id,submit_time,gpus,duration,model,user", *rows]) + "\n")
    settings = Replay(
        str(trace),
        "3x8,cpus=24,mem=500",
        "srtf",
        allocator="tune",
        partition_by=f"user={tmp_path / 'sizes.csv'}",
    )
    assert summarise(replay(settings))["jobs"]["finished"] == 24


# ---- executors and others ----------------------------------------------------------------------


def test_a_start_confirmed_with_amounts_of_before_does_not_bring_them_back() -> None:
    decider = tuned("1x8,cpus=24,mem=500", acknowledged=True)
    decider.step(0.0, [Submitted(job(0, model="res18", length=100))])
    before = decider.jobs[0].allocation
    decider.step(1.0, [Submitted(job(number, model="res18", length=100)) for number in range(1, 8)])
    after = decider.jobs[0].allocation
    assert before is not None
    assert after is not None
    assert after.cpu < before.cpu
    decider.step(2.0, [Started(0, before)])
    assert decider.jobs[0].allocation == after
    decider.validate()


def foreign(cores: int, memory: int, devices: int = 0) -> Held:
    return Held("slurm", allocation_of((Part(0, devices, 1000 * cores, memory),)))


@pytest.mark.parametrize("allocator", ["tune", "optimal"])
def test_others_may_hold_a_free_gpu_with_its_share_although_claims_have_all_cores(
    allocator: str,
) -> None:
    decider = tuned("1x8,cpus=24,mem=500", allocator=allocator)
    decider.step(0.0, [Submitted(job(number, model="res18", length=100)) for number in range(4)])
    assert decider.cluster.cpu[0] == 0
    plan = decider.step(1.0, [foreign(3, 64_000, 0b1000_0000)])
    assert plan.actions
    assert all(isinstance(action, Change) for action in plan.actions)
    assert decider.cluster.cpu[0] >= 0
    decider.validate()
    before = [decider.jobs[number].rate for number in range(4)]
    decider.step(2.0, [Freed("slurm")])
    assert sum(decider.jobs[number].rate for number in range(4)) > sum(before)


@pytest.mark.parametrize("acknowledged", [False, True])
@pytest.mark.parametrize("allocator", ["tune", "optimal"])
def test_others_may_hold_more_than_claims_can_give_back(allocator: str, acknowledged: bool) -> None:
    decider = tuned("1x8,cpus=24,mem=500", allocator=allocator, acknowledged=acknowledged)
    decider.step(0.0, [Submitted(job(number, model="res18", length=100)) for number in range(4)])
    decider.step(1.0, [foreign(24, 0), Submitted(job(4, at=1.0, model="res18", length=100))])
    decider.validate()
    assert all(decider.jobs[number].allocation is not None for number in range(4))
    assert decider.jobs[4].allocation is None
    assert decider.explain(4).cause == "others"
    decider.step(2.0, [Freed("slurm")])
    decider.validate()
    assert decider.jobs[4].allocation is not None


def test_what_others_hold_in_partitions_is_taken_from_claims_too() -> None:
    decider = tuned("2x8,cpus=24,mem=500", partitions={"red": 1, "blue": 1})
    jobs = [job(number, model="res18", length=100, tenant="red") for number in range(4)]
    decider.step(0.0, [Submitted(each) for each in jobs])
    for cores in (3, 30):
        decider.step(float(cores), [foreign(cores, 1000)])
        decider.validate()
    assert all(decider.jobs[number].allocation is not None for number in range(4))
    decider.step(40.0, [Freed("slurm")])
    assert decider.cluster.cpu[0] >= 0
