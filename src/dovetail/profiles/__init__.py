"""Profiles people can read and edit: TOML files, and the catalogue of published models."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from dovetail.model.errors import UserError
from dovetail.model.profile import Profile, Surface

Catalogue = dict[str, Profile]


@cache
def published() -> Catalogue:
    """The models that were published, by name."""
    text = files(__package__).joinpath("published.toml").read_text()
    return _parse(text, "published.toml")


def catalogue(path: str | None = None) -> Catalogue:
    """The published models, and over them those of a file."""
    return published() if path is None else {**published(), **read_profiles(path)}


def read_profiles(path: str) -> Catalogue:
    """The profiles of a TOML file, by name."""
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a text file") from None
    return _parse(text, path)


def _parse(text: str, path: str) -> Catalogue:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: is not valid TOML: {error}") from None
    return {name: _profile(name, table, path) for name, table in tables.items()}


GRID = {"cores", "memory", "speed"}
KEYS = {"task", "source", "step", "reference", "types", *GRID}


def _profile(name: str, table: Any, path: str) -> Profile:
    try:
        _check_keys(table, KEYS)
        types = table.get("types", {})
        for kind in dict(types):
            _check_keys(types[kind], GRID, f"types.{kind}: ")
        reference = table["reference"]
        return Profile(
            name,
            _surface(table),
            (float(reference["cores"]), float(reference["memory"])),
            {kind: _surface(each, table) for kind, each in types.items()},
            task=str(table.get("task", "")),
            step=float(table.get("step", 0.0)),
            source=str(table.get("source", "")),
        )
    except KeyError as error:
        raise UserError(f"{path}: [{name}] lacks {error.args[0]}") from None
    except (TypeError, ValueError):
        raise UserError(f"{path}: [{name}] has something else than a number in a level") from None
    except UserError as error:
        raise UserError(f"{path}: [{name}] {error}") from None


def _check_keys(table: Any, known: set[str], where: str = "") -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise UserError(f"{where}unknown key {unknown[0]!r}; keys are {', '.join(sorted(known))}")


def _surface(table: dict[str, Any], plain: dict[str, Any] | None = None) -> Surface:
    """The grid of a table; a GPU type may leave out levels that are as in the plain one."""
    given = {**(plain or {}), **table}
    return Surface(
        tuple(float(level) for level in given["cores"]),
        tuple(float(level) for level in given["memory"]),
        tuple(tuple(float(value) for value in row) for row in given["speed"]),
    )


def written(profiles: Catalogue) -> str:
    """Profiles as the text of a file that `read_profiles` takes."""
    return "\n".join(_table(profile) for profile in profiles.values())


def _table(profile: Profile) -> str:
    lines = [
        f"[{_quoted(profile.name)}]",
        f"task = {_text(profile.task)}",
        f"source = {_text(profile.source)}",
        f"step = {profile.step:.6g}",
        f"reference = {{ cores = {profile.reference[0]:g}, memory = {profile.reference[1]:g} }}",
        *_grid(profile.surface),
    ]
    for kind, surface in profile.types.items():
        lines += ["", f"[{_quoted(profile.name)}.types.{_quoted(kind)}]", *_grid(surface)]
    return "\n".join(lines) + "\n"


def _grid(surface: Surface) -> list[str]:
    rows = [f"  [{_listed(row)}]," for row in surface.speed]
    levels = [f"cores = [{_listed(surface.cores)}]", f"memory = [{_listed(surface.memory)}]"]
    return [*levels, "speed = [", *rows, "]"]


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def _quoted(name: str) -> str:
    """A key, quoted where TOML wants it."""
    bare = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if bare else _text(name)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
