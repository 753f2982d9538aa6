"""What there is to choose from: every registered plug-in with its parameters and first line."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from dovetail.allocators import ALLOCATORS
from dovetail.core.registry import Registry
from dovetail.orderings import ORDERINGS
from dovetail.placements import PLACEMENTS
from dovetail.predictors import PREDICTORS
from dovetail.recipes import DEFAULT_ALLOCATOR, RECIPES, Recipe

if TYPE_CHECKING:  # for speed: a command that prints no table does not load rich
    from rich.table import Table

Catalogue = dict[str, dict[str, dict[str, Any]]]


def catalogue() -> Catalogue:
    """Kind -> name -> what it does and its parameters with their defaults."""
    registries: dict[str, Registry[Any]] = {
        "orderings": ORDERINGS,
        "placements": PLACEMENTS,
        "allocators": ALLOCATORS,
        "predictors": PREDICTORS,
    }
    kinds: Catalogue = {
        kind: {name: _entry(registry.find(name)) for name in registry.names()}
        for kind, registry in registries.items()
    }
    kinds["recipes"] = {
        name: {
            "about": _about(recipe),
            "parameters": {"order": recipe.ordering} if recipe.open else {},
        }
        for name, recipe in RECIPES.items()
    }
    return kinds


def _about(recipe: Recipe) -> str:
    parts = f"{recipe.ordering} with placement {recipe.placement}"
    if recipe.allocator != DEFAULT_ALLOCATOR:
        parts += f" and allocator {recipe.allocator}"
    return f"{parts} ({recipe.source})"


def _entry(plug_in: Any) -> dict[str, Any]:
    about = (inspect.getdoc(plug_in) or "").partition("\n")[0]
    return {"about": about, "parameters": _parameters(plug_in)}


def _parameters(plug_in: Any) -> dict[str, Any]:
    if not is_dataclass(plug_in):
        return {}
    shown: dict[str, Any] = {}
    for each in fields(plug_in):
        if each.init and each.default is not MISSING:
            value = each.default
            shown[each.name] = "/".join(map(str, value)) if isinstance(value, tuple) else value
    return shown


def tables(kinds: Catalogue) -> list[Table]:
    """One table per kind."""
    from rich.table import Table  # noqa: PLC0415

    made = []
    for kind, entries in kinds.items():
        table = Table(title=kind.capitalize(), title_justify="left", box=None, width=80)
        table.add_column("name", style="bold", no_wrap=True)
        table.add_column("what it does, and its parameters", overflow="fold")
        for name, entry in entries.items():
            given = ", ".join(f"{key}={value}" for key, value in entry["parameters"].items())
            table.add_row(name, entry["about"] + (f"\n[dim]{given}[/dim]" if given else ""))
        made.append(table)
    return made
