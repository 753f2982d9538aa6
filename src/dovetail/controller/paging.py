"""Long answers of the data base a page at a time, so that decisions are made in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sqlalchemy import Select

from dovetail.controller.store import Row, Store

SOME = 1000
"""Rows of a page."""


async def paged(
    store: Store, after: Callable[[Row | None], Select[Any]], most: int | None = None
) -> list[Row]:
    """All rows; `after` selects those behind one of them, or from the beginning."""
    found: list[Row] = []
    while most is None or len(found) < most:
        page = store.rows(after(found[-1] if found else None).limit(SOME))
        found += page
        if len(page) < SOME:
            break
        await asyncio.sleep(0)
    return found
