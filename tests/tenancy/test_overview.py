"""What a tenancy tells of itself: every GPU has one owner or none, and one use."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.controller.parts import Parts, composer
from dovetail.core.scheduler import Scheduler
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.model.costs import Costs
from dovetail.model.event import Event, Finished, NodeDown, NodeUp, Submitted
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.tenants import CellCount, Estate, Overview, Use
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from dovetail.tenancy.contracts import Contract, Holding
from dovetail.tenancy.kinds import Tenants

VISION = Contract("vision", (Holding(nodes=1, gpus=(2,)),))
SPEECH = Contract("speech", (Holding(gpus=(2, 1)),))


def scheduler(kind: str, cluster: str = "3x4,cpus=16,mem=64") -> Scheduler:
    machine = Machine(parse_cluster(cluster), Locality(), Costs(), lambda: 0.0)
    tenancy = Tenants(kind, (VISION, SPEECH)).written() if kind != "whole" else None
    return composer(Parts("fifo:skip=true", tenancy=tenancy), FakeExecutor(machine))()


def job(number: int, gpus: int, tenant: str = "", priority: float = 0.0) -> JobSpec:
    request = gang(gpus)
    return JobSpec(
        number, f"j{number}", 0.0, request, tenant=tenant, priority=priority, resumable=True
    )


def estates(found: Overview) -> dict[str, Estate]:
    return {each.name: each for each in found.estates}


def test_owners_and_borrowers_are_told_apart() -> None:
    books = scheduler("cells")
    books.step(0.0, [Submitted(job(1, 4, "vision")), Submitted(job(2, 8, "speech", -1))])
    found = books.tenancy.overview()
    assert (found.kind, found.unowned) == ("cells", 3.0)
    vision, speech = estates(found)["vision"], estates(found)["speech"]
    assert (vision.gpus, vision.used, vision.lent) == (6, 4, 2)
    assert vision.cells == (
        CellCount("gpu-node", 4, owned=1, used=1),
        CellCount("gpu-2", 2, owned=1, lent=1),
    )
    assert (speech.used, speech.lent) == (0, 3)
    assert {patch.jobs for patch in found.patches if patch.use is Use.LENT} == {(2,)}
    used = [patch for patch in found.patches if patch.use is Use.USED]
    assert [(patch.tenant, patch.cell, patch.bound) for patch in used] == [
        ("vision", "vision/0", True)
    ]


def test_what_has_no_healthy_hardware_is_bad() -> None:
    books = scheduler("cells")
    books.step(0.0, [NodeDown(0), NodeDown(1)])
    found = books.tenancy.overview()
    assert sum(each.bad for each in found.estates) == 5
    assert sum(patch.use is Use.BAD for patch in found.patches) >= 2
    books.step(1.0, [NodeUp(0), NodeUp(1)])
    assert all(each.bad == 0 for each in books.tenancy.overview().estates)


def test_numbers_are_borrowed_from_nobody_first() -> None:
    books = scheduler("shares")
    books.step(0.0, [Submitted(job(1, 3, "speech")), Submitted(job(2, 4, "speech"))])
    found = books.tenancy.overview()
    assert (found.kind, found.unowned) == ("shares", 3.0)
    vision, speech = estates(found)["vision"], estates(found)["speech"]
    # Three of the four that job 2 borrows are nobody's.
    assert (vision.gpus, vision.idle, vision.lent) == (6, 5, 1)
    assert (speech.used, speech.idle) == (3, 0)


def test_without_tenants_there_is_nothing_to_tell() -> None:
    assert scheduler("whole").tenancy.overview() == Overview()


JOBS = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from(["vision", "speech"]),
        st.sampled_from([0.0, -1.0]),
        st.sampled_from(["submit", "finish", "down", "up"]),
    ),
    max_size=25,
)


@pytest.mark.parametrize("kind", ["cells", "shares"])
@settings(max_examples=60)
@given(steps=JOBS)
def test_every_gpu_is_told_once_and_sums_agree(
    kind: str, steps: list[tuple[int, str, float, str]]
) -> None:
    books = scheduler(kind)
    for at, (gpus, tenant, priority, what) in enumerate(steps):
        events: list[Event] = [Submitted(job(at, gpus, tenant, priority))]
        if what == "finish":
            running = [each.id for each in books.jobs.values() if each.allocation is not None]
            events = [Finished(running[0])] if running else []
        elif what in ("down", "up"):
            events = [NodeDown(gpus % 3) if what == "down" else NodeUp(gpus % 3)]
        books.step(float(at), events)
        _check(books)


def _check(books: Scheduler) -> None:
    found = books.tenancy.overview()
    told = Counter((patch.node, device) for patch in found.patches for device in patch.devices)
    devices = {(node.name, each) for node in books.cluster.nodes for each in range(node.gpus)}
    assert set(told) == devices and set(told.values()) == {1}
    for each in found.estates:
        assert each.used + each.idle + each.lent + each.bad == each.gpus
        assert all(
            cell.used + cell.idle + cell.lent + cell.bad == cell.owned for cell in each.cells
        )
    on = {number for patch in found.patches for number in patch.jobs}
    assert on == {number for number, each in books.jobs.items() if each.allocation is not None}
    held = sum(each.allocation.gpus for each in books.jobs.values() if each.allocation is not None)
    assert held == sum(len(patch.devices) for patch in found.patches if patch.jobs)
