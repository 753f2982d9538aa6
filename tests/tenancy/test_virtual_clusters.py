"""Virtual clusters in the simulator: as good as private ones, and nobody who borrows is lost."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from dovetail.core.protocols import Bound, Tenancy
from dovetail.core.scheduler import Scheduler
from dovetail.metrics.records import OUTCOMES
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.simulator.experiment import Replay, replay
from dovetail.simulator.spec import parse_cluster
from dovetail.tenancy.kinds import chosen, tenancy_of

TENANTS = """
[[tenants]]
name = "vision"
nodes = 2
gpus = [4]

[[tenants]]
name = "speech"
nodes = 1
gpus = [2, 1, 1]
"""
POLICIES = ["fifo", "fifo:skip=true", "sjf:backfill=easy", "srtf", "las:round=300", "tiresias"]


@pytest.fixture(autouse=True)
def every_step_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Scheduler.step

    def checked(self: Scheduler, *given: Any) -> Any:
        plan = step(self, *given)
        self.validate()
        return plan

    monkeypatch.setattr(Scheduler, "step", checked)


def workload(path: Path, seed: int, lent: float, jobs: int = 80, extra: str = "") -> str:
    """Random jobs of both tenants, some of them on what is lent."""
    draw = Random(seed)
    lines = ["job_id,submit_time,gpus,duration,tenant,priority,cpus,gpu_milli"]
    for number in range(jobs):
        tenant = draw.choice(["vision", "vision/users", "speech"])
        gpus = draw.choice([1, 1, 2, 4, 8, 16] if tenant != "speech" else [1, 1, 2, 4, 8])
        borrows = draw.random() < lent
        cpus = draw.choice(["", "", str(gpus)])
        milli = draw.choice(["", "500"]) if gpus == 1 else ""
        priority = -1 if borrows else 0
        at, work = draw.uniform(0, 4000), draw.expovariate(1 / 600) + 1
        lines.append(f"j{number},{at:.3f},{gpus},{work:.3f},{tenant},{priority},{cpus},{milli}")
    path.write_text("\n".join(lines) + "\n" + extra)
    return str(path)


def ends(
    tenancy: str, trace: str, policy: str, cluster: str = "4x8,cpus=32,mem=256", **more: Any
) -> dict[str, tuple[float, float]]:
    """When each job that is not on what is lent first started and ended."""
    run = replay(Replay(trace, cluster, policy, tenancy=tenancy, restart_cost=0, **more))
    records = run.records
    return {
        str(name): (records.first_start[index], records.end[index])
        for index, name in enumerate(records.name)
        if OUTCOMES[records.outcome[index]] == "finished"
    }


@pytest.fixture
def tenants(tmp_path: Path) -> str:
    path = tmp_path / "tenants.toml"
    path.write_text(TENANTS)
    return str(path)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_owners_fare_as_in_a_private_cluster(
    tmp_path: Path, tenants: str, policy: str, seed: int
) -> None:
    trace = workload(tmp_path / "jobs.csv", seed, lent=0.4)
    alone = ends(f"private:{tenants}", trace, policy)
    shared = ends(f"cells:{tenants}", trace, policy)
    assert len(alone) > 20
    assert {name: shared[name] for name in alone} == alone
    # And those who borrow are all served, too.
    assert len(shared) == 80


def test_who_borrows_is_stopped_for_owners_and_keeps_its_progress(
    tmp_path: Path, tenants: str
) -> None:
    trace = workload(tmp_path / "jobs.csv", 3, lent=0.5, jobs=120)
    run = replay(
        Replay(trace, "4x8,cpus=32,mem=256", "fifo", tenancy=f"cells:{tenants}", restart_cost=0)
    )
    records = run.records
    assert [OUTCOMES[outcome] for outcome in records.outcome] == ["finished"] * 120
    assert sum(records.preemptions) > 10, "nobody had to go: the test shows nothing"
    # Work was neither lost nor done twice: what each job held is its length.
    assert list(records.run_time) == pytest.approx(list(records.work))


def test_all_are_served_while_nodes_fail_and_stops_take_time(tmp_path: Path, tenants: str) -> None:
    trace = workload(tmp_path / "jobs.csv", 4, lent=0.4)
    for policy in ("fifo:skip=true", "srtf"):
        done = ends(
            f"cells:{tenants}",
            trace,
            policy,
            cluster="5x8,cpus=32,mem=256",
            faults="node_mtbf=3000,repair=400",
            stop_cost=7,
        )
        assert len(done) == 80


def test_amounts_by_need_inside_what_tenants_own(tmp_path: Path, tenants: str) -> None:
    draw = Random(5)
    lines = ["job_id,submit_time,gpus,duration,tenant,priority,model"]
    for number in range(60):
        tenant, priority = draw.choice(["vision", "speech"]), draw.choice([0, 0, -1])
        model = draw.choice(["resnet18", "gnmt", "transformer"])
        at, work = draw.uniform(0, 2000), draw.expovariate(1 / 400) + 1
        lines.append(
            f"j{number},{at:.1f},{draw.choice([1, 2, 4])},{work:.1f},{tenant},{priority},{model}"
        )
    trace = tmp_path / "jobs.csv"
    trace.write_text("\n".join(lines) + "\n")
    alone = ends(f"private:{tenants}", str(trace), "synergy:order=srtf")
    shared = ends(f"cells:{tenants}", str(trace), "synergy:order=srtf")
    assert len(shared) == 60
    assert {name: shared[name] for name in alone} == alone


def test_a_job_of_nobody_is_refused_with_a_name_that_is_meant(tmp_path: Path, tenants: str) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("job_id,submit_time,gpus,duration,tenant\na,0,1,5,visoin\nb,0,32,5,vision\n")
    run = replay(Replay(str(trace), "4x8", "fifo", tenancy=f"cells:{tenants}"))
    assert list(run.records.reason.values()) == [
        "no tenant is called 'visoin'; did you mean 'vision'?",
        "asks for 32 GPUs; the cluster has 20 GPUs (counting what vision owns)",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tenancy": "cels:x"}, "--tenancy cels:x: no such kind; did you mean 'cells'?"),
        ({"tenancy": "cells"}, "--tenancy cells: say whose cells, as in cells:tenants.toml"),
        (
            {"tenancy": "cells:x", "partition_by": "vc=x"},
            "--tenancy and --partition-by both say who owns what: give one of them",
        ),
        (
            {"tenancy": "cells:nowhere.toml"},
            "nowhere.toml: cannot be read (No such file or directory)",
        ),
    ],
)
def test_wrong_options_are_one_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(UserError) as error:
        replay(Replay("generate:tiresias480", "4x8", **given))  # type: ignore[arg-type]
    assert str(error.value) == said


def test_tenants_can_be_in_the_cluster_file_with_types_and_racks(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(
        '[[nodes]]\ncount = 4\ngpus = 8\ntype = "a100"\nrack = 2\n'
        '[[nodes]]\ncount = 2\ngpus = 6\ntype = "v100"\n'
        '[[tenants]]\nname = "a"\nown = [{type = "a100", racks = 1}, {type = "v100", gpus = [3]}]\n'
        '[[tenants]]\nname = "b"\ntype = "a100"\nnodes = 2\n'
    )
    trace = tmp_path / "jobs.csv"
    trace.write_text(
        "job_id,submit_time,gpus,duration,tenant,gpu_type\n"
        "r,0,16,5,a,a100\nn,0,16,5,b,a100\nv,0,3,5,a,v100\nw,1,3,5,a,v100\nx,0,6,5,a,v100\n"
    )
    run = replay(Replay(str(trace), str(path), "fifo:skip=true", tenancy="cells", restart_cost=0))
    records = run.records
    begun = dict(zip(records.name, records.first_start, strict=True))
    assert {name: begun[name] for name in "rnvw"} == {"r": 0, "n": 0, "v": 0, "w": 5}
    assert OUTCOMES[records.outcome[records.name.index("x")]] == "rejected"


PINNED = """
[[tenants]]
name = "vision"
nodes = 1
pinned = ["n3", "n2:4-7"]

[[tenants]]
name = "speech"
nodes = 1
gpus = [2, 1, 1]
"""


@pytest.mark.parametrize("policy", ["fifo:skip=true", "srtf"])
def test_who_pins_hardware_has_it_and_fares_as_in_a_private_cluster(
    tmp_path: Path, policy: str
) -> None:
    path = tmp_path / "tenants.toml"
    path.write_text(PINNED)
    trace = workload(tmp_path / "jobs.csv", 3, lent=0.4)
    alone = ends(f"private:{path}", trace, policy)
    shared = ends(f"cells:{path}", trace, policy)
    assert len(alone) > 20
    assert {name: shared[name] for name in alone} == alone


def test_pinned_hardware_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "tenants.toml"
    path.write_text(PINNED)
    tenancy = tenancy_of(chosen(f"cells:{path}"), parse_cluster("4x8"))
    domain = tenancy.domains.index("speech")
    view = tenancy.view(domain)
    found = {
        part.node
        for job, node in enumerate(view.nodes)
        for part in _bound(tenancy, domain, job, node.gpus).parts
    }
    assert found == {0, 2}, "a node of its own, and of the one that is pinned in part the rest"
    assert view.gpus == 12


def _bound(tenancy: Tenancy, domain: int, node: int, gpus: int) -> Allocation:
    part = Part(node, (1 << gpus) - 1, 0, 0)
    spec = JobSpec(node, f"j{node}", 0.0, gang(gpus), tenant="speech")
    bound = tenancy.bind(domain, allocation_of((part,)), spec)
    assert isinstance(bound, Bound), bound
    return bound.allocation


@pytest.mark.parametrize("policy", POLICIES)
def test_everybody_is_served_by_number(tmp_path: Path, tenants: str, policy: str) -> None:
    trace = workload(tmp_path / "jobs.csv", 6, lent=0)
    assert len(ends(f"shares:{tenants}", trace, policy)) == 80


def shares(tmp_path: Path, jobs: str, owners: str, cluster: str = "1x4") -> dict[str, Any]:
    """First start and end of jobs given as `name tenant gpus@submit+length`."""
    lines = ["job_id,submit_time,gpus,duration,tenant"]
    for job in jobs.split(","):
        name, tenant, rest = job.split()
        gpus, times = rest.split("@")
        submit, length = times.split("+")
        lines.append(f"{name},{submit},{gpus},{length},{tenant}")
    trace, path = tmp_path / "jobs.csv", tmp_path / "owners.toml"
    trace.write_text("\n".join(lines) + "\n")
    tables = [owner.split() for owner in owners.split(",")]
    path.write_text("".join(f'[[tenants]]\nname = "{n}"\ngpus = {g}\n' for n, g in tables))
    return ends(f"shares:{path}", str(trace), "fifo:skip=true", cluster=cluster)


def test_what_is_idle_is_borrowed_and_reclaimed(tmp_path: Path) -> None:
    # x borrows two of b's; b takes both back, and x goes on when they are idle again.
    found = shares(tmp_path, "w a 2@0+100,x a 2@0+10,y b 2@5+20", "a 2,b 2")
    assert found == {"w": (0, 100), "x": (0, 30), "y": (5, 25)}


def test_who_is_within_its_number_is_left_alone(tmp_path: Path) -> None:
    found = shares(tmp_path, "w a 2@0+10,y b 3@5+20", "a 2,b 2")
    assert found == {"w": (0, 10), "y": (10, 30)}


def test_numbers_of_a_group_hold_for_its_members_together(tmp_path: Path) -> None:
    # With x the org has its two, so y of another team only borrows, and gives way to z.
    jobs = "x org/a 2@0+50,y org/b 2@1+30,z c 2@10+20"
    found = shares(tmp_path, jobs, "c 2,org 2,org/a 2,org/b 2")
    assert found == {"x": (0, 50), "z": (10, 30), "y": (1, 51)}


def test_who_used_less_is_asked_first(tmp_path: Path) -> None:
    # Both want the one GPU that c leaves idle at 100, and b has used less until then.
    jobs = "l c 1@0+100,k c 1@0+300,u a 1@0+300,m b 1@50+300,v a 1@90+10,w b 1@90+10"
    found = shares(tmp_path, jobs, "c 2,a 1,b 1")
    assert found["w"] == (100, 110)
    assert found["v"] == (110, 120)


def test_numbers_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        shares(tmp_path, "x a 1@0+5", "a 3,b 2,b/c 2")
    assert str(error.value).endswith(": b asks for 2 GPUs; 1 is left after a (3)")


@pytest.mark.parametrize("policy", ["synergy", "synergy:order=srtf"])
def test_cpu_and_memory_are_shared_out_inside_a_tenant_as_in_a_private_cluster(
    tmp_path: Path, tenants: str, policy: str
) -> None:
    # Sensitive and insensitive models, of owners and of those who borrow around them.
    trace = Path(workload(tmp_path / "jobs.csv", 4, lent=0.4))
    head, *lines = trace.read_text().splitlines()
    models = [("res18", "gnmt", "m5", "transformer")[index % 4] for index in range(len(lines))]
    columns = head.removesuffix(",cpus,gpu_milli").split(",")
    rows = [line.split(",")[: len(columns)] for line in lines]
    trace.write_text(
        "\n".join(
            [
                ",".join([*columns, "model"]),
                *(",".join([*r, m]) for r, m in zip(rows, models, strict=True)),
            ]
        )
    )
    cluster = "4x8,cpus=24,mem=500"
    alone = ends(f"private:{tenants}", str(trace), policy, cluster)
    shared = ends(f"cells:{tenants}", str(trace), policy, cluster)
    assert len(alone) > 20 and len(shared) == 80
    assert {name: shared[name] for name in alone} == alone
