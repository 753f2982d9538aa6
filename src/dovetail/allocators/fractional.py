"""Jobs on servers in fractions: where the ideal amounts could be, if jobs could be cut.

Stage 2 of Synergy-Opt (Mohan et al., OSDI'22): as much of the ideal as servers can hold.
The answer is a vertex, which leaves no more than about three jobs cut per server. It works on
groups of alike jobs with one point and knows nothing of how its answer is made whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from dovetail.allocators.program import CORE, GIB, Effort, Program
from dovetail.core.claims import Point, Server


class Group(NamedTuple):
    """So many alike jobs at one point."""

    gpus: int
    point: Point
    jobs: int


Shares = list[dict[int, float]]
"""For each group, how many of its jobs are on which server."""

NOISE = 1e-6
"""Numbers of jobs that differ by less are equal."""


def fractions(servers: Sequence[Server], groups: Sequence[Group], effort: Effort) -> Shares:
    """Jobs of each group on each server; all empty where the solver fails."""
    program = Program()
    columns = [_columns(program, len(servers), group) for group in groups]
    for index, server in enumerate(servers):
        own = [(each[index], group) for each, group in zip(columns, groups, strict=True)]
        program.row(((c, group.gpus) for c, group in own), -inf, server.gpus)
        cpu = ((c, group.gpus * group.point.cpu) for c, group in own)
        program.row(cpu, -inf, server.cpu, CORE)
        memory = ((c, group.gpus * group.point.memory) for c, group in own)
        program.row(memory, -inf, server.memory, GIB)
    answer = program.solve(effort)
    if answer is None:
        return [{} for _ in groups]
    return [
        {index: answer.values[c] for index, c in enumerate(own) if answer.values[c] > NOISE}
        for own in columns
    ]


def _columns(program: Program, servers: int, group: Group) -> list[int]:
    columns = [program.column(group.gpus) for _ in range(servers)]
    program.row(((column, 1) for column in columns), -inf, group.jobs)
    return columns
