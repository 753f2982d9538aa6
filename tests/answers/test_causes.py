"""Eighty situations, and the one cause that `why` must name in each.

A row is: policy, cluster, what was submitted in order, what else happened, the cause of the last
job, and after `<` the jobs in the way. A job is `GPUs`, `GPUs/cores`, `GPUs/cores/GiB`, then `~`
for one that cannot resume, `@user`, `&tenant`, `!priority`, `^type`, `#seconds` it is thought to
take.
"""

from __future__ import annotations

import re

import pytest

from dovetail.controller.parts import Parts, composer
from dovetail.core.scheduler import Scheduler
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.costs import Costs
from dovetail.model.event import (
    Event,
    Finished,
    Held,
    NodeDown,
    NodeDraining,
    Submitted,
    Wake,
    Withheld,
)
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from dovetail.tenancy.contracts import Contract, Holding
from dovetail.tenancy.kinds import Tenants

BOX = "1x4,cpus=16,mem=64"
TWO = "2x4,cpus=16,mem=64"
MIX = "1x4,cpus=16,mem=64,type=a+1x4,cpus=16,mem=64,type=b"

ROWS = """
fifo                          | BOX | 4 1               |              | devices
fifo:skip=true                | BOX | 4 1               |              | devices
fifo:skip=true                | BOX | 2 2 1             |              | devices
fifo:skip=true                | BOX | 1 4               |              | devices
fifo:skip=true                | TWO | 4 4 1             |              | devices
fifo:skip=true                | TWO | 8 1               |              | devices
sjf:skip=true                 | BOX | 4 2               |              | devices
las                           | BOX | 4~ 1              |              | devices
srtf                          | BOX | 4~ 4              |              | devices
fair-share:skip=true          | BOX | 4@ann 1@bob       |              | devices
dominant-share:skip=true      | BOX | 4@ann 1@bob       |              | devices
fifo:skip=true                | BOX | 4 0.5             |              | devices
fifo:skip=true                | BOX | 0.6 0.6 0.6 0.6 0.5 |            | devices
fifo:skip=true                | MIX | 4^a 1^a           |              | devices
fifo:skip=true;consolidated   | TWO | 3 3 2             |              | fragmentation
fifo:skip=true;consolidated   | TWO | 3 3 2             | wake         | fragmentation
fifo:skip=true                | BOX | 1/16 1/1           |             | cpu or memory
fifo:skip=true                | BOX | 1/8 1/12           |             | cpu or memory
fifo:skip=true                | BOX | 1/1/60 1/1/8       |             | cpu or memory
fifo:skip=true                | TWO | 1/16 1/16 1/4      |             | cpu or memory
fifo:skip=true                | BOX | 0/16 0/1           |             | cpu or memory
fifo:skip=true                | BOX | 1/16 0/4           |             | cpu or memory
fifo:skip=true                | BOX | 0/1/60 0/1/8       |             | cpu or memory
synergy:order=fifo,skip=true  | BOX | 1/16 1/1           |             | cpu or memory
fifo                          | BOX | 3 4 1             |              | order
fifo                          | TWO | 4 3 8 1           |              | order
sjf                           | BOX | 3 4 1             |              | order
priority                      | BOX | 3 4!1 1           |              | order
ljf                           | BOX | 3 4 1             |              | order
fifo:backfill=easy            | BOX | 3 4 1#9000        |              | order
fifo:backfill=conservative    | BOX | 3 4 1#9000        |              | order
fifo:skip=true,patience=60    | BOX | 3 4 1#9000        | late         | patience
sjf:skip=true,patience=60     | BOX | 3 4 1#9000        | late         | patience
fifo:skip=true                | BOX | 2@ann 1@ann       | quota ann=2  | quota
fifo                          | BOX | 2@ann 1@ann       | quota ann=2  | quota
fifo:skip=true                | BOX | 2@ann 2@ann       | quota *=3    | quota
fifo:skip=true                | BOX | 1/12@ann 1/8@ann  | quota ann=4/16/- | quota
las                           | BOX | 2@ann 1@ann       | quota ann=2  | quota
fifo:skip=true                | BOX | 1                 | drain        | closed nodes
fifo:skip=true                | BOX | 1                 | down         | closed nodes
fifo:skip=true                | TWO | 8                 | drain        | closed nodes
fifo:skip=true                | BOX | 1                 | others 4     | others
fifo:skip=true                | BOX | 2                 | others 3     | others
fifo:skip=true                | BOX | 1/4               | others cpu   | others
fifo:skip=true                | BOX | 4 1               | withheld     | withheld
las                           | BOX | 4~ 1              | withheld     | withheld
priority:skip=true,displace=lower,min_run=600 | BOX | 4 4!1 | early       | min-run
priority:skip=true,displace=lower | BOX | 4~ 4!1         |              | devices
priority:skip=true,displace=lower | BOX | 4!1 4!1        |              | devices
fifo:preempt=true,min_run=600 | BOX | 4 2               |              | rank < 1
srtf                          | BOX | 4#5000 4#9000     |              | rank < 1
priority:skip=true,displace=lower,min_run=600 | BOX | 2 2~ 4!1 |         | devices < 1 2
fifo:skip=true                | MIX | 4^a#5000 4^b#100 1^a |           | devices < 1
fifo:skip=true                | MIX | 2^a 3^b 3^a       |              | devices < 1
fifo:skip=true                | MIX | 2^a 2^b 4         |              | fragmentation < 1
fifo:skip=true;consolidated   | TWO | 4#100 2#5000 1#50 4 |            | devices < 1
fifo:skip=true                | TWO | 4 2               | drain        | devices < 1
fifo:skip=true                | BOX | 4 4 4             |              | devices < 1 2
fifo:skip=true                | BOX | 2@ann 2@bob 1@ann | quota ann=2  | quota < 1
fair-share:by=user,skip=false | BOX | 3@ann 2@ann 4@bob 1@cat | late   | order < 3
synergy:order=fifo            | BOX | 1/12 3/12 1/1     |              | order < 2
synergy:order=fifo,skip=true  | BOX | 2/8               | others cpu   | others
shared                        | BOX | 1/10@ann 1@ann 1@ann 1/8@bob |   | cpu or memory < 1
fifo:skip=true                | BOX | 2&a 2&a           | cells a=2,b=2 | devices
fifo:skip=true                | BOX | 1/4&a 1&a         | cells a=2,b=2 | running
fifo                          | BOX | 1&a 2&a 1&a       | cells a=2,b=2 | order
fifo:skip=true                | BOX | 2&a 4&b!-1        | cells a=2,b=2 | owners
fifo:skip=true                | BOX | 1&a 1&b 3&b!-1    | cells a=2,b=2 | owners
fifo:skip=true                | BOX | 4&a!-1 1&a!-1     | cells a=2,b=2 | devices
fifo:skip=true                | BOX | 4&b!-1 2&a        | cells a=2,b=2; slow | lent
las                           | BOX | 2&b!-1 4&a        | cells a=4; slow | lent
fifo:skip=true                | TWO | 8&b!-1 4&a        | cells a=4,b=4; slow | lent
fifo:skip=true                | BOX | 1&a               | cells a=2,b=2; down | closed nodes
fifo:skip=true                | BOX | 2&a               | cells a=2,b=2; others memory | hardware
fifo:skip=true                | BOX | 2&a 2&a 1&a       | shares a=2,b=2 | devices
fifo:skip=true                | BOX | 2&b 3&a           | shares a=2,b=2 | owners
fifo:skip=true                | BOX | 2&a 1~&a          | shares a=2,b=2 | borrowing
fifo:skip=true                | BOX | 2&a 2&a 1&b       | shares a=2,b=2; slow | lent
fifo:skip=true                | BOX | 1                 | ended        | unknown
fifo:skip=true                | BOX | 1                 |              | running
"""

SITUATIONS = [
    tuple(cell.strip() for cell in row.split("|")) for row in ROWS.strip().splitlines() if row
]


def spec(number: int, text: str) -> JobSpec:
    found = re.fullmatch(
        r"([\d.]+)(?:/(\d+))?(?:/(\d+))?(~)?(?:@(\w+))?(?:&(\w+))?(?:!(-?\d))?(?:\^(\w+))?(?:#(\d+))?",
        text,
    )
    assert found, text
    gpus, cpu, memory, fixed, user, tenant, priority, kind, length = found.groups()
    share = round(float(gpus) * 1000) if "." in gpus else 1000
    request = gang(
        1 if "." in gpus else int(gpus),
        None if cpu is None else int(cpu) * 1000,
        None if memory is None else int(memory) * 1024,
        (kind,) if kind else (),
        share,
    )
    return JobSpec(
        number,
        f"j{number}",
        0.0,
        request,
        tenant=tenant or "",
        user=user or "",
        priority=float(priority or 0),
        estimate=float(length or 1000),
        resumable=fixed is None,
    )


def set_up(policy: str, cluster: str, extra: str) -> Scheduler:
    ordering, _, placement = policy.partition(";")
    quotas = extra.removeprefix("quota ") if extra.startswith("quota") else None
    machines = {"BOX": BOX, "TWO": TWO, "MIX": MIX}[cluster]
    allocator = None if ordering.startswith(("synergy", "shared")) else "proportional"
    parts = Parts(
        ordering,
        placement or None,
        allocator,
        "declared",
        quotas=quotas,
        tenancy=owners(extra.partition(";")[0]),
    )
    # Where stops take time, whoever comes next waits for them.
    latency = 1.0 if extra.endswith("slow") else None
    machine = Machine(parse_cluster(machines), Locality(), Costs(), lambda: 0.0, latency)
    return composer(parts, FakeExecutor(machine))()


def owners(text: str) -> str | None:
    """`cells a=2,b=2` as parts have it."""
    kind, _, listed = text.partition(" ")
    if kind not in ("cells", "shares"):
        return None
    pairs = [each.split("=") for each in listed.split(",")]
    contracts = [Contract(name, (Holding(gpus=(int(size),)),)) for name, size in pairs]
    return Tenants(kind, tuple(contracts)).written()


def before(extra: str) -> list[Event]:
    held = {
        "others 4": Part(0, 0b1111),
        "others 3": Part(0, 0b0111),
        "others cpu": Part(0, 0, 14_000, 0),
        "others memory": Part(0, 0, 0, 60 * 1024),
    }
    what = extra.rpartition("; ")[2]
    if what in held:
        return [Held("somebody", allocation_of((held[what],)))]
    return {"drain": [NodeDraining(0)], "down": [NodeDown(0)]}.get(what, [])


def after(extra: str, last: int) -> tuple[float, list[Event]]:
    happens: dict[str, tuple[float, list[Event]]] = {
        "late": (101.0, [Wake()]),
        "wake": (50.0, [Wake()]),
        "ended": (50.0, [Finished(last)]),
    }
    return happens.get(extra, (1.0, [Wake()]))


@pytest.mark.parametrize(("policy", "cluster", "jobs", "extra", "cause"), SITUATIONS, ids=str)
def test_why_names_the_cause(policy: str, cluster: str, jobs: str, extra: str, cause: str) -> None:
    scheduler = set_up(policy, cluster, extra)
    if events := before(extra):
        scheduler.step(0.0, events)
    specs = [spec(number, text) for number, text in enumerate(jobs.split(), 1)]
    last = specs[-1].id
    for each in specs[:-1]:
        scheduler.step(0.0, [Submitted(each)])
    if extra == "late":
        # The last one comes when others have lost their patience.
        scheduler.step(100.0, [Wake()])
    scheduler.step(scheduler.now, [Submitted(specs[-1]._replace(submit=scheduler.now))])
    if extra == "withheld":
        scheduler.step(0.0, [Withheld(last)])
    scheduler.step(*after(extra, last))
    reason = scheduler.explain(last)
    cause, _, blockers = cause.partition(" < ")
    assert reason.cause == cause, reason
    if blockers:
        assert " ".join(map(str, reason.blockers)) == blockers, reason
    assert "gang" not in reason.text
    if cause not in ("unknown", "running"):
        assert reason.unblock, reason


def test_there_are_so_many_of_them() -> None:
    assert len(SITUATIONS) >= 80
