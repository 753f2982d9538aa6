"""What a job can live with: alternatives, types, modes, groups, widths and labels, in order."""

from __future__ import annotations

from typing import Any

import pytest
from workbench import scheduler, spec

from dovetail.allocators.proportional import Proportional
from dovetail.core.draft import Draft, granting, options
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.event import Finished, Held, Submitted
from dovetail.model.node import Node
from dovetail.model.plan import Reject, Start
from dovetail.model.request import Alternative, Group, Mode, Replica, Request, gang
from dovetail.placements.fits import BestFit
from dovetail.simulator.spec import parse_cluster

ONE = Replica()


def group(count: int, gpus: int = 1, *, least: int | None = None, **vector: Any) -> Group:
    return Group(count, Replica(gpus, **vector), count if least is None else least)


def one_of(*alternatives: Alternative, **more: Any) -> Request:
    return Request(tuple(alternatives), **more)


def shape(*groups: Group, types: tuple[str, ...] = ()) -> Alternative:
    return Alternative(groups, types)


def place(cluster: str | Cluster, request: Request, taken: Allocation | None = None) -> Any:
    """Where a request goes, or None."""
    machines = parse_cluster(cluster) if isinstance(cluster, str) else cluster
    if taken is not None:
        machines.take(taken)
    before = repr((machines.free, machines.masks))
    found = Draft(machines, BestFit()).find(
        options(request, machines, granting(machines, Proportional()))
    )
    assert repr((machines.free, machines.masks)) == before, "looking changed the cluster"
    if found is not None:
        machines.take(found)
        machines.validate()
    return found


def nodes(found: Allocation) -> list[tuple[int, int]]:
    """(node, devices) of each part."""
    return [(part.node, part.devices.bit_count()) for part in found.parts]


# ---- the plain case ----------------------------------------------------------------------------


def test_equal_gangs_are_the_same_object() -> None:
    assert gang(4) is gang(4)
    assert gang(4) == one_of(shape(group(4)))
    assert hash(gang(4)) == hash(one_of(shape(group(4))))
    assert gang(4) != gang(4, cpu=1000)


@pytest.mark.parametrize(
    ("request_", "gpus", "milli"),
    [
        (gang(4), 4, 4000),
        (gang(0, cpu=1000), 0, 0),
        (gang(1, share=250), 1, 250),
        (one_of(shape(group(2, 4), group(1))), 9, 9000),
        (one_of(shape(group(8, least=2)), shape(group(1))), 8, 8000),
    ],
)
def test_the_size_people_speak_of_is_the_best_alternative_at_full_width(
    request_: Request, gpus: int, milli: int
) -> None:
    assert (request_.gpus, request_.milli_gpus) == (gpus, milli)


def test_cpu_and_memory_of_a_gang_are_split_over_its_gpus_and_rounded_up() -> None:
    (only,) = gang(3, cpu=4000, memory=100).alternatives[0].groups
    assert (only.each.cpu, only.each.memory) == (1334, 34)


# ---- alternatives and types --------------------------------------------------------------------


def test_the_first_alternative_that_fits_is_taken() -> None:
    request = one_of(shape(group(4)), shape(group(2)), shape(group(1)))
    assert place("1x4", request).gpus == 4
    assert place("1x4", request, allocation_of((Part(0, 0b0001),))).gpus == 2
    assert place("1x4", request, allocation_of((Part(0, 0b0111),))).gpus == 1
    assert place("1x4", request, allocation_of((Part(0, 0b1111),))) is None


def test_types_are_tried_in_the_order_of_preference() -> None:
    request = one_of(shape(group(2), types=("B", "A")))
    mixed = "1x2,type=A+1x2,type=B"
    assert nodes(place(mixed, request)) == [(1, 2)]
    assert nodes(place(mixed, request, allocation_of((Part(1, 0b01),)))) == [(0, 2)]


def test_alternatives_may_name_their_own_types() -> None:
    request = one_of(shape(group(1), types=("fast",)), shape(group(3), types=("slow",)))
    assert place("1x1,type=fast+1x4,type=slow", request).gpus == 1
    assert place("1x4,type=slow", request).gpus == 3
    assert place("1x4,type=other", request) is None


def test_a_job_that_names_no_type_stays_within_one() -> None:
    assert place("1x2,type=A+1x2,type=B", gang(3)) is None
    assert nodes(place("1x2,type=A+2x2,type=B", gang(3))) == [(1, 2), (2, 1)]


# ---- modes -------------------------------------------------------------------------------------

LEAN = Mode("compressed", memory_factor=0.5, time_factor=1.5)


def test_a_mode_is_chosen_when_memory_is_short_and_named_in_the_allocation() -> None:
    request = one_of(shape(group(1, memory=1024)), modes=(Mode("plain"), LEAN))
    assert place("1x1,mem=1", request).mode == 0
    found = place("1x1,mem=0.5", request)
    assert (found.mode, found.memory) == (1, 512)
    assert place("1x1,mem=0.25", request) is None


def test_a_mode_shrinks_the_memory_of_a_share_too() -> None:
    machines = Cluster([Node("n0", 1, gpu_memory=1000)])
    request = one_of(shape(group(1, share=400, gpu_memory=1500)), modes=(Mode("plain"), LEAN))
    found = place(machines, request)
    assert (found.mode, found.parts[0].gpu_memory) == (1, 750)


def test_a_slower_mode_is_believed_to_take_longer() -> None:
    request = one_of(shape(group(1, memory=1024)), modes=(Mode("plain"), LEAN))
    decider = scheduler("1x1,mem=0.5")
    decider.step(0.0, [Submitted(spec(0, request=request, length=30))])
    assert decider.jobs[0].rate == pytest.approx(1 / 1.5)
    assert decider.jobs[0].time_left(15.0) == pytest.approx(30.0)


# ---- groups and replicas -----------------------------------------------------------------------


def test_a_replica_is_whole_on_one_node() -> None:
    assert nodes(place("2x4", one_of(shape(group(2, 3))))) == [(0, 3), (1, 3)]
    assert place("3x4", one_of(shape(group(2, 5)))) is None
    assert nodes(place("1x8", one_of(shape(group(2, 3))))) == [(0, 6)]


def test_replicas_wait_rather_than_be_torn() -> None:
    request = one_of(shape(group(2, 2)))
    taken = allocation_of((Part(0, 0b0111), Part(1, 0b0001)))
    assert place("2x4", gang(4), taken) is not None
    assert place("2x4", request, taken) is None


def test_groups_start_together_or_not_at_all() -> None:
    request = one_of(shape(group(1, 4), group(2, 1, cpu=2000)))
    found = place("2x4,cpus=8", request)
    assert found.gpus == 6
    assert nodes(found) == [(0, 4), (1, 2)]
    assert place("1x4,cpus=8", request) is None


def test_groups_do_not_get_each_others_devices() -> None:
    found = place("1x4", one_of(shape(group(2), group(2))))
    assert nodes(found) == [(0, 2), (0, 2)]
    assert found.parts[0].devices & found.parts[1].devices == 0


def test_a_group_without_gpus_gets_its_cpu_beside_one_with() -> None:
    request = one_of(shape(group(2, 1, cpu=1000), group(1, 0, cpu=6000)))
    found = place("1x2,cpus=8", request)
    assert (found.gpus, found.cpu) == (2, 8000)
    assert place("1x2,cpus=7", request) is None


# ---- widths ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("busy", "width"), [(0, 6), (0b1, 6), (0b111, 5), (0b1111_11, 2)])
def test_an_elastic_group_takes_the_widest_that_fits(busy: int, width: int) -> None:
    request = one_of(shape(group(6, least=2)))
    found = place("1x8", request, allocation_of((Part(0, busy),)))
    assert (found.gpus, found.milli_gpus) == (width, width * 1000)


def test_an_elastic_group_does_not_start_below_its_least() -> None:
    request = one_of(shape(group(6, least=2)))
    assert place("1x8", request, allocation_of((Part(0, 0b111_1111),))) is None


def test_groups_shrink_together_each_down_to_its_own_least() -> None:
    request = one_of(shape(group(4, least=1), group(2, least=2)))
    one = parse_cluster("1x8")
    widths = [option.gpus for option in options(request, one, granting(one, Proportional()))]
    assert widths == [6, 5, 4, 3]


def test_a_narrow_start_is_preferred_to_waiting_and_counts_what_it_holds() -> None:
    decider = scheduler("1x4")
    wide = one_of(shape(group(4, least=1)))
    decider.step(0.0, [Held("others", allocation_of((Part(0, 0b0001),)))])
    plan = decider.step(0.0, [Submitted(spec(0, request=wide, length=10))])
    assert [action.allocation.gpus for action in plan.actions if isinstance(action, Start)] == [3]
    decider.step(10.0, [Finished(0)])
    assert decider.served[0] == 30_000


# ---- labels ------------------------------------------------------------------------------------

LABELLED = Cluster(
    [Node("a", 4), Node("b", 4, labels=("ssd",)), Node("c", 2, labels=("ssd", "ib"))]
)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [((), [(2, 2)]), (("ssd",), [(2, 2)]), (("ib",), [(2, 2)]), (("ib", "ssd"), [(2, 2)])],
)
def test_a_job_with_labels_goes_where_they_are(
    labels: tuple[str, ...], expected: list[tuple[int, int]]
) -> None:
    found = place(LABELLED.copy(), one_of(shape(group(2)), labels=labels))
    assert nodes(found) == expected


def test_labels_narrow_the_choice() -> None:
    assert nodes(place(LABELLED.copy(), one_of(shape(group(3)), labels=("ssd",)))) == [(1, 3)]
    assert place(LABELLED.copy(), one_of(shape(group(3)), labels=("ib",))) is None
    assert place(LABELLED.copy(), one_of(shape(group(1)), labels=("gold",))) is None
    spread = one_of(shape(group(6)), labels=("ssd",))
    assert nodes(place(LABELLED.copy(), spread)) == [(1, 4), (2, 2)]


# ---- refused at the door -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (gang(9), "asks for 9 GPUs; the cluster has 8 GPUs"),
        (gang(1, types=("H100",)), "asks for GPU type H100; the cluster has gpu"),
        (gang(1, cpu=9000), "asks for 1 GPU with 9 cores; no nodes of the cluster fit that"),
        (gang(1, memory=2048), "asks for 1 GPU with 2 GiB; no nodes"),
        (one_of(shape(group(1, 5))), "asks for 5 GPUs; no nodes of the cluster fit that"),
        (gang(1, share=500, gpu_memory=2000), "asks for 0.5 GPU; no nodes"),
        (one_of(shape(group(1)), labels=("gold",)), "asks for 1 GPU; no nodes"),
    ],
)
def test_what_can_never_fit_is_rejected_with_the_reason(request_: Request, words: str) -> None:
    decider = scheduler("2x4,cpus=8,mem=1,gpumem=1")
    plan = decider.step(0.0, [Submitted(spec(0, request=request_))])
    (action,) = plan.actions
    assert isinstance(action, Reject)
    assert action.cause.startswith(words)
    assert [(job.status, why) for job, why in decider.ended] == [("rejected", action.cause)]
    assert not decider.jobs


def test_what_fits_only_without_the_present_load_is_not_rejected() -> None:
    decider = scheduler("1x4")
    decider.step(0.0, [Held("others", allocation_of((Part(0, 0b1111),)))])
    assert not decider.step(0.0, [Submitted(spec(0, 4))]).actions
    assert decider.jobs[0].status == "waiting"
