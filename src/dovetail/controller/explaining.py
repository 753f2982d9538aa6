"""What decides, in words: the parts of a policy with their parameters, from their own docstrings.

Also how sensitive a job is believed to be to its cores. Knows no job's state and no request.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from dovetail.allocators import ALLOCATORS
from dovetail.controller.parts import Parts, believed
from dovetail.core.registry import Registry, split
from dovetail.model.allocation import Allocation
from dovetail.model.explained import Cap, Curve, Parameter, Piece, Rules, Way
from dovetail.model.node import Node
from dovetail.model.profile import Profile
from dovetail.model.quota import read_quotas
from dovetail.orderings import ORDERINGS
from dovetail.placements import PLACEMENTS
from dovetail.predictors import PREDICTORS
from dovetail.recipes import RECIPES, policy

UNITS = (1000, 1000, 1024)
"""A GPU, a core and a GiB, in the units of a limit."""
SAID = re.compile(r"((?:^\s*#: .*\n)+)\s*(\w+):", re.MULTILINE)
"""`#:` lines and the field they are about."""


def rules(parts: Parts) -> Rules:
    """The parts that decide."""
    chosen = policy(parts.policy)
    recipe = RECIPES.get(split(parts.policy)[0])
    pieces = (
        _piece("ordering", ORDERINGS, chosen.name, chosen.ordering()),
        _named("placement", PLACEMENTS, parts.placement or chosen.placement),
        _named("allocator", ALLOCATORS, parts.allocator or chosen.allocator),
        _named("predictor", PREDICTORS, believed(parts, chosen)),
    )
    return Rules(parts.policy, recipe.source if recipe else "", pieces, ways(), caps(parts.quotas))


def caps(text: str | None) -> tuple[Cap, ...]:
    """What accounts may hold, in the order they were written."""
    quotas = read_quotas(text)
    limits = quotas.limits.items() if quotas is not None else ()
    return tuple(
        Cap(name, *(_in(each, unit) for each, unit in zip(limit, UNITS, strict=True)))
        for name, limit in limits
    )


def _in(amount: int | None, unit: int) -> float | None:
    return None if amount is None else amount / unit


def ways() -> tuple[Way, ...]:
    """All policies by name, orderings first."""
    plain = [Way(name, _first(ORDERINGS.find(name))) for name in ORDERINGS.names()]
    made = [Way(name, f"{recipe.ordering} ({recipe.source})") for name, recipe in RECIPES.items()]
    return (*plain, *made)


def _named(kind: str, registry: Registry[Any], text: str) -> Piece:
    return _piece(kind, registry, split(text)[0], registry.create(text))


def _piece(kind: str, registry: Registry[Any], name: str, made: Any) -> Piece:
    found = registry.find(name)
    module = inspect.getdoc(sys.modules[found.__module__]) or ""
    return Piece(kind, name, _first(found), module, _parameters(made))


def _first(plug_in: Any) -> str:
    return (inspect.getdoc(plug_in) or "").partition("\n")[0]


def _parameters(made: Any) -> tuple[Parameter, ...]:
    if not is_dataclass(made):
        return ()
    said = _comments(type(made))
    return tuple(
        Parameter(each.name, _text(getattr(made, each.name)), said.get(each.name, ""))
        for each in fields(made)
        if each.init
    )


def _comments(kind: type) -> dict[str, str]:
    """What the source says of each field, the class's own words over those it inherits."""
    said: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        try:
            source = inspect.getsource(each)
        except (OSError, TypeError):
            continue
        for comment, name in SAID.findall(source):
            said[name] = " ".join(line.strip()[3:] for line in comment.strip().splitlines())
    return said


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def curve(profile: Profile, kind: str, memory: float) -> Curve:
    """Speed by cores per GPU on a GPU type, with so many GiB per GPU."""
    cores = profile.types.get(kind, profile.surface).cores
    speeds = tuple(profile.rate(count, memory, kind) for count in cores)
    return Curve(profile.name, profile.task, profile.source, cores, speeds, memory)


class Share(NamedTuple):
    """What one GPU of a job has beside it."""

    cores: float
    #: GiB
    memory: float
    #: type of the GPU
    kind: str


def poorest(held: Allocation, nodes: Sequence[Node]) -> Share | None:
    """The share where a job has the fewest cores per GPU; None: it has no GPUs."""
    parts = [part for part in held.parts if part.devices]
    if not parts:
        return None
    part = min(parts, key=lambda each: each.cpu / each.devices.bit_count())
    gpus = part.devices.bit_count()
    return Share(part.cpu / (1000 * gpus), part.memory / (1024 * gpus), nodes[part.node].type)
