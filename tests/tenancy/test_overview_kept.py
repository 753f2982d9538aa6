"""What people are shown of tenants is kept, but never longer than it is true."""

from __future__ import annotations

from random import Random

import pytest
from workbench import World, owners, scheduler, spec

from dovetail.model.allocation import Part, allocation_of
from dovetail.model.event import Freed, Held, NodeDown, NodeUp
from dovetail.model.request import gang
from dovetail.tenancy.cells.clusters import VirtualClusters
from dovetail.tenancy.cells.overview import overview


@pytest.mark.parametrize("policy", ["fifo:skip=true", "shared"])
def test_what_is_shown_is_never_old(policy: str) -> None:
    """It is kept until something changes: at every instant it is what a new look would show."""
    draw = Random(5)
    half = gang(1, share=500)
    jobs = [
        spec(
            number,
            draw.choice((1, 2, 4)),
            draw.randrange(30),
            request=half if number % 4 == 0 else None,
            length=draw.randrange(1, 12),
            priority=-1.0 if number % 3 == 0 else 0.0,
            tenant=draw.choice(("red", "blue")),
            retries=9,
        )
        for number in range(40)
    ]
    others = allocation_of((Part(1, 0b1),))
    troubles = [
        (9.0, NodeDown(0)),
        (14.0, NodeUp(0)),
        (20.0, Held("x", others)),
        (25.0, Freed("x")),
    ]
    tenants = owners("cells", red="nodes = 1", blue="gpus = [2, 1]")
    made = scheduler("2x4", policy, tenants=tenants)
    kept = 0
    for _ in World(made, jobs, troubles).instants():
        tenancy = made.tenancy
        assert isinstance(tenancy, VirtualClusters)
        shown = tenancy.overview()
        kept += tenancy.overview() is shown
        assert shown == overview(tenancy.cells, tenancy._on)
    assert kept
