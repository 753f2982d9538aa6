"""What the joint allocators are asked: claims on servers of one kind, and what came of them.

A claim is a job that was admitted by its number of GPUs. A curve is what its profile says on these
servers, as the few (CPU, memory) points worth giving it. Everything is integers: thousandths of a
core and MiB, per GPU on a curve and in total on servers and pieces. Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from dovetail.model.profile import Surface

NEGLIGIBLE = 1e-9
"""Speeds that differ by less are equal."""


class Point(NamedTuple):
    """An amount per GPU and the speed it gives."""

    cpu: int
    memory: int
    rate: float


class Curve(NamedTuple):
    """The points worth giving a job, cheapest first; all are at least as fast as the fair share."""

    points: tuple[Point, ...]
    #: the proportional share itself; the first point costs no more of anything
    fair: Point


class Server(NamedTuple):
    """What claims may use of one node."""

    node: int
    gpus: int
    cpu: int
    memory: int


class Piece(NamedTuple):
    """A job's part on one node. CPU and memory per GPU are equal on all of its nodes."""

    node: int
    gpus: int
    cpu: int
    memory: int


class Claim(NamedTuple):
    """A job that shall run, and where it runs now, if it does."""

    job: int
    gpus: int
    curve: Curve
    held: tuple[Piece, ...] = ()


Arrangement = dict[int, tuple[Piece, ...]]
"""Pieces by job. A claim is missing only where its GPUs, or an amount it insists on, do not fit."""


def fixed(cpu: int, memory: int, rate: float = 1.0) -> Curve:
    """The curve of a job that gets one amount per GPU and nothing else."""
    point = Point(cpu, memory, rate)
    return Curve((point,), point)


def curve(surface: Surface, cpu: int, memory: int) -> Curve:
    """The curve of a surface where `cpu` and `memory` are the proportional share of one GPU."""
    fair = _point(surface, cpu, memory)
    cores = {1000 * step for step in range(ceil(surface.cores[0]), int(surface.cores[-1]) + 1)}
    cores |= {ceil(1000 * level) for level in surface.cores} | {cpu}
    levels = {ceil(1024 * level) for level in surface.memory} | {memory}
    grid = (_point(surface, c, m) for c in cores for m in levels)
    worthy = [point for point in grid if point.rate >= fair.rate - NEGLIGIBLE]
    # No job falls below its proportional speed, and none may need more than that for it.
    floor = min(
        (point for point in worthy if point.cpu <= cpu and point.memory <= memory),
        key=lambda point: (point.cpu / max(cpu, 1) + point.memory / max(memory, 1), point),
    )
    above = [point for point in worthy if point.rate > floor.rate + NEGLIGIBLE]
    return Curve((floor, *_efficient(above, cpu, memory)), fair)


def _point(surface: Surface, cpu: int, memory: int) -> Point:
    return Point(cpu, memory, surface.at(cpu / 1000, memory / 1024))


def _efficient(points: Iterable[Point], cpu: int, memory: int) -> list[Point]:
    """Points that no other point beats or equals in speed with no more of either, cheapest first"""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.rate, point.cpu, point.memory)):
        if not any(
            other.cpu <= point.cpu
            and other.memory <= point.memory
            and other.rate >= point.rate - NEGLIGIBLE
            for other in kept
        ):
            kept.append(point)
    return sorted(kept, key=lambda point: point.cpu / max(cpu, 1) + point.memory / max(memory, 1))
