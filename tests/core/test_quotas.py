"""Quotas: what users and groups may hold at one time, under every kind of walk."""

from __future__ import annotations

from pathlib import Path

import pytest
from workbench import World, scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.model.errors import UserError
from dovetail.model.event import Finished, Submitted
from dovetail.model.plan import Reject, Start
from dovetail.model.quota import Limit, Quotas, read_quotas
from dovetail.model.request import Alternative, Group, Replica, Request, gang

KINDS = [
    "fifo",
    "fifo:skip=true",
    "fifo:backfill=easy",
    "fifo:backfill=conservative",
    "fifo:preempt=true",
    "fifo:skip=true,patience=50",
    "fifo:displace=lower",
    "fair-share",
]


def entered(decider: Scheduler, *users: str, gpus: int = 1, at: float = 0.0) -> list[int]:
    """Jobs of these users, submitted together; returns who started."""
    first = 1 + max(decider.jobs, default=-1)
    jobs = [
        spec(first + n, gpus, at, length=100 + n, user=user, tenant=f"lab/{user}")
        for n, user in enumerate(users)
    ]
    plan = decider.step(at, [Submitted(job) for job in jobs])
    decider.validate()
    return [action.job for action in plan.actions if isinstance(action, Start)]


@pytest.mark.parametrize("placement", ["best-fit", "consolidated"])
@pytest.mark.parametrize("policy", KINDS)
def test_a_job_over_its_quota_blocks_nobody(policy: str, placement: str) -> None:
    decider = scheduler("1x8", policy, placement, quotas="ann=2")
    assert sorted(entered(decider, "ann", "ann", "ann", "bob", "ann", "bob")) == [0, 1, 3, 5]


@pytest.mark.parametrize("policy", KINDS)
def test_it_starts_as_soon_as_the_quota_allows(policy: str) -> None:
    decider = scheduler("1x8", policy, quotas="ann=2")
    entered(decider, "ann", "ann", "ann", "bob")
    assert entered(decider, "bob", at=1.0) == [4]
    plan = decider.step(5.0, [Finished(1)])
    assert [action.job for action in plan.actions] == [2]


def test_a_lone_newcomer_is_held_to_its_quota_too() -> None:
    decider = scheduler("1x8", quotas="*=2")
    assert entered(decider, "ann", gpus=2) == [0]
    assert entered(decider, "ann", at=1.0) == []
    assert entered(decider, "bob", at=2.0) == [2]


def test_a_group_counts_all_its_members() -> None:
    decider = scheduler("1x8", quotas="group:lab=3,ann=2")
    assert entered(decider, "ann", "ann", "ann", "bob", "bob") == [0, 1, 3]
    assert decider.explain(4).text == (
        "needs 1 GPU; the quota of group lab is 3 GPUs at one time and 3 GPUs are in use"
    )


def test_the_group_of_a_path_is_no_mere_beginning_of_a_name() -> None:
    limits = read_quotas("group:lab=1,group:lab/team=2")
    assert limits is not None
    for tenant, names in (
        ("lab", ["group:lab"]),
        ("lab/team/x", ["group:lab", "group:lab/team"]),
        ("laboratory", []),
        ("", []),
    ):
        job = spec(0, tenant=tenant)
        assert [name for name, _ in limits.accounts(job)] == names


def test_shares_count_as_what_they_are() -> None:
    decider = scheduler("1x8", quotas="ann=1.5")
    jobs = [spec(n, request=gang(1, share=500), user="ann", length=50) for n in range(4)]
    plan = decider.step(0.0, [Submitted(job) for job in jobs])
    assert [action.job for action in plan.actions] == [0, 1, 2]


def test_cores_and_memory_may_be_limited_too() -> None:
    decider = scheduler("1x8,cpus=16,mem=32", quotas="ann=-/4/-,bob=-/-/8")
    assert entered(decider, "ann", "ann", "ann") == [0, 1]
    assert entered(decider, "bob", "bob", "bob", at=1.0) == [3, 4]
    assert decider.explain(2).text == (
        "needs 1 GPU; the quota of ann is 4 cores at one time and 4 cores are in use"
    )


def test_a_job_that_can_live_with_less_starts_with_what_the_quota_leaves() -> None:
    elastic = Request((Alternative((Group(4, Replica(), 1),)),))
    decider = scheduler("1x8", quotas="ann=3")
    decider.step(0.0, [Submitted(spec(0, request=elastic, user="ann", length=9))])
    assert decider.jobs[0].allocation is not None
    assert decider.jobs[0].allocation.gpus == 3


def test_a_job_that_exceeds_its_quota_alone_is_rejected_with_a_sentence() -> None:
    decider = scheduler("1x8", quotas="ann=4,*=1")
    plan = decider.step(0.0, [Submitted(spec(0, 5, user="ann")), Submitted(spec(1, 2, user="x"))])
    assert plan.actions == (
        Reject(0, "asks for 5 GPUs; the quota of ann is 4 GPUs at one time"),
        Reject(1, "asks for 2 GPUs; the quota of x is 1 GPUs at one time"),
    )


def test_explain_names_the_quota_and_whose_end_would_do() -> None:
    decider = scheduler("1x8", quotas="ann=3")
    entered(decider, "ann", "ann", "bob", "ann")
    decider.step(1.0, [Submitted(spec(9, 2, 1.0, user="ann"))])
    reason = decider.explain(9)
    assert reason.cause == "quota"
    assert reason.blockers == (0, 1)
    assert reason.unblock == "the end of j0 and j1"


def test_what_is_within_the_quota_waits_for_devices() -> None:
    decider = scheduler("1x2", quotas="ann=2")
    entered(decider, "bob", "bob", "ann")
    assert decider.explain(2).cause == "devices"


def test_a_changed_quota_counts_from_the_next_decision_on() -> None:
    decider = scheduler("1x8", quotas="ann=4")
    entered(decider, "ann", "ann", "ann", "ann", "ann", "bob")
    tighter, wider = scheduler("1x8", quotas="ann=2"), scheduler("1x8", quotas="ann=5")
    tighter.restore(decider.snapshot(), anew=True)
    wider.restore(decider.snapshot(), anew=True)
    assert [action.job for action in wider.step(1.0, []).actions] == [4]
    assert tighter.step(1.0, []).actions == ()
    assert tighter.step(2.0, [Finished(0), Finished(1)]).actions == ()
    assert [action.job for action in tighter.step(3.0, [Finished(2)]).actions] == [4]


def test_a_job_that_a_new_quota_would_reject_waits_and_says_why() -> None:
    decider = scheduler("1x4", quotas="ann=4")
    entered(decider, "bob", gpus=4)
    entered(decider, "ann", gpus=3, at=1.0)
    tighter = scheduler("1x4", quotas="ann=2")
    tighter.restore(decider.snapshot(), anew=True)
    tighter.step(2.0, [Finished(0)])
    reason = tighter.explain(1)
    assert (reason.cause, reason.unblock) == ("quota", "a larger quota")


def test_partitions_count_each_their_own() -> None:
    decider = scheduler("2x4", partitions={"lab/ann": 1, "lab/bob": 1}, quotas="*=2")
    assert entered(decider, "ann", "ann", "ann", "bob", "bob") == [0, 1, 3, 4]


def test_a_quota_of_zero_keeps_a_user_out() -> None:
    decider = scheduler("1x4", quotas="*=0,ann=4")
    assert entered(decider, "ann") == [0]
    plan = decider.step(1.0, [Submitted(spec(7, user="eve"))])
    assert isinstance(plan.actions[0], Reject)


def test_a_victim_frees_its_quota_for_others_of_its_owner() -> None:
    # Job 2 needs the place of job 0, whose owner may then have job 1 run elsewhere.
    decider = scheduler("1x2+1x1", "priority:skip=true,displace=lower", quotas="ann=2")
    decider.step(0.0, [Submitted(spec(0, 2, user="ann", length=90))])
    decider.step(1.0, [Submitted(spec(1, 1, 1.0, user="ann", length=50))])
    plan = decider.step(2.0, [Submitted(spec(2, 2, 2.0, user="bob", priority=1.0))])
    assert {action.job for action in plan.actions if isinstance(action, Start)} == {1, 2}


# ---- as people write them ----------------------------------------------------------------------


def test_quotas_are_read_as_they_are_written() -> None:
    text = "alice=4,group:lab=8/64/512,*=0.5,bob=-/8/-"
    quotas = read_quotas(text)
    assert quotas is not None
    assert quotas.limits == {
        "alice": Limit(4000),
        "group:lab": Limit(8000, 64_000, 512 * 1024),
        "*": Limit(500),
        "bob": Limit(None, 8000, None),
    }
    assert str(quotas) == text
    assert read_quotas(str(quotas)) == quotas
    assert read_quotas(None) is read_quotas(" ") is None


def test_quotas_may_be_a_table(tmp_path: Path) -> None:
    path = tmp_path / "box.toml"
    path.write_text('[quotas]\nalice = 4\n"group:lab" = {gpus = 8, cpus = 64}\n"*" = 2\n')
    limits = {"alice": Limit(4000), "group:lab": Limit(8000, 64_000), "*": Limit(2000)}
    assert read_quotas(str(path)) == Quotas(limits)


@pytest.mark.parametrize(
    "text", ["alice", "=4", "alice=4,alice=5", "alice=-1", "alice=4/5", "alice=x", "alice=nan"]
)
def test_a_wrong_quota_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match="quotas"):
        read_quotas(text)


@pytest.mark.parametrize(
    "content", ["", "quotas = 3", "[quotas]\na = true", "[quotas]\na = {gpu = 1}", "[", "\0"]
)
def test_a_wrong_table_is_refused_in_one_sentence(content: str, tmp_path: Path) -> None:
    path = tmp_path / "box.toml"
    path.write_text(content)
    with pytest.raises(UserError):
        read_quotas(str(path))
    with pytest.raises(UserError, match="cannot be read"):
        read_quotas(str(tmp_path / "none.toml"))


def test_all_jobs_of_a_user_come_through_a_narrow_quota_one_by_one() -> None:
    jobs = [spec(n, 1, length=10, user="ann") for n in range(5)]
    world = World(scheduler("1x4", quotas="ann=1"), jobs)
    assert [instant.now for instant in world.instants() if instant.started] == [0, 10, 20, 30, 40]
