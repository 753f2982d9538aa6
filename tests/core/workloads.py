"""Random workloads: small, with integer times and many ties, because ties are where bugs live."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import ceil
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from workbench import World, spec

from dovetail.model.event import Failed, NodeDown, NodeDraining, NodeUp
from dovetail.model.job import JobSpec
from dovetail.model.request import Alternative, Group, Mode, Replica, Request, gang
from dovetail.orderings import BUILTIN
from dovetail.traces.table import instances

#: one shape each: plain, many nodes, mixed sizes, racks, two types, CPU and memory limits
CLUSTERS = (
    "2x4",
    "4x2",
    "1x8",
    "1x4+2x2",
    "4x2,rack=2",
    "1x4,type=A+2x2,type=B",
    "2x4,cpus=8,mem=4",
)

TENANTS = ("red", "blue")

EFFORT = float(os.environ.get("DOVETAIL_TEST_EFFORT", "0.5"))
"""The part of its examples that a property tries: `make test-real` tries all, 20 is a long search.
"""


def effort(examples: int, **more: Any) -> settings:
    """That many examples, times the effort asked for; the first one is always the simplest."""
    return settings(max_examples=max(2, ceil(examples * EFFORT)), **more)


@st.composite
def plain_jobs(
    draw: st.DrawFn,
    gpus: int = 8,
    most: int = 12,
    sizes: tuple[int, ...] = (1, 1, 2, 2, 3, 4, 8),
) -> list[JobSpec]:
    """Gangs of whole GPUs, submitted within few seconds, of few seconds' length."""
    shapes = st.tuples(
        st.integers(0, 6),
        st.sampled_from([size for size in sizes if size <= gpus]),
        st.integers(1, 6),
        st.integers(0, 2),
    )
    rows = sorted(draw(st.lists(shapes, min_size=1, max_size=most)), key=lambda row: row[0])
    return [
        spec(number, size, at, length=length, priority=float(priority))
        for number, (at, size, length, priority) in enumerate(rows)
    ]


REQUESTS: tuple[Request, ...] = (
    *(gang(size) for size in (1, 1, 2, 2, 3, 4, 8, 9)),
    gang(0, cpu=1000),
    gang(2, cpu=4000, memory=1024),
    gang(1, memory=2048),
    gang(1, share=500),
    gang(1, share=300),
    gang(2, types=("B",)),
    gang(1, types=("B", "A")),
    instances(2, 2),
)
"""Whole GPUs, too many GPUs, none, CPU and memory, shares, types, replicas."""


FLEXIBLE: tuple[Request, ...] = (
    Request((Alternative((Group(4, Replica(), 2),)),)),
    Request((Alternative((Group(4, Replica(2), 1),)), Alternative((Group(1, Replica(), 1),)))),
    Request((Alternative((Group(3, Replica(), 3), Group(1, Replica(0, cpu=500), 1))),)),
    Request(
        (Alternative((Group(2, Replica(), 1),), ("B", "A")), Alternative((Group(4, Replica(), 4),)))
    ),
    Request(
        (Alternative((Group(1, Replica(memory=4096), 1),)),),
        modes=(Mode("plain"), Mode("lean", 0.25, 2.0)),
    ),
)
"""Widths, alternatives, several groups, types by alternative, modes."""


@st.composite
def any_jobs(
    draw: st.DrawFn, most: int = 10, shares: bool = True, flexible: bool = False
) -> list[JobSpec]:
    """All kinds of jobs."""
    requests = [each for each in REQUESTS if shares or each.milli_gpus == each.gpus * 1000]
    requests += FLEXIBLE if flexible else ()
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 6),
                st.sampled_from(requests),
                st.integers(0, 6),
                st.integers(0, 2),
                st.sampled_from(TENANTS),
                st.sampled_from([None, 4.0, 9.0, 30.0]),
                st.sampled_from([True, True, True, False]),
            ),
            min_size=1,
            max_size=most,
        )
    )
    return [
        spec(
            number,
            at=at,
            length=length,
            request=request,
            priority=float(priority),
            tenant=tenant,
            user=("ann", "bob")[number % 2],
            deadline=None if within is None else at + within,
            resumable=resumable,
        )
        for number, (at, request, length, priority, tenant, within, resumable) in enumerate(
            sorted(rows, key=lambda row: row[0])
        )
    ]


def fixed_jobs(count: int, seed: int, gpus: int = 4, span: int = 60) -> list[JobSpec]:
    """A workload that is the same on every machine and in every run."""
    draw = Random(seed)
    times = sorted(draw.randrange(span) for _ in range(count))
    return [
        spec(
            number,
            draw.choice([1, 1, 2, gpus]),
            at,
            length=draw.randrange(1, 25),
            priority=float(draw.randrange(3)),
            tenant=draw.choice(TENANTS),
            deadline=at + draw.randrange(10, 200),
            resumable=draw.random() < 0.9,
        )
        for number, at in enumerate(times)
    ]


VARIANTS = (
    "fifo:skip=true",
    "fifo:preempt=true",
    "fifo:backfill=easy",
    "fifo:backfill=conservative",
    "sjf:skip=true",
    "sjf:backfill=easy",
    "srtf:preempt=false",
    "priority:preempt=true",
    "las:round=2",
    "las:thresholds=3/9",
    "las:thresholds=3/9,promote=1",
    "gittins:round=2,thresholds=3/9",
    "deadline:admission=reject,skip=true",
    "finish-time-fairness:round=2",
    "dominant-share:skip=false",
    "fair-share:half_life=5",
    "tetris:srtf=0,skip=false",
    *(f"{name}:patience=2" for name in BUILTIN),
    "fifo:skip=true,patience=2",
    "smallest-first:skip=true,patience=2",
    "sjf:backfill=easy,patience=2",
    "sjf:backfill=conservative,patience=2",
    "las:round=2,patience=3",
    "las:thresholds=3/9,promote=1,patience=2",
    "gittins:round=2,thresholds=3/9,patience=2",
    "fair-share:skip=false,patience=2",
    "fifo:displace=lower",
    "fifo:skip=true,displace=lower,min_run=2",
    "sjf:backfill=easy,displace=lower",
    "priority:skip=true,displace=lower,patience=3",
    "priority:displace=lower,min_run=1,patience=2",
    "tetris:displace=lower",
    "fair-share:by=user,displace=lower,min_run=2,patience=3",
    "dominant-share:by=user,displace=lower",
    "srtf:preempt=false,skip=true,displace=lower",
    "fifo:preempt=true,min_run=2",
    "srtf:min_run=2",
    "las:round=2,min_run=3",
    "las:thresholds=3/9,promote=1,min_run=1",
    "gittins:round=2,thresholds=3/9,min_run=2,patience=3",
    "finish-time-fairness:round=2,min_run=2",
)
"""Parameters that lead elsewhere in the planners."""


def breakdown(which: int) -> Callable[[World], Failed | None]:
    """Some running job breaks, if there is one."""

    def pick(world: World) -> Failed | None:
        running = sorted(number for number, life in world.lives.items() if life.running)
        return Failed(running[which % len(running)], "broke") if running else None

    return pick


@st.composite
def troubles(draw: st.DrawFn) -> list[tuple[float, Any]]:
    """Nodes that go or drain and come back, and jobs that break."""
    happenings: list[tuple[float, Any]] = []
    for _ in range(draw(st.integers(1, 3))):
        at, pause = draw(st.integers(0, 12)), draw(st.integers(1, 5))
        gone = draw(st.sampled_from([NodeDown, NodeDraining]))
        happenings += [(float(at), gone(0)), (float(at + pause), NodeUp(0))]
    for _ in range(draw(st.integers(0, 3))):
        happenings.append((float(draw(st.integers(0, 12))), breakdown(draw(st.integers(0, 3)))))
    return happenings
