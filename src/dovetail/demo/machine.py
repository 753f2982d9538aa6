"""What of this machine the demo uses: a few cores, and as many virtual GPUs as it can fence off."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dovetail.executors.local.fences import find
from dovetail.executors.local.machine import detect

MOST = 4
"""Cores and virtual GPUs: more would only make the demo longer."""


@dataclass(frozen=True)
class Used:
    """What the controllers of the demo have."""

    gpus: int
    cores: float
    #: cores and GiB that go with one GPU
    share: tuple[float, float]


@contextmanager
def few_cores() -> Iterator[Used]:
    """Keep this process and all it starts to a few cores meanwhile."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:MOST])
    try:
        yield _look()
    finally:
        os.sched_setaffinity(0, before)


def _look() -> Used:
    # Where parts of cores cannot be enforced, every virtual GPU needs a core of its own.
    fenced = find(f"dovetail-demo-{os.getpid()}").quota
    gpus = MOST if fenced else min(MOST, len(os.sched_getaffinity(0)))
    node = detect(gpus).node
    cores, memory = (node.cpu or 0) / 1000, (node.memory or 0) / 1024
    return Used(gpus, cores, (cores / gpus, memory / gpus))
