"""How tenants stand who own numbers of GPUs: in use, idle, lent, and why their jobs wait.

A number has no place, so a GPU that is borrowed belongs to nobody in particular. What nobody owns
is borrowed first, then what the tenant with most to spare leaves idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job
from dovetail.model.plan import BORROWED, Reason
from dovetail.model.request import WHOLE
from dovetail.model.tenants import Estate, Overview, Patch, Use


@dataclass
class Taken:
    """What a job holds, and whether it is within its tenant's number."""

    domain: int
    allocation: Allocation
    borrowed: bool
    #: it keeps its work when it is stopped
    resumable: bool = True


@dataclass(frozen=True)
class Number:
    """Thousandths of GPUs that a tenant owns and uses within that."""

    name: str
    own: int
    used: int
    #: is it part of no other?
    top: bool


def overview(cluster: Cluster, numbers: Sequence[Number], held: Mapping[int, Taken]) -> Overview:
    """All tenants with their numbers, and all GPUs with who is on them."""
    unowned = cluster.gpus * WHOLE - sum(each.own for each in numbers if each.top)
    borrowed = sum(each.allocation.milli_gpus for each in held.values() if each.borrowed)
    lent = _lent(numbers, borrowed - unowned)
    estates = tuple(
        Estate(
            each.name,
            each.own / WHOLE,
            each.used / WHOLE,
            (each.own - each.used - lent[each.name]) / WHOLE,
            lent[each.name] / WHOLE,
        )
        for each in numbers
    )
    patches = tuple(_patches(cluster, [each.name for each in numbers], held))
    return Overview("shares", unowned / WHOLE, estates, patches)


def worded(
    reason: Reason,
    tenant: str,
    asked: int,
    left: int,
    resumable: bool,
    others: Sequence[int],
    lent: bool,
) -> Reason:
    """Why a job waits, with what its tenant has left; `others` are jobs of other tenants.

    `lent`: some of them borrow.
    """
    own = f"{tenant} has {left / WHOLE:g} GPUs left of its own"
    if reason.cause == "next" and asked > left and not resumable:
        text = f"{own}, and a job that cannot resume may not borrow"
        more = (asked - left) / WHOLE
        unblock = f"{more:g} more GPU{'' if more <= 1 else 's'} of its own"
        return Reason("borrowing", text, (), unblock)
    if reason.cause == "next" and not lent:
        text = f"a job of {tenant} comes first that cannot resume, so it may not borrow, and {own}"
        return Reason("borrowing", text, (), "the start or the end of that job")
    if reason.cause == "next":
        text = f"{own}, and what else it could have was borrowed before"
        return Reason("borrowing", text, (), "more idle GPUs")
    if reason.cause == "others" and others:
        text = f"{reason.text.partition(';')[0]}; other tenants use too much, and {own}"
        return Reason("owners", text, tuple(others), "other tenants using less")
    if reason.cause == "devices" and asked > left:
        return reason._replace(text=f"{reason.text}, and {own}")
    return reason


def never(tenant: str, asked: int, own: int) -> str:
    """Why a job that may not borrow can never run."""
    gpus = f"{asked / WHOLE:g} GPU{'' if asked <= WHOLE else 's'}"
    return (
        f"it asks for {gpus} and cannot resume, so it may not borrow; {tenant} owns {own / WHOLE:g}"
    )


def beyond(reason: Reason, job: Job) -> Reason:
    """A job that runs on more than its tenant's number."""
    assert job.allocation is not None
    gpus = job.allocation.milli_gpus / WHOLE
    mine = "its GPU is" if gpus == 1 else f"its {gpus:g} GPUs are"
    text = f"{mine} borrowed, beyond what {job.spec.tenant} owns"
    return reason._replace(cause=BORROWED, text=text)


def _lent(numbers: Sequence[Number], borrowed: int) -> dict[str, int]:
    """Who lends how much of what is borrowed beyond what nobody owns."""
    lent = {each.name: 0 for each in numbers}
    for each in sorted(numbers, key=lambda each: each.used - each.own):
        if each.top:
            lent[each.name] = max(0, min(borrowed, each.own - each.used))
            borrowed -= lent[each.name]
    return lent


def _patches(cluster: Cluster, names: Sequence[str], held: Mapping[int, Taken]) -> Iterable[Patch]:
    """Devices of a node that are alike, as one."""
    on: dict[tuple[int, int], list[int]] = {}
    for job, each in held.items():
        for part in each.allocation.parts:
            for device in range(part.devices.bit_length()):
                if part.devices >> device & 1:
                    on.setdefault((part.node, device), []).append(job)
    for node, machine in enumerate(cluster.nodes):
        alike: dict[tuple[str, Use, tuple[int, ...]], list[int]] = {}
        for device in range(machine.gpus):
            jobs = on.get((node, device), [])
            owners = [names[held[job].domain] for job in jobs if not held[job].borrowed]
            use = Use.USED if owners else Use.LENT if jobs else _empty(cluster, node, device)
            key = (owners[0] if owners else "", use, tuple(jobs))
            alike.setdefault(key, []).append(device)
        for (tenant, use, jobs_there), devices in alike.items():
            yield Patch(machine.name, tuple(devices), tenant, use, jobs=jobs_there)


def _empty(cluster: Cluster, node: int, device: int) -> Use:
    """No job of ours is there: it is idle, or others have it."""
    free = cluster.share_of(node, device)[0] == WHOLE
    return Use.IDLE if free and node not in cluster.closed else Use.BAD
