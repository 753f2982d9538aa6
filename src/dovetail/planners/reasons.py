"""Why a job waits or can never run, in one sentence that names one binding cause.

Answers on demand from the planner's own index; never part of a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from dovetail.core.draft import Draft, Option
from dovetail.core.lanes import Lane
from dovetail.core.naming import names_of
from dovetail.model.cluster import Cluster
from dovetail.model.errors import OverCommitted
from dovetail.model.job import Job
from dovetail.model.node import Pool
from dovetail.model.plan import Reason
from dovetail.model.request import WHOLE, Request

if TYPE_CHECKING:
    from dovetail.planners.walk import Walk

Found = TypeVar("Found")

MOST_AHEAD = 10
"""Jobs ahead in the order that are named."""
MOST_LOOKED_AT = 50
"""Jobs ahead in the order of whom it is asked whether they would take what becomes free."""
MOST_WEIGHED = 200
"""So many running jobs are weighed one by one; of more, the rest is taken to be in the way."""


def why_impossible(request: Request, empty: Cluster) -> str:
    """The sentence for a request that does not fit even on the empty cluster."""
    asked = describe(request)
    types = request.alternatives[0].types
    if types and not any(pool.type in types for pool in empty.pools):
        have = ", ".join(pool.type for pool in empty.pools)
        return f"asks for GPU type {' or '.join(types)}; the cluster has {have}"
    if request.gpus > empty.gpus:
        return f"asks for {asked}; the cluster has {empty.gpus} GPU{'s' * (empty.gpus != 1)}"
    return f"asks for {asked}; no nodes of the cluster fit that even when empty"


def describe(request: Request) -> str:
    """A request in words: `8 GPUs`, `0.5 GPU`, `2 to 4 GPUs of type a with 16 cores`."""
    milli = request.milli_gpus
    alternative = request.alternatives[0]
    groups = alternative.groups
    least = sum(group.least * group.each.gpus * group.each.share for group in groups)
    width = f"{milli / 1000:g}" if least == milli else f"{least / 1000:g} to {milli / 1000:g}"
    text = f"{width} GPU{'' if milli <= 1000 else 's'}"
    if alternative.types:
        text += f" of type {' or '.join(alternative.types)}"
    cpu = sum(group.most * (group.each.cpu or 0) for group in groups)
    memory = sum(group.most * (group.each.memory or 0) for group in groups)
    extras = said_amounts(cpu, memory)
    if not milli:
        return extras or "no GPU"
    return f"{text} with {extras}" if extras else text


def said_amounts(cpu: int, memory: int) -> str:
    """`16 cores`, `1 core and 8 GiB`, or nothing."""
    cores = f"{cpu / 1000:.3g} core{'' if cpu == 1000 else 's'}"
    return " and ".join([cores] * bool(cpu) + [f"{memory / 1024:.3g} GiB"] * bool(memory))


def short_of_amounts(request: Request, cpu: int, memory: int) -> str:
    """What is said when it is not GPUs that are missing, but these amounts beside them."""
    if not request.milli_gpus:
        return f"needs {describe(request)}; no node has {said_amounts(cpu, memory)} free"
    share = "" if _stated(request) else ", its share"
    missing = f"{said_amounts(cpu, memory)}{share}"
    return f"needs {describe(request)}; enough GPUs are free, but not with {missing}"


def _stated(request: Request) -> bool:
    groups = request.alternatives[0].groups
    return any(group.each.cpu or group.each.memory for group in groups)


_FINDINGS: ContextVar[dict[Any, Any] | None] = ContextVar("findings", default=None)
"""What was found out about planners and lanes and holds until something is decided."""


@contextmanager
def sharing() -> Iterator[None]:
    """Ask about many jobs in here, and nothing else: what they have in common is found out once."""
    token = _FINDINGS.set({})
    try:
        yield
    finally:
        _FINDINGS.reset(token)


def among_many() -> bool:
    """Is this one of many questions? Then who waits ahead is not looked for: that takes longest."""
    return _FINDINGS.get() is not None


def found(about: Any, find: Callable[[], Found]) -> Found:
    """What was found out before about this, or is found out now."""
    known = _FINDINGS.get()
    if known is None:
        return find()
    if about not in known:
        known[about] = find()
    result: Found = known[about]
    return result


def explain_waiting(walk: Walk, job: Job) -> Reason:
    """Find the one binding cause: order, what is not ours, devices, their places, or amounts."""
    lane = walk.lane(job)
    short = found((id(walk), id(lane)), lambda: _short_of(walk, lane, job.spec.request))
    return _held_by_order(walk, job) if short is None else behind_others(walk, job, short)


def behind_others(walk: Walk, job: Job, short: Reason) -> Reason:
    """What is missing, and who would have it first once it is there."""
    if not short.blockers or among_many():
        return short
    draft = Draft(walk.view.cluster, walk.placement)
    for number in short.blockers:
        held = walk.view.jobs[number].virtual
        assert held is not None
        draft.release(held)
    ahead: list[int] = []
    for other in ahead_of(walk, job)[:MOST_LOOKED_AT]:
        place = draft.find(walk.lane(other).options)
        if place is not None:
            draft.take(place)
            ahead.append(other.id)
        elif not walk.ordering.skip and not walk.ordering.preempt:
            return after(walk, short, [*ahead, other.id])
    return short if draft.find(walk.lane(job).options) is not None else after(walk, short, ahead)


def after(walk: Walk, short: Reason, ahead: list[int]) -> Reason:
    """The same with those who come before it."""
    if not ahead:
        return short
    waits = f"once {names_of(walk.view.jobs, ahead)} ha{'ve' if len(ahead) > 1 else 's'} had a turn"
    blockers = (*short.blockers, *ahead[:MOST_AHEAD])
    return short._replace(blockers=blockers, unblock=f"{short.unblock}, {waits}")


def _short_of(walk: Walk, lane: Lane, request: Request) -> Reason | None:
    """What is missing for each job of a lane; None: nothing is."""
    cluster = walk.view.cluster
    if Draft(cluster, walk.placement).find(lane.options) is not None:
        return None
    asked = describe(request)
    ends = _until_it_fits(walk, lane, next_to_end(walk))
    if ends is None:
        return not_ours(walk, lane.options, asked, lane.refusal)
    unblock = f"the end of {names_of(walk.view.jobs, ends)}{_or_opened(walk, lane)}"
    idle, of = _in_reach(cluster, lane)
    if lane.size > idle:
        verb = "is" if idle == 1 else "are"
        return Reason("devices", f"needs {asked}; {idle} of {of} {verb} free", ends, unblock)
    missing = missing_amounts(Draft(cluster, walk.placement), lane.options)
    if missing is not None:
        return Reason("cpu or memory", short_of_amounts(request, *missing), ends, unblock)
    if 0 < request.milli_gpus < WHOLE:
        text = f"needs {asked}; no GPU has that much left"
        return Reason("devices", text, ends, unblock)
    text = f"needs {asked}; {idle} GPUs are free, but {_scattered(cluster, lane)}"
    return Reason("fragmentation", text, ends, unblock)


def _in_reach(cluster: Cluster, lane: Lane) -> tuple[int, str]:
    """GPUs that are free where a job of the lane may run, and in words of which GPUs."""
    pools = _pools_of(cluster, lane)
    nodes = [node for pool in pools for node in range(pool.start, pool.stop)]
    there = [node for node in nodes if node not in cluster.closed]
    idle = min(cluster.idle, sum(cluster.free[node] for node in there))
    kinds = "" if len(pools) == len(cluster.pools) else " of that type"
    where = "" if len(there) == len(nodes) else " on open nodes"
    return idle, f"{sum(cluster.nodes[node].gpus for node in there)} GPUs{kinds}{where}"


def _pools_of(cluster: Cluster, lane: Lane) -> list[Pool]:
    starts = {ask.start for option in lane.options for ask in option.asks}
    return [pool for pool in cluster.pools if pool.start in starts]


def _scattered(cluster: Cluster, lane: Lane) -> str:
    """Why GPUs that are enough by number are of no use."""
    pools = _pools_of(cluster, lane)
    if all(lane.size > cluster.idle_in(pool.start, pool.stop) for pool in pools):
        return "not so many of one type"
    return "not where it could use them together"


def _until_it_fits(walk: Walk, lane: Lane, running: list[Job]) -> tuple[int, ...] | None:
    """The running jobs, those believed to end first, that must end before a job of the lane fits.

    Of many it may be a few more than needed: not after each of thousands a place is looked for.
    """
    draft, ended, look = Draft(walk.view.cluster, walk.placement), list[Job](), 1
    for other in running:
        assert other.virtual is not None
        draft.release(other.virtual)
        ended.append(other)
        if len(ended) >= look or len(ended) == len(running):
            look = max(look + 1, look * 5 // 4)
            if lane.size <= draft.cluster.idle and draft.find(lane.options) is not None:
                return tuple(job.id for job in _needed(draft, lane, ended))
    return None


def _needed(draft: Draft, lane: Lane, ended: list[Job]) -> list[Job]:
    """Those of them without whose end it would not fit: others are elsewhere, or too small."""
    needed: list[Job] = []
    for count, other in enumerate(reversed(ended)):
        if count >= MOST_WEIGHED or not _fits_beside(draft, lane, other):
            needed.append(other)
    return needed[::-1]


def _fits_beside(draft: Draft, lane: Lane, other: Job) -> bool:
    """Does it fit although this one stays? Then it stays in the draft."""
    assert other.virtual is not None
    try:
        draft.cluster.take(other.virtual, closed_too=True)
    except OverCommitted:
        # Others use more there than is left: nobody could come back.
        return False
    if draft.find(lane.options) is not None:
        return True
    draft.release(other.virtual)
    return False


def _or_opened(walk: Walk, lane: Lane) -> str:
    """Would nodes that are closed now be enough?"""
    twin = walk.view.cluster.copy()
    closed = sorted(twin.closed)
    for node in closed:
        twin.open(node)
    if not closed or Draft(twin, walk.placement).find(lane.options) is None:
        return ""
    return f", or {_nodes(twin, closed)} back in service"


def _nodes(cluster: Cluster, numbers: Sequence[int]) -> str:
    return " and ".join(cluster.nodes[node].name for node in numbers[:3])


def not_ours(
    walk: Walk, choices: Sequence[Option], asked: str, refusal: str | None = None
) -> Reason:
    """It would not fit even if all our jobs were gone."""
    cluster = walk.view.cluster
    empty = cluster.emptied()
    for node, why in cluster.closed.items():
        empty.close(node, why)
    if refusal is not None:
        return Reason("impossible", refusal, (), "another request or other machines")
    if Draft(empty, walk.placement).find(choices) is None:
        text = f"needs {asked}; the open nodes cannot give that even when empty"
        names = _nodes(cluster, sorted(cluster.closed))
        return Reason("closed nodes", text, (), f"{names} back in service")
    text = f"needs {asked}; others use so much that it would not fit even if no job of ours ran"
    return Reason("others", text, (), "others using less")


def _held_by_order(walk: Walk, job: Job) -> Reason:
    ahead = ahead_of(walk, job)
    first = ahead[0] if ahead else None
    if first is None or (walk.ordering.skip and not first.impatient):
        # Who looks past misfits lets nobody wait for the order alone.
        return Reason("next", "it fits and starts with the next decision", (), "the next decision")
    name = first.spec.name
    if first.impatient:
        text = f"it fits, but {name} has lost its patience and would be delayed"
        unblock = f"the start of {name}, or a longer patience"
        return Reason("patience", text, (first.spec.id,), unblock)
    blockers = tuple(each.id for each in ahead[:MOST_AHEAD])
    if walk.ordering.backfill != "none":
        text = f"it fits, but {name} comes first and would be delayed"
        return Reason("order", text, blockers, f"the start of {name}, or a shorter estimate")
    text = f"it fits, but {name} comes first and does not fit yet"
    return Reason("order", text, blockers, f"the start of {name}, or skip=true")


def ahead_of(walk: Walk, job: Job) -> list[Job]:
    """Who waits before a job, in order; who is over a quota holds nobody up."""
    order = found((id(walk), "order"), lambda: _in_order(walk))
    return order[: order.index(job)] if job in order else order


def _in_order(walk: Walk) -> list[Job]:
    allowance = walk.allowance()
    ranked = [
        (walk.rank(entry, lane), entry)
        for lane in walk.lanes
        if allowance is None or allowance.choices(lane)
        for entry in lane.in_order()
    ]
    return [entry[3] for _, entry in sorted(ranked)]


def by_rank(walk: Walk, job: Job, short: Reason) -> Reason:
    """GPUs are missing because all who have them come first in an order that preempts."""
    view = walk.view
    holders = [each for each in map(view.jobs.__getitem__, short.blockers) if each.virtual]
    place = (walk.key(job), job.spec.submit, job.id)
    first = [
        each.id
        for each in holders
        if each.spec.resumable and (walk.key(each), each.spec.submit, each.id) < place
    ]
    if short.cause not in ("devices", "fragmentation") or not first or len(first) < len(holders):
        return short
    verb = "come" if len(first) > 1 else "comes"
    text = f"{short.text}: {names_of(walk.view.jobs, first)} {verb} first in the order"
    return short._replace(cause="rank", text=text)


def next_to_end(walk: Walk) -> list[Job]:
    """Running jobs, those believed to end first first."""
    return found(id(walk), lambda: _by_end(walk))


def _by_end(walk: Walk) -> list[Job]:
    now = walk.view.now
    left = [(job.time_left(now), job.id, job) for job in walk.view.running.values()]
    return [job for _, _, job in sorted(left)]


def missing_amounts(draft: Draft, choices: Sequence[Option]) -> tuple[int, int] | None:
    """CPU and memory that are missing where GPUs are free; None: they are not what is missing."""
    cpu, memory = amounts(choices)
    for missing in ((cpu, 0), (0, memory), (cpu, memory)):
        if draft.find([_without(option, *missing) for option in choices]) is not None:
            return missing
    return None


def _without(option: Option, cpu: int, memory: int) -> Option:
    """The option of a job that does not need these, if they are not 0."""
    asks = [
        replace(ask, cpu=0 if cpu else ask.cpu, memory=0 if memory else ask.memory)
        for ask in option.asks
    ]
    return replace(option, asks=tuple(asks))


def amounts(choices: Sequence[Option]) -> tuple[int, int]:
    """CPU and memory of what is asked for first."""
    asks = choices[0].asks
    return sum(ask.units * ask.cpu for ask in asks), sum(ask.units * ask.memory for ask in asks)
