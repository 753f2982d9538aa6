"""Jobs that count, and what Slurm and the journal say of them afterwards."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from dovetail.executors.slurm.batch import granted
from dovetail.executors.slurm.reading import SlurmJob
from dovetail.executors.slurm.site import Site
from dovetail.model.allocation import Allocation
from dovetail.profiles import published

TICK = 0.25
"""Seconds of one step of a job."""

COUNT = f"""
echo "$DOVETAIL_ATTEMPT $SLURM_JOB_ID" >> "$STATE.began"
step=$(cat "$STATE" 2>/dev/null || echo 0)
while [ "$step" -lt "$STEPS" ]; do
    sleep {TICK}; step=$((step + 1)); echo "$step" > "$STATE.new"; mv "$STATE.new" "$STATE"
done
# One that was asked to stop as it ended is started again, and finds its work done.
[ -e "$STATE.done" ] || echo "$DOVETAIL_ATTEMPT $SLURM_JOB_ID" >> "$STATE.done"
"""
"""Does so many steps and goes on where it was after a restart."""


@dataclass(frozen=True)
class Task:
    """One job of the workload."""

    gpus: int
    steps: int
    #: seconds after the beginning
    at: float = 0.0
    model: str = ""

    @property
    def length(self) -> float:
        return self.steps * TICK


def workload(count: int, seed: int = 7, mean: float = 2.0, pause: float = 0.0) -> list[Task]:
    """Jobs of 1 to 16 GPUs and some seconds, `pause` seconds apart on average."""
    rng, at, found = Random(seed), 0.0, []
    models = list(published())
    for _ in range(count):
        steps = max(1, min(round(rng.expovariate(1 / mean) / TICK), round(4 * mean / TICK)))
        gpus = rng.choice([1, 1, 1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 8, 12, 16])
        found.append(Task(gpus, steps, at, rng.choice(models)))
        at += rng.expovariate(1 / pause) if pause else 0.0
    return found


def write(tasks: list[Task], path: Path) -> None:
    path.write_text(json.dumps([asdict(task) for task in tasks]))


def read(path: Path) -> list[Task]:
    return [Task(**each) for each in json.loads(path.read_text())]


def words(path: Path) -> list[list[str]]:
    """The lines of a file a job wrote."""
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def assert_ran_once(states: Path, tasks: list[Task]) -> None:
    """Every job did all its steps, ended once, and no attempt of it began twice."""
    for number, task in enumerate(tasks, 1):
        state = states / str(number)
        assert state.read_text().strip() == str(task.steps), f"job {number} is not complete"
        assert len(words(state.with_suffix(".done"))) == 1, f"job {number} ended twice"
        began = Counter(attempt for attempt, _ in words(state.with_suffix(".began")))
        assert set(began.values()) == {1}, f"job {number} began twice in an attempt: {began}"


def assert_placed_as_planned(
    attempts: list[dict[str, Any]], jobs: list[SlurmJob], site: Site
) -> int:
    """Nodes, GPUs, cores and memory by Slurm's records are those of the journal."""
    found: dict[str, list[SlurmJob]] = defaultdict(list)
    for job in jobs:
        found[job.comment.rpartition(":")[2]].append(job)
    compared = 0
    for attempt in attempts:
        records = [each for each in found[f"{attempt['job']}.{attempt['number']}"] if each.started]
        pieces = [piece for each in records for piece in each.pieces]
        if pieces:
            has = {(piece.node, piece.gpus, piece.cpus, piece.memory) for piece in pieces}
            assert has == set(planned(attempt["allocation"], site)), attempt
            compared += 1
    return compared


def planned(allocation: Allocation, site: Site) -> list[tuple[str, int, int, int | None]]:
    """What a plan names, in Slurm's units."""
    return [(site.nodes[part.node].name, *granted(part, site)) for part in allocation.parts]


def assert_nothing_over_committed(jobs: list[SlurmJob], site: Site) -> int:
    """By Slurm's own times no node ever gave more than it has; returns the most GPUs in use."""
    changes: dict[float, list[tuple[int, SlurmJob]]] = defaultdict(list)
    for job in jobs:
        if job.started and job.pieces and job.ended > job.started:
            changes[job.started].append((1, job))
            changes[job.ended].append((-1, job))
    has = {node.name: (node.gpus, (node.cpu or 0) // 1000, node.memory) for node in site.nodes}
    used: dict[str, list[int]] = {name: [0, 0, 0] for name in has}
    most = 0
    for moment in sorted(changes):
        for sign, job in sorted(changes[moment], key=lambda each: each[0]):
            for piece in job.pieces:
                for place, amount in enumerate((piece.gpus, piece.cpus, piece.memory)):
                    used[piece.node][place] += sign * amount
        for name, amounts in used.items():
            assert all(a <= (b or 0) for a, b in zip(amounts, has[name], strict=True)), name
        most = max(most, sum(amounts[0] for amounts in used.values()))
    return most
