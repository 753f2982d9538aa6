"""How much CPU and memory each admitted job gets."""

from __future__ import annotations

from dovetail.allocators.greedy import Greedy
from dovetail.allocators.optimal import Optimal
from dovetail.allocators.proportional import Proportional
from dovetail.allocators.tune import Tune
from dovetail.core.protocols import Allocator
from dovetail.core.registry import Registry

BUILTIN: dict[str, type[Allocator]] = {
    "proportional": Proportional,
    "greedy": Greedy,
    "tune": Tune,
    "optimal": Optimal,
}

ALLOCATORS: Registry[Allocator] = Registry("allocator", BUILTIN, "dovetail.allocators", ("grant",))
