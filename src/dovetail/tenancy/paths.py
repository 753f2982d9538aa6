"""Tenants are named by paths: `lab/vision/ann` belongs to the longest part of it that is listed."""

from __future__ import annotations

from collections.abc import Container


def listed(path: str, names: Container[str]) -> str:
    """The longest beginning of a path that is among the names; empty: none is."""
    while path and path not in names:
        path = path.rpartition("/")[0]
    return path
