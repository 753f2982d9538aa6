"""A machine as it was bought, and what whoever runs jobs there can do. What is free is not here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

VIRTUAL = "virtual"
"""The GPU type of nodes whose GPUs are made up, so that jobs can be tried without any."""


@dataclass(frozen=True, slots=True)
class Node:
    """One machine as it was bought."""

    name: str
    gpus: int
    #: thousandths of a core; `None`: not stated, so not limited
    cpu: int | None = None
    #: MiB; `None`: not stated, so not limited
    memory: int | None = None
    #: GPU type; nodes of one type form a pool
    type: str = "gpu"
    #: MiB on each device; 0: not stated
    gpu_memory: int = 0
    #: names of the levels above the node, outermost first: (region, rack)
    place: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the executor behind a pool can do; policies see it."""

    resize_in_place: bool = True
    suspend_frees_gpu: bool = False
    move: bool = True
    share: bool = True
    #: seconds from a start being sent to the job running; `None`: starts and stops take effect
    #: the instant they are planned, and no acknowledgement is expected
    start_latency: float | None = None


class Pool(NamedTuple):
    """A run of neighbouring nodes with one GPU type."""

    type: str
    start: int
    stop: int
    capabilities: Capabilities
