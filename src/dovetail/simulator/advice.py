"""What other policies would have made of a cluster's history: for those who only want to know.

Replays what `sacct` recorded and sets it beside what the cluster did. Recorded lengths are taken
as they were, so what changes is who waits for whom, and what stands idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dovetail.metrics.summary import distribution, summarise
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.simulator.experiment import Replay, replay
from dovetail.simulator.spec import read_spec
from dovetail.traces.sacct import Recorded, recorded
from dovetail.traces.source import Source, open_text

FORMAT = "sacct"


class Outcome(NamedTuple):
    """What became of the jobs: as it was, or under a policy. Seconds, and shares of 1."""

    name: str
    jobs: int
    mean_wait: float
    tail_wait: float
    mean_completion: float
    #: GPUs in use, of all GPUs from the first submission to the last end
    gpu_use: float
    #: of the cores that go with the GPUs in use, those that no job had
    stranded_cpu: float | None


def advise(
    path: str, cluster: str, policies: Sequence[str], restart_cost: float | None = None
) -> list[Outcome]:
    """What was, and what each policy would have made of it."""
    machines = read_spec(cluster).cluster
    runs = [
        replay(Replay(path, cluster, policy, format=FORMAT, restart_cost=restart_cost))
        for policy in policies
    ]
    with open_text(path) as file:
        found = list(recorded(Source(path, file)))
    if not found:
        raise UserError(f"{path} has no jobs that ran")
    was = _as_it_was(found, machines)
    return [was, *(_under(name, summarise(run)) for name, run in zip(policies, runs, strict=True))]


def _as_it_was(found: Sequence[Recorded], machines: Cluster) -> Outcome:
    waits = np.array([each.started - each.job.spec.submit for each in found])
    lengths = np.array([each.job.work for each in found])
    begun = min(each.job.spec.submit for each in found)
    span = max(each.started + each.job.work for each in found) - begun
    gpu = _used((each.held.gpus * each.job.work for each in found), machines.gpus * span)
    cores = sum(node.cpu or 0 for node in machines.nodes)
    cpu = _used((each.held.cpu * each.job.work for each in found), cores * span)
    told = distribution(waits)
    return Outcome(
        "as it was",
        len(found),
        told["mean"] or 0.0,
        told["p95"] or 0.0,
        float((waits + lengths).mean()),
        gpu or 0.0,
        _stranded(gpu, cpu),
    )


def _under(name: str, result: dict[str, dict[str, float]]) -> Outcome:
    use = result["utilisation"]
    return Outcome(
        name,
        int(result["jobs"]["finished"]),
        result["wait"]["mean"],
        result["wait"]["p95"],
        result["jct"]["mean"],
        use["gpu"],
        _stranded(use["gpu"], use["cpu"]),
    )


def _used(amounts: Iterable[float], capacity: float) -> float | None:
    return sum(amounts) / capacity if capacity else None


def _stranded(gpu: float | None, cpu: float | None) -> float | None:
    """Where all jobs had the cores of their GPUs, as much CPU would be in use as GPUs."""
    return None if cpu is None or not gpu else max(0.0, 1.0 - cpu / gpu)
