"""Alibaba 2023, the openb pods and nodes of the fragmentation study (Weng et al., ATC'23): CSV.

    name
    cpu_milli, memory_mib    thousandths of a core and MiB of the pod
    num_gpu                  GPUs, all on one node; 0 to 8
    gpu_milli                thousandths of the GPU, below 1000 only with num_gpu 1
    gpu_spec                 GPU models the pod accepts, joined by |; empty: any
    pod_phase                Succeeded: finished, Failed: failed, Running: finished (it was cut off)
    creation_time            submission, seconds
    scheduled_time, deletion_time    seconds; their difference is the work
    qos                      not used

Pods that were never scheduled (Pending) are kept, because they are part of the demand: their work
is the time from creation to deletion, and they count as cancelled. `openb:types=false` lets every
pod run on any GPU. `nodes` reads the list of machines that goes with the pods.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import ClassVar

from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.node import Node
from dovetail.model.request import WHOLE
from dovetail.model.trace import TraceJob
from dovetail.traces.source import Source, open_text
from dovetail.traces.table import (
    Columns,
    Maybe,
    Table,
    count,
    instances,
    label,
    seconds,
    type_list,
)

OUTCOMES = {"Failed": "failed", "Pending": "cancelled"}


@dataclass(frozen=True)
class Openb(Table):
    """A list of pods."""

    #: keep to the GPU models the pod accepts?
    types: bool = True

    columns: ClassVar[Columns] = {
        "name": label,
        "cpu_milli": count,
        "memory_mib": count,
        "num_gpu": count,
        "gpu_milli": count,
        "gpu_spec": type_list,
        "pod_phase": str,
        "creation_time": seconds,
        "deletion_time": seconds,
        "scheduled_time": Maybe(seconds),
    }

    def job(
        self,
        name: str,
        cpu: int,
        memory: int,
        gpus: int,
        milli: int,
        models: tuple[str, ...],
        phase: str,
        created: float,
        deleted: float,
        scheduled: float | None,
    ) -> TraceJob:
        """One pod on one node."""
        began = created if scheduled is None else scheduled
        if deleted < began:
            raise ValueError(f"deletion_time is {deleted:g}, before the pod began ({began:g})")
        models = models if self.types and gpus else ()
        share = milli if gpus == 1 else WHOLE
        request = instances(1, gpus, cpu, memory, models, share)
        spec = JobSpec(0, name, created, request)
        return TraceJob(spec, deleted - began, (), OUTCOMES.get(phase, "finished"))


def nodes(name: str) -> list[Node]:
    """The machines of a node list: sn, cpu_milli, memory_mib, gpu (how many), model (its type)."""
    with open_text(name) as file:
        source = Source(name, file)
        rows = csv.DictReader(source)
        try:
            return [_node(row) for row in rows]
        except KeyError as error:
            listed = ", ".join(rows.fieldnames or ())
            raise UserError(
                f"{name}: there is no column {error}; the columns are: {listed}"
            ) from None
        except (ValueError, TypeError) as error:
            raise UserError(f"{name}:{source.line}: an amount {error}") from None


def _node(row: dict[str, str]) -> Node:
    cpu, memory, gpus = count(row["cpu_milli"]), count(row["memory_mib"]), count(row["gpu"])
    return Node(row["sn"], gpus, cpu, memory, row["model"] or "cpu")
