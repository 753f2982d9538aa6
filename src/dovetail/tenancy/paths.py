"""Tenants are named by paths: `lab/vision/ann` belongs to the longest part of it that is listed."""

from __future__ import annotations

from collections.abc import Container, Sequence

from dovetail.core.registry import nearest


def listed(path: str, names: Container[str]) -> str:
    """The longest beginning of a path that is among the names; empty: none is."""
    while path and path not in names:
        path = path.rpartition("/")[0]
    return path


def unlisted(path: str, names: Sequence[str]) -> str:
    """Why nothing of a path is among the names, for who named it or did not."""
    said = f"no tenant is called {path!r}" if path else "it counts for no tenant"
    return f"{said}{nearest(path, list(names))}"
