"""The truth for small clusters: the most that claims can reach on real servers, and instances.

One integer program per instance, written here once more and independently of the allocators, so
that a mistake of theirs cannot hide in it. A job that does not span sits whole on one server. One
that spans has a whole number of GPUs on each of its servers and the same amounts for each GPU;
alike jobs are counted together, for GPUs of one kind at one point can be dealt out to its jobs in
any way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_matrix

from dovetail.core.claims import Arrangement, Claim, Curve, Point, Server, curve
from dovetail.model.profile import Surface
from dovetail.profiles import published


class Optimum(NamedTuple):
    """The best arrangement found, its summed speed, and what none exceeds (equal if proven)."""

    rate: float
    bound: float


class _Column(NamedTuple):
    kind: int
    point: int
    server: int
    #: GPUs taken on the server by one unit of this column
    gpus: int


def placed_optimum(
    servers: Sequence[Server],
    claims: Sequence[Claim],
    *,
    span: bool = False,
    seconds: float = 60.0,
    gap: float = 1e-6,
) -> Optimum | None:
    """The most that all claims together can reach, or None if they cannot all be placed.

    Without `span` a job that fits the GPUs of a whole server sits on one; wider jobs always span.
    """
    kinds = Counter((claim.curve, claim.gpus) for claim in claims)
    size = max(server.gpus for server in servers)
    columns, rows = [], _Rows()
    worth: list[float] = []
    for number, ((profile, gpus), count) in enumerate(kinds.items()):
        spans = span or gpus > size
        own = [
            _Column(number, step, place, 1 if spans else gpus)
            for step, point in enumerate(profile.points)
            for place, server in enumerate(servers)
            if _fits(point, server, 1 if spans else gpus)
        ]
        first = len(columns)
        columns += own
        chosen = list(range(first, len(columns)))
        if spans:
            worth += [0.0] * len(own)
            jobs = []
            for step, point in enumerate(profile.points):
                jobs.append(len(columns))
                columns.append(_Column(number, step, -1, 0))
                worth.append(point.rate)
                slices = [(i, 1.0) for i in chosen if columns[i].point == step]
                rows.add([*slices, (jobs[-1], -float(gpus))], 0, 0)
            chosen = jobs
        else:
            worth += [profile.points[column.point].rate for column in own]
        rows.add([(i, 1.0) for i in chosen], count, count)
    points = [profile.points for profile, _ in kinds]
    for place, server in enumerate(servers):
        here = [(i, c, points[c.kind][c.point]) for i, c in enumerate(columns) if c.server == place]
        rows.add([(i, float(c.gpus)) for i, c, _ in here], 0, server.gpus)
        rows.add([(i, c.gpus * p.cpu / 1000) for i, c, p in here], 0, server.cpu / 1000)
        rows.add([(i, c.gpus * p.memory / 1024) for i, c, p in here], 0, server.memory / 1024)
    found = milp(
        -np.array(worth),
        integrality=np.ones(len(worth)),
        bounds=Bounds(0, np.inf),
        constraints=rows.constraint(len(worth)),
        options={"mip_rel_gap": gap, "time_limit": seconds},
    )
    if found.x is None:
        return None
    return Optimum(-float(found.fun), -float(found.mip_dual_bound))


def _fits(point: Point, server: Server, gpus: int) -> bool:
    return (
        gpus <= server.gpus
        and gpus * point.cpu <= server.cpu
        and gpus * point.memory <= server.memory
    )


class _Rows:
    def __init__(self) -> None:
        self.entries: list[tuple[int, int, float]] = []
        self.bounds: list[tuple[float, float]] = []

    def add(self, terms: list[tuple[int, float]], low: float, high: float) -> None:
        self.entries += [(len(self.bounds), column, factor) for column, factor in terms]
        self.bounds.append((low, high))

    def constraint(self, columns: int) -> LinearConstraint:
        row, column, factor = zip(*self.entries, strict=True)
        matrix = csc_matrix((factor, (row, column)), shape=(len(self.bounds), columns))
        low, high = zip(*self.bounds, strict=True)
        return LinearConstraint(matrix, low, high)


def summed_rate(claims: Sequence[Claim], arrangement: Arrangement) -> float:
    """The speeds of all arranged claims, looked up by the amounts their pieces have."""
    total = 0.0
    for claim in claims:
        pieces = arrangement.get(claim.job, ())
        if pieces:
            gpus = sum(piece.gpus for piece in pieces)
            each = sum(p.cpu for p in pieces) // gpus, sum(p.memory for p in pieces) // gpus
            total += max(p.rate for p in claim.curve.points if (p.cpu, p.memory) == each)
    return total


class Instance(NamedTuple):
    """Servers and claims that fit them by number of GPUs."""

    servers: list[Server]
    claims: list[Claim]


def random_instance(
    rng: Random,
    servers: int,
    *,
    gpus: int = 8,
    cores: int = 24,
    memory: int = 500,
    load: float = 1.0,
    widths: Sequence[int] = (1, 1, 2, 4, 8, 16),
    invented: float = 0.3,
) -> Instance:
    """Servers of `gpus` GPUs, `cores` cores and `memory` GiB, and claims on a `load` of the GPUs.

    A share `invented` of the claims has a random monotone surface, the others are of the catalogue.
    """
    share = 1000 * cores // gpus, 1024 * memory // gpus
    models = [curve(profile.on(""), *share) for profile in published().values()]
    left, claims = round(load * servers * gpus), []
    while left:
        width = rng.choice([each for each in widths if each <= left] or [left])
        own = rng.random() < invented
        which = curve(random_surface(rng, share), *share) if own else rng.choice(models)
        claims.append(Claim(len(claims), width, which))
        left -= width
    machines = [Server(node, gpus, 1000 * cores, 1024 * memory) for node in range(servers)]
    return Instance(machines, claims)


def random_surface(rng: Random, share: tuple[int, int]) -> Surface:
    """A surface that never falls with more of anything, with the share among its levels."""
    fair = share[0] / 1000, share[1] / 1024
    cores = sorted({fair[0], *rng.sample([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0], 4)})
    memory = sorted({fair[1], *rng.sample([20.0, 30.0, 62.5, 125.0, 187.5, 250.0], 2)})
    rows = [[0.0] * len(memory) for _ in cores]
    for i in range(len(cores)):
        for j in range(len(memory)):
            below = max(rows[i - 1][j] if i else 0.2, rows[i][j - 1] if j else 0.2)
            rows[i][j] = below + rng.choice([0.0, 0.0, rng.random() * 0.6])
    return Surface(tuple(cores), tuple(memory), tuple(tuple(row) for row in rows))


def catalogue_curves(share: tuple[int, int] = (3000, 64000)) -> dict[str, Curve]:
    """The published models where one GPU's share is that of the standard server."""
    return {name: curve(profile.on(""), *share) for name, profile in published().items()}
