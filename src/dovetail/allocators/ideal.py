"""The ideal amounts of CPU and memory, as if all servers were one: no arrangement can be faster.

Stage 1 of Synergy-Opt (Mohan et al., OSDI'22): one point of each claim's curve, so that the speeds
sum to the most that the total CPU and memory allow. A job counts once, however many GPUs it has,
as published. That no job falls below its proportional speed holds because no curve has a slower
point. It does not know where anything is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from dovetail.allocators.kinds import Kind, kinds_of
from dovetail.allocators.program import CORE, GIB, Effort, Program
from dovetail.core.claims import Claim, Point


class Ideal(NamedTuple):
    """A point for every claim, in their order."""

    points: tuple[Point, ...]
    #: the speeds of the points, summed
    rate: float
    #: what no choice of points exceeds; a little above `rate` where the solver stopped early
    bound: float


#: steps on the curve of a kind, one for each member
Steps = list[list[int]]


def ideal(claims: Sequence[Claim], cpu: int, memory: int, effort: Effort | None = None) -> Ideal:
    """The best points that `cpu` and `memory` in total allow; the cheapest if even they do not."""
    kinds = kinds_of(claims)
    steps, bound = _best_steps(kinds, cpu, memory, effort or Effort())
    points: dict[int, Point] = {}
    for kind, chosen in zip(kinds, steps, strict=True):
        # Whoever comes first in the list gets the faster points.
        ordered = sorted((kind.points[step] for step in chosen), key=lambda point: -point.rate)
        points.update(zip(kind.members, ordered, strict=True))
    listed = tuple(points[index] for index in range(len(claims)))
    rate = sum(point.rate for point in listed)
    return Ideal(listed, rate, max(rate, bound))


def _best_steps(kinds: list[Kind], cpu: int, memory: int, effort: Effort) -> tuple[Steps, float]:
    bound = sum(len(kind.members) * max(point.rate for point in kind.points) for kind in kinds)
    # The solver keeps to limits up to a tolerance; where that shows, ask for a little less.
    for spare in (0.0, 1e-5):
        found = _solved(kinds, cpu * (1 - spare), memory * (1 - spare), effort)
        if found is None:
            break
        bound = min(bound, found[1]) if spare == 0.0 else bound
        if _within(kinds, found[0], cpu, memory):
            return found[0], bound
    return [[0] * len(kind.members) for kind in kinds], bound


def _solved(
    kinds: list[Kind], cpu: float, memory: float, effort: Effort
) -> tuple[Steps, float] | None:
    program = Program()
    columns = [
        [program.column(point.rate, len(kind.members), whole=True) for point in kind.points]
        for kind in kinds
    ]
    terms = [
        (column, kind.gpus * point.cpu, kind.gpus * point.memory)
        for kind, own in zip(kinds, columns, strict=True)
        for column, point in zip(own, kind.points, strict=True)
    ]
    program.row(((column, each) for column, each, _ in terms), -inf, cpu, CORE)
    program.row(((column, each) for column, _, each in terms), -inf, memory, GIB)
    for kind, own in zip(kinds, columns, strict=True):
        program.row(((column, 1) for column in own), len(kind.members), len(kind.members))
    answer = program.solve(effort)
    if answer is None:
        return None
    steps = [
        [step for step, column in enumerate(own) for _ in range(answer.whole(column))]
        for own in columns
    ]
    return steps, answer.bound


def _within(kinds: list[Kind], steps: Steps, cpu: int, memory: int) -> bool:
    """Whether every claim has a point and they sum to no more than there is, exactly."""
    pairs = [
        (kind.gpus, kind.points[step])
        for kind, chosen in zip(kinds, steps, strict=True)
        for step in chosen
    ]
    complete = all(len(kind.members) == len(s) for kind, s in zip(kinds, steps, strict=True))
    return (
        complete
        and sum(gpus * point.cpu for gpus, point in pairs) <= cpu
        and sum(gpus * point.memory for gpus, point in pairs) <= memory
    )
